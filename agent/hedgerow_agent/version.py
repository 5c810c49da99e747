"""The version of this agent, from the metadata of its distribution."""

from importlib import metadata


def agent_version() -> str:
    """Return the installed version, or a word for a tree that was never installed."""
    try:
        return metadata.version("hedgerow")
    except metadata.PackageNotFoundError:
        return "uninstalled"
