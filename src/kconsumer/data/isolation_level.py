"""The values of isolation.level, compatible with confluent_kafka's enumeration.

Owns: IsolationLevel. Threads: any (immutable). Never: reads a property.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["IsolationLevel"]


class IsolationLevel(Enum):
    """The values of ``isolation.level``: which transactions' records to return."""

    READ_UNCOMMITTED = 0  #: all records, also of open and aborted transactions
    READ_COMMITTED = 1  #: records of committed transactions, and without transaction
