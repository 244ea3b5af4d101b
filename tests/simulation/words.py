"""Owns: LastWords, what the latest commit of each partition said. When the partition is given up, the coordinator has
it, even if the application went back and read again.

Threads: the simulation's one. Never: holds a member to a commit after one of the same partition was reported as failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .reader import Where

if TYPE_CHECKING:
    from .member import Member


class LastWords:
    """The last words of one member, each from on_assign to the next on_assign of its partition, or to the end."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.said: dict[Where, int] = {}        # by the latest commit; not in it: nothing, or it is not known
        self.stored: dict[Where, int] = {}      # by store_offsets() since the partition was assigned or sought
        self.sought: dict[Where, int] = {}      # where the latest seek went
        self.leaving: dict[Where, int] = {}     # where it stands in those of the on_revoke that is running
        self.begun: dict[Where, int] = {}       # in Member.stored_at: the first entry of this ownership
        self.committed: dict[Where, int] = {}   # in History.committed: the entry at on_assign

    def assigned(self, where: Where) -> None:
        """on_assign is called; an earlier ownership is over."""
        if not (self.member.failures.was_removed(where) and self.member.may_be_open(where)):
            self.prove(where)
        for known in (self.said, self.stored, self.sought):
            known.pop(where, None)
        self.begun[where] = len(self.member.stored_at.get(where, ()))
        self.committed[where] = self.member.first_committed[where]

    def seeks(self, where: Where, offset: int) -> None:
        self.stored.pop(where, None)
        self.sought[where] = offset
        if self.member.auto_commit:
            self.forget(where)  # what the latest interval has committed before is not known

    def stores(self, where: Where, offset: int) -> None:
        self.stored[where] = offset

    def names(self, offsets: dict[Where, int]) -> None:
        """commit(offsets=...)"""
        self.said.update(offsets)
        for where, offset in offsets.items():
            if self.stored.get(where, offset) < offset:
                self.stored[where] = offset

    def stand(self) -> None:
        """A commit without offsets says where the application stands."""
        self.said.update(self.leaving)
        for where in self.member.expected:
            at = self.stands_at(where)
            if at is not None:
                self.said[where] = at
            elif self.member.auto_store and self.may_have_moved(where):
                self.forget(where)

    def gives_up(self, partitions: list[Where]) -> None:
        """on_revoke begins. A commit in it includes these; the automatic one follows it."""
        for where in partitions:
            at = self.stands_at(where)
            if at is not None:
                self.leaving[where] = at
        if self.member.auto_commit:
            self.said.update(self.leaving)

    def are_gone(self) -> None:
        """on_revoke is over."""
        self.leaving.clear()

    def stands_at(self, where: Where) -> int | None:
        if where in self.stored or not self.member.auto_store:
            return self.stored.get(where)
        position = self.member.expected[where]
        return None if position == self.sought.get(where) else position  # a seek alone does not give a position

    def may_have_moved(self, where: Where) -> bool:
        """Whether the position may have passed invisible records since a seek: then there is one to commit."""
        at = self.member.expected[where]
        return at is not None and at != self.member.cluster.next_visible(*where, at, self.member.read_committed)

    def forget(self, where: Where) -> None:
        """A commit of it failed, or the partition is lost."""
        self.said.pop(where, None)

    def forget_all(self) -> None:
        """A commit failed whose partitions are not known, or the member left the group for want of polls."""
        self.said.clear()

    def prove_all(self) -> None:
        """The member has closed."""
        for where in list(self.begun):
            self.prove(where)

    def prove(self, where: Where) -> None:
        said = self.said.get(where)
        if said is None:
            return
        member = self.member
        taken = [offset for _, offset in member.stored_at.get(where, ())[self.begun[where]:]]
        # A commit of what is committed already is not sent.
        found = taken[-1:] or member.history.committed[where][self.committed[where]:]
        if not any(self.is_same(where, said, offset) for offset in found):
            raise member.broken(f"its last commit of {where} said {said}; the coordinator has {found}")

    def is_same(self, where: Where, said: int, found: int) -> bool:
        """A position may have passed invisible records, and records that retention has removed."""
        cluster, read_committed = self.member.cluster, self.member.read_committed
        start = cluster.log_start(*where)
        return said == found or (cluster.next_visible(*where, max(said, start), read_committed)
                                 == cluster.next_visible(*where, max(found, start), read_committed))
