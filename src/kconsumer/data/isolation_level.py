"""The values of isolation.level, in the form of confluent_kafka's enumeration.

Owns: IsolationLevel. Threads: any (immutable). Never: knows a property.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["IsolationLevel"]


class IsolationLevel(Enum):
    """Whether records of transactions are returned before their commit: a value of ``isolation.level``."""

    READ_UNCOMMITTED = 0  #: every record, also of transactions that are open or were aborted
    READ_COMMITTED = 1  #: records without a transaction, and those of committed ones
