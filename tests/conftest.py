"""What every test can ask for; the real servers come from support.server_fixtures."""

import pytest

pytest_plugins = ["support.server_fixtures", "support.operator_fixtures"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, so that of two workers none is left alone with them at the end."""
    items.sort(key=lambda item: "e2e" not in item.path.parts)
