"""Starting a program whose extra may be missing; standard library only, so that it always imports."""

import importlib

OUR_PACKAGES = frozenset({"hedgerow_plans", "hedgerow_agent", "hedgerow_operator"})


def explain_missing_extra(program: str, extra: str, missing_module: str) -> str:
    """Return the sentence for a program whose extra is not installed, with the command that adds it."""
    return (
        f"{program} needs the Python package {missing_module!r}, which comes with the extra {extra!r}. "
        f"Add it with: pip install 'hedgerow[{extra}]'"
    )


def run_program(program: str, extra: str, module: str) -> int:
    """Run `main` of a module, or exit with a sentence when a dependency of its extra is not installed."""
    try:
        main = importlib.import_module(module).main
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in OUR_PACKAGES:
            raise  # one of our own modules missing is a bug, not a missing extra
        raise SystemExit(explain_missing_extra(program, extra, error.name)) from None
    exit_code = main()
    return exit_code if isinstance(exit_code, int) else 0
