"""Owns: QuietMember, a member without callbacks: the network thread assigns and revokes for it, at any time between two
of its calls. It is away for longer than others.

Threads: the simulation's one. Never: hears of a change; it looks at its assignment before each deed.
"""

from __future__ import annotations

from tests.core.inside import Assigned, assigned

from .member import Member
from .reader import Where


class QuietMember(Member):
    def __init__(self, history, number: int, settings: dict[str, object]) -> None:
        self.known: dict[Where, Assigned] = {}
        super().__init__(history, number, settings)

    def subscribe_with_callbacks(self) -> None:
        self.consumer.subscribe(self.subscription)

    def observe(self) -> None:
        if self.dead or self.closed:
            return
        found = assigned(self.consumer)
        self.depart([where for where, one in self.known.items() if found.get(where) != one])
        for where, one in found.items():
            if where not in self.known:
                self.known[where] = one  # first: another member that looks at the same time looks at this one
                self.takes_over(where, self.consumer.memberid() or "")

    def depart(self, gone: list[Where]) -> None:
        """Partitions were given up or lost since the latest look."""
        lost = [where for where in gone if self.failures.was_removed(where) or where in self.failures.to_be_lost]
        self.failures.loses(lost)
        if self.is_cooperative and len(gone) == len(self.known):
            lost = gone  # perhaps: a fenced member may still be known to the coordinator
        given_up = [where for where in gone if where not in lost]
        self.failures.gives_up(given_up)
        self.words.gives_up(given_up)
        self.words.are_gone()
        for where in gone:
            if where in lost or where in self.hands:  # after the wait, records in hand are not committed
                self.words.forget(where)
            del self.expected[where]
            self.known.pop(where)
            self.paused.discard(where)
            self.ownership.pop(where, None)

    @property
    def is_cooperative(self) -> bool:
        """Whether its group takes all partitions at once only from a member that has lost them."""
        return self.history.protocol == "consumer" or "cooperative" in str(
            self.settings["partition.assignment.strategy"])

    def leaves(self) -> None:
        self.depart(list(self.known))
