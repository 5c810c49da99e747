"""The search on networks of the zoo: verified, close to its bound, never beaten, never dearer with more memory.

`make test` plans a sample, `make thorough` every network; FIGURE lines say what came out, seconds among it.
"""

import statistics
from functools import cache

import pytest

from hedgerow_operator import classes as catalogue
from hedgerow_operator.planning.bench import Case, Row, measure
from hedgerow_operator.planning.requests import device_costs
from hedgerow_plans.models import zoo
from hedgerow_plans.planning.strategies import STRATEGIES
from support.sampling import THOROUGH

BOARD = "raspberry-pi-4"
PERCENTS = (90, 75, 50, 35)
LIMIT_SECONDS = 120.0  # the search ends by itself long before, unless the machine is busy with something else
ROUNDING = 1e-6  # what two strategies may differ by in the last bytes they page
NETWORKS = zoo.names() if THOROUGH else ("ds-cnn", "resnet8", "squeezenet")  # half of the last lies below its floor

pytestmark = pytest.mark.timeout(600)  # for each network


@cache
def rows(network: str, percent: int) -> dict[str, Row]:
    """Return what every strategy makes of a network at a share of its keep-all memory."""
    costs = device_costs(catalogue.device_class(BOARD).spec)
    names = (*STRATEGIES, "optimal") if THOROUGH or network == "resnet8" else ("optimal",)
    return {row.strategy: row for row in measure(Case(network, percent, 8, costs, names, LIMIT_SECONDS))}


def asked(network: str) -> list[Row]:
    """Return the rows of the search; a share below the floor is planned for the floor itself."""
    return [rows(network, percent)["optimal"] for percent in PERCENTS]


def allowed_gap(row: Row) -> float:
    if row.budget_percent >= 50:
        return 0.001
    return 0.005 if row.budget_bytes >= 1.2 * row.floor_bytes else 0.02


@pytest.mark.parametrize("network", NETWORKS)
def test_every_budget_has_a_verified_plan_close_to_its_bound(network: str) -> None:
    for row in asked(network):
        assert row.gap is not None, f"{network} at {row.budget_percent} % has no plan"
        print(f"FIGURE {network} at {row.budget_percent} %: gap {100 * row.gap:.4f} % in {row.seconds:.2f} s")
        assert row.peak_bytes is not None
        assert row.peak_bytes <= row.budget_bytes
        assert row.gap <= allowed_gap(row)


@pytest.mark.parametrize("network", NETWORKS)
def test_no_other_strategy_is_cheaper(network: str) -> None:
    for best in asked(network):
        for row in rows(network, best.budget_percent).values():
            assert row.overhead is None or row.overhead >= (best.overhead or 0) - ROUNDING, row


@pytest.mark.parametrize("network", NETWORKS)
def test_more_memory_never_costs_more(network: str) -> None:
    overheads = [row.overhead or 0.0 for row in asked(network)]
    assert overheads == sorted(overheads)


def test_the_median_rung_is_told() -> None:
    seconds = [row.seconds for network in NETWORKS for row in asked(network) if row.nodes <= 400]
    print(f"FIGURE median rung up to 400 nodes: {statistics.median(seconds):.2f} s of {len(seconds)}")
    assert seconds
