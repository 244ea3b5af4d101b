"""The errors of an ingestion.

Owns: IngestError and its subclasses. Threads: any. Never: wraps an error of Kafka.
"""

from __future__ import annotations


class IngestError(Exception):
    """The ingestion cannot continue; the message has the reason and the remedy."""


class OtherRunError(IngestError):
    """Another run of the same job has written to the table since this run read it.

    No record is lost or written twice: the other run continues.
    """


class BadRecordError(IngestError):
    """A record cannot be decoded, and bad records must fail the run."""
