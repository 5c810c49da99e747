"""What every test can ask for; the real servers come from support.server_fixtures."""

pytest_plugins = ["support.server_fixtures", "support.operator_fixtures"]
