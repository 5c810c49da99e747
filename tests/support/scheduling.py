"""Which worker runs which file: each file whole on one worker, and those that share a control plane on the same."""

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

SHARE_A_CONTROL_PLANE = (
    "tests/cluster/",
    "tests/catalogue/",
    "tests/resources/test_api_server.py",
    "tests/servers/test_helm.py",
)
"""Files of these names use the control plane of their worker's run: a second one would only take time."""


class SharingScheduler(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out files, and those that share a control plane together."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(SHARE_A_CONTROL_PLANE):
            return "those that share a control plane"
        return str(super()._split_scope(nodeid))
