"""Entry points of the operator's programs: standard library only until it is known that the extra is there."""

import importlib
import sys

from hedgerow_plans.extras import explain_missing_extra, is_third_party


def _run(program: str, module: str) -> int:
    try:
        main = importlib.import_module(module).main
    except ModuleNotFoundError as error:
        if error.name is None or not is_third_party(error.name):
            raise
        sys.stderr.write(explain_missing_extra(program, "operator", error.name) + "\n")
        return 1
    exit_code = main()
    return exit_code if isinstance(exit_code, int) else 0


def hedgerow() -> int:
    """Run the fleet and planning command line."""
    return _run("hedgerow", "hedgerow_operator.cli")


def kubectl_hedgerow() -> int:
    """Run the kubectl plugin: the same commands under `kubectl hedgerow`."""
    return _run("kubectl-hedgerow", "hedgerow_operator.plugin")


def hedgerow_operator() -> int:
    """Run the operator itself."""
    return _run("hedgerow-operator", "hedgerow_operator.main")
