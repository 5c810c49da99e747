"""Which worker runs which file: each file whole on one worker, those that share something on the same.

Tests that wait for servers and devices leave a core idle half of the time. So of three workers the first takes these
alone, and the two others fill the cores with what computes; never more of that than there would be with two.
"""

from typing import Any

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

TOGETHER = {
    "those that share a control plane": (
        "tests/cluster/",
        "tests/catalogue/",
        "tests/resources/test_api_server.py",
        "tests/servers/test_helm.py",
    ),
    "those that perform the demo": ("tests/e2e/",),
}
"""Files of these names use the control plane of their worker's run, or what its planner has planned: once is enough."""

WAITING = (
    *TOGETHER,
    "tests/device/test_agent_",
    "tests/device/test_train_command.py",
    "tests/servers/",
    "tests/chart/",
)
"""What mostly waits."""


def is_waiting(scope: str) -> bool:
    """Tell whether a file, or some that stay together, mostly wait."""
    return scope.startswith(WAITING)


class SharingScheduler(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out files, those that share something together, and those that wait to the first of three workers."""

    def _split_scope(self, nodeid: str) -> str:
        found = (name for name, files in TOGETHER.items() if nodeid.startswith(files))
        return next(found, "") or str(super()._split_scope(nodeid))

    def _assign_work_unit(self, node: Any) -> None:
        if scope := next((scope for scope in self.workqueue if is_waiting(scope) == self._waits(node)), None):
            self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        if self._waits(node) and not any(map(is_waiting, self.workqueue)) and not node.shutting_down:
            node.shutdown()  # the others compute on two cores
        else:
            super()._reschedule(node)

    def _waits(self, node: Any) -> bool:
        return self.numnodes > 2 and node is next(iter(self.registered_collections))
