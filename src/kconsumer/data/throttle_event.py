"""The argument of throttle_cb, compatible with confluent_kafka's ThrottleEvent.

Owns: ThrottleEvent. Threads: any (plain data, not locked). Never: throttles.
"""

from __future__ import annotations

__all__ = ["ThrottleEvent"]


class ThrottleEvent:
    """A broker throttles this client (KIP-219).

    Attributes:
        broker_name: the broker's ``host:port``.
        broker_id: the broker's id.
        throttle_time: duration in seconds.
    """

    def __init__(self, broker_name: str, broker_id: int, throttle_time: float) -> None:
        self.broker_name = broker_name
        self.broker_id = broker_id
        self.throttle_time = throttle_time

    def __repr__(self) -> str:
        return f"ThrottleEvent({self.broker_name!r}, {self.broker_id}, {self.throttle_time})"

    def __str__(self) -> str:
        return f"{self.broker_name}/{self.broker_id} throttled for {int(self.throttle_time * 1000)} ms"
