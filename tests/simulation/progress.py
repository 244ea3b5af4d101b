"""Owns: Progress, which holds one application's partitions to their time: a record that waits at a healthy leader is
given to an application that asks for records, within a bound.

Threads: the simulation's one. Never: counts time in which brokers misbehave, or in which the application does not poll.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .reader import Application, Where

LOOK_EVERY_MS = 250
AWAY_MS = 1000  # an application that has not asked for records for so long is away

# How long a record may wait while nothing goes wrong but leaders that move. After a leader has moved, the Fetch is
# refused, and metadata is asked for again: a parked Fetch (fetch.wait.max.ms, 500 ms), then two backoffs of
# retry.backoff.max.ms with jitter (600 ms each), then requests of up to 80 ms. Offsets of a partition that was just
# assigned are fetched in the same way. Below topic.metadata.refresh.interval.ms (5,000 ms), which would hide a
# partition that waits for the next regular refresh.
HEALTHY_MS = 2500
# The same after faults, on top of socket.timeout.ms: requests that are already under way may take 2.5 s each way, a
# broker may have asked for a pause of 800 ms, the pause before the next connection is up to 1 s, and a bad batch has
# up to five attempts, 600 ms apart.
AFTER_FAULTS_MS = 11_000


class Progress:
    """The partitions whose records wait for one application, and since when."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.since: dict[Where, tuple[int | None, int]] = {}  # position, and when its record was first seen
        self.polled_ms = 0
        self.next_look_ms = 0

    def polled(self, now_ms: int, found: int) -> None:
        """The application has asked for records, and was given so many."""
        if now_ms - self.polled_ms > AWAY_MS:
            self.since.clear()
        self.polled_ms = now_ms
        # Only an application that is given nothing shows that a record does not wait for others before it.
        if not found and now_ms >= self.next_look_ms:
            self.next_look_ms = now_ms + LOOK_EVERY_MS
            self.look(now_ms)

    def forget(self, where: Where) -> None:
        """Its position was changed, or it was paused or assigned."""
        self.since.pop(where, None)

    def look(self, now_ms: int) -> None:
        application = self.application
        allowed_ms = application.history.allowed_wait_ms()
        if allowed_ms is None:
            self.since.clear()
            return
        since: dict[Where, tuple[int | None, int]] = {}
        for where, position in application.expected.items():
            if not application.asks_for(where) or not self.waits(where, position):
                continue
            known = self.since.get(where)
            since[where] = known if known is not None and known[0] == position else (position, now_ms)
            waited_ms = now_ms - max(since[where][1], application.history.healthy_since_ms)
            if waited_ms > allowed_ms:
                raise application.broken(f"{where} is not read: its record after {position} has waited for {waited_ms} "
                                         f"ms while nothing was wrong")
        self.since = since

    def waits(self, where: Where, position: int | None) -> bool:
        """Whether a broker would give a record from there on."""
        cluster, read_committed = self.application.cluster, self.application.read_committed
        at = position if position is not None else (cluster.committed(*where) or 0)
        end = cluster.last_stable_offset(*where) if read_committed else cluster.log_end(*where)
        visible: int = cluster.next_visible(*where, max(at, cluster.log_start(*where)), read_committed)
        return visible < end
