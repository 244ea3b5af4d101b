"""Runner: what the driver asks of whatever runs its tasks.

Owns: the protocol. Threads: the driver's. Never: is a runner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kconsumer.ingest.manifest import TaskResult
from kconsumer.ingest.task import Task


class Runner(Protocol):
    """Runs tasks. A task may run several times; its result is that of one of them."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""

    def map(self, tasks: Sequence[Task], what: str) -> list[TaskResult]:
        """Run the tasks to their end.

        Args:
            tasks: of one trigger.
            what: a description for people.

        Raises:
            IngestError: a task failed as often as it may be tried.
            KafkaException: what a task met.
        """

    def close(self) -> None:
        """End what runs."""
