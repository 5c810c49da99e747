"""What to tell somebody whose installation lacks an extra; standard library only, so that it always imports."""

PACKAGES = frozenset({"hedgerow_plans", "hedgerow_agent", "hedgerow_operator"})


def explain_missing_extra(program: str, extra: str, missing_module: str) -> str:
    """Return the sentence for a program whose extra is not installed, with the command that adds it."""
    return (
        f"{program} needs the Python package {missing_module!r}, which comes with the extra {extra!r}. "
        f"Add it with: pip install 'hedgerow[{extra}]'"
    )


def is_third_party(module: str) -> bool:
    """Tell whether a module that failed to import is a dependency; one of ours missing is a bug, not a missing extra."""
    return bool(module) and module.partition(".")[0] not in PACKAGES
