"""The policy flip: the same graph and budget are best recomputed on one chip and best paged on another."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hedgerow_operator.planning.bare import BarePlan, Request, plan_bare
from hedgerow_plans.accounting.poet.networks import problem
from hedgerow_plans.bare import BareProblem

INSTANCES = (
    ("linear", 3_500),
    ("resnet18_cifar", 737_719),
    ("resnet18", 17_000_000),
    ("bert", 191_889_408),
    ("vgg16_cifar", 1_200_000),
)
"""Networks with budgets; in the last, recomputing some layers is so cheap that every chip does it."""
CHIPS = ("m4", "m0", "a72")
DEADLINE_FACTOR = 1.5
_PICO = 10**12


@dataclass(frozen=True, slots=True)
class Policy:
    """How the best plan found for a graph on a chip saves memory."""

    network: str
    budget_bytes: int
    chip: str
    recomputations: int
    page_ins: int
    recomputing_joules: float
    paging_joules: float
    joules: float  # of the whole step
    gap: float

    @property
    def word(self) -> str:
        """Say what the energy for less memory is spent on."""
        return "recomputes" if self.recomputing_joules > self.paging_joules else "pages"


def policies(instances: Iterable[tuple[str, int]] = INSTANCES) -> Iterator[Policy]:
    """Plan every instance on every chip; moves are counted, so the table is the same every time."""
    for network, budget_bytes in instances:
        for chip in CHIPS:
            posed = problem(network, chip)
            request = Request(budget_bytes, DEADLINE_FACTOR, reproducible=True)
            found = plan_bare(posed, request)
            if isinstance(found, BarePlan):
                yield _policy(network, budget_bytes, chip, posed, found)


def _policy(network: str, budget_bytes: int, chip: str, posed: BareProblem, found: BarePlan) -> Policy:
    computed = Counter(node for kind, node in found.steps if kind == "compute")
    recomputing = sum(posed.cost[node] * (times - 1) for node, times in computed.items())
    return Policy(
        network=network,
        budget_bytes=budget_bytes,
        chip=chip,
        recomputations=computed.total() - len(computed),
        page_ins=sum(kind == "page_in" for kind, _ in found.steps),
        recomputing_joules=recomputing / _PICO,
        paging_joules=(found.cost - found.no_overhead_cost - recomputing) / _PICO,
        joules=found.cost / _PICO,
        gap=found.gap,
    )
