"""What every test can ask for; the real servers come from support.server_fixtures."""

import os

import pytest

# Read by OpenBLAS when numpy is first imported: the core is used as trainers use it, and two workers fill two cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

pytest_plugins = ["support.server_fixtures", "support.operator_fixtures"]

LONGEST_FIRST = (
    *("e2e/test_slice", "e2e", "packaging", "cluster", "device", "planners", "training", "servers", "chart"),
    "provision",
)
"""Folders with files that take long: begun early, so that no worker is left alone with one at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the folders whose files take longest."""
    items.sort(key=lambda item: _rank(f"{item.path.parent.name}/{item.path.name}"))


def _rank(file: str) -> int:
    return next((rank for rank, start in enumerate(LONGEST_FIRST) if file.startswith(start)), len(LONGEST_FIRST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give each worker whole files, as was asked, and files that share a server together."""
    if config.getoption("dist") != "loadfile":
        return None
    from support.scheduling import SharingScheduler  # noqa: PLC0415 - xdist is there when this is called

    return SharingScheduler(config, log)
