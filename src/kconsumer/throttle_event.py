"""What throttle_cb is called with, in the form of confluent_kafka's ThrottleEvent.

Owns: ThrottleEvent. Threads: any (plain data, not locked). Never: throttles.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ThrottleEvent"]


@dataclass(eq=False)
class ThrottleEvent:
    """A broker asked this client to hold back (KIP-219).

    Attributes:
        broker_name: the broker's ``host:port``.
        broker_id: the broker's id.
        throttle_time: for how long, in seconds.
    """

    broker_name: str
    broker_id: int
    throttle_time: float

    def __str__(self) -> str:
        return f"{self.broker_name}/{self.broker_id} throttled for {int(self.throttle_time * 1000)} ms"
