"""Options of a parallel consumer, checked, and the summary of a run.

Owns: Options, Summary. Threads: any; both are values. Never: makes a consumer or a thread.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from kconsumer.config.values import configuration_error
from kconsumer.parallel.attempt import Middleware
from kconsumer.parallel.flow import Flow, Order
from kconsumer.parallel.outcomes import DeadLetters, Policy, Retry

__all__ = ["Executor", "Options", "Summary"]

Executor = Literal["threads", "processes", "inline"]
_THREADS: Final = 64


@dataclass(frozen=True, kw_only=True)
class Options:
    """Keyword arguments of the parallel consumers: see ParallelConsumer."""

    order: Order = "key"
    max_in_flight: int = 20_000
    max_in_flight_bytes: int = 64 << 20
    commit_interval: float = 1.0
    drain_timeout: float = 30.0
    handler_timeout: float | None = None
    retry: Retry | None = None
    dead_letter: DeadLetters | None = None
    stop_if_bad: float | None = None
    middleware: Sequence[Middleware] = ()
    metadata_limit: int = 4096

    def __post_init__(self) -> None:
        if self.order not in get_args(Order):
            raise configuration_error(f"invalid order {self.order!r}: expected one of {', '.join(get_args(Order))}")
        for name in ("max_in_flight", "max_in_flight_bytes", "commit_interval", "drain_timeout", "handler_timeout"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise configuration_error(f"invalid {name} {value!r}: expected more than 0")
        if self.stop_if_bad is not None and not 0 <= self.stop_if_bad < 1:
            raise configuration_error(f"invalid stop_if_bad {self.stop_if_bad!r}: expected a share such as 0.05")
        if self.dead_letter is not None and not callable(self.dead_letter):
            raise configuration_error(f"invalid dead_letter {self.dead_letter!r}: expected a callable or a "
                                      "DeadLetterTopic")

    def check_limits(self, max_poll_interval_ms: int) -> None:
        """Raise ConfigurationError if draining could take longer than the group waits for a member."""
        if self.drain_timeout * 1000 >= max_poll_interval_ms:
            raise configuration_error(f"drain_timeout={self.drain_timeout} s is not below max.poll.interval.ms="
                                      f"{max_poll_interval_ms}: the group would expel the member while it drains")

    def flow(self) -> Flow:
        """Return a Flow with these limits."""
        return Flow(self.order, self.max_in_flight, self.max_in_flight_bytes, self.metadata_limit, self.stop_if_bad)

    def policy(self) -> Policy:
        """Return what decides after a handler's exception."""
        return Policy(self.retry, self.dead_letter is not None)


def worker_count(workers: int | None, executor: str) -> int:
    """Return the number of workers; None is the default of the executor."""
    if executor not in get_args(Executor):
        raise configuration_error(f"invalid executor {executor!r}: expected one of {', '.join(get_args(Executor))}")
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise configuration_error(f"invalid workers {workers!r}: expected a whole number from 1 on")
    if executor == "inline":
        return 0
    if workers is not None:
        return workers
    return _THREADS if executor == "threads" else os.cpu_count() or 1


@dataclass(frozen=True)
class Summary:
    """The result of a run."""

    done: int  #: records whose handler returned
    rejected: int  #: records that became dead letters
    retries: int  #: attempts after a failed one
    skipped: int  #: records that a former owner of their partition had done already
    dropped: list[tuple[str, int, int]] = field(default_factory=list)
    """Topic, partition and offset of records that ended after their partition had left: they come twice."""
    unfinished: list[tuple[str, int, int]] = field(default_factory=list)
    """Records whose handler had not ended after ``drain_timeout``: they come again."""

    @classmethod
    def of(cls, flow: Flow, unfinished: list[Any]) -> Summary:
        """Return the summary of a flow."""
        return cls(flow.done - flow.rejected, flow.rejected, flow.retries, flow.known, list(flow.dropped),
                   [(*work.partition.place, work.message.offset()) for work in unfinished])
