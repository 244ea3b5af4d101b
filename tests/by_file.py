"""The scheduler of `pytest -n`: a file's tests stay in one process, in their order.

Owns: ByFile. Threads: the controller's. Never: imported without pytest-xdist.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling


class ByFile(LoadScopeScheduling):
    """tests/groups as a whole stays in one process, since its scenarios are started together.

    After a crash the base hangs the session, or ends it with a KeyError. A process runs a test only when it knows the
    next one, or that there is none. In place of a crashed process, the base starts one, gives it one of the crashed
    process's files, and waits for its next result. There is none if that file was complete, or has one test left. And
    it gives files to a process that has not collected the tests yet.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "tests/groups" if file.startswith("tests/groups/") else file

    def remove_node(self, node: Any) -> str | None:
        work = self.assigned_work[node]
        for scope in [scope for scope, tests in work.items() if all(tests.values())]:
            del work[scope]
        return super().remove_node(node)

    def _reschedule(self, node: Any) -> None:
        if node not in self.registered_collections:
            return
        super()._reschedule(node)
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)
