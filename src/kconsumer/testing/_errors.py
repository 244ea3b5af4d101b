"""Owns: the errors of the test clusters. Threads: any. Never: starts or reads anything."""

from __future__ import annotations


class ClusterError(RuntimeError):
    """A test cluster could not be started, or an operation on it failed.

    The text has the reason.
    """


class MissingToolError(ClusterError):
    """Java, Maven or a client library is missing or too old; the text names it."""
