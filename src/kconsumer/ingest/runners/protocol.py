"""Runner: the operations that the driver needs for running tasks.

Owns: the protocol. Threads: the driver's thread. Never: implements a runner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kconsumer.ingest.manifest import TaskResult
from kconsumer.ingest.task import Task


class Runner(Protocol):
    """Runs tasks. A task may run several times; the result of one run counts."""

    @property
    def parallelism(self) -> int:
        """The number of parallel tasks."""

    def map(self, tasks: Sequence[Task], what: str) -> list[TaskResult]:
        """Run the tasks and return their results.

        Args:
            tasks: of one trigger.
            what: a description for users.

        Raises:
            IngestError: a task failed in all its attempts.
            KafkaException: an error of Kafka in a task.
        """

    def close(self) -> None:
        """Stop the workers."""
