"""Entry points of the operator's programs; import nothing of the extra until `run_program` can explain its absence."""

from hedgerow_plans.extras import run_program


def hedgerow() -> int:
    """Run the fleet and planning command line."""
    return run_program("hedgerow", "operator", "hedgerow_operator.cli")


def kubectl_hedgerow() -> int:
    """Run the kubectl plugin: the fleet's commands under `kubectl hedgerow`."""
    return run_program("kubectl-hedgerow", "operator", "hedgerow_operator.plugin")


def hedgerow_operator() -> int:
    """Run the operator itself."""
    return run_program("hedgerow-operator", "operator", "hedgerow_operator.main")
