"""Random small networks with real operators, and the problems they pose; shared by planning and verification tests."""

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st

from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph, Node, Role, Tensor
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.methods.lora import Lora
from hedgerow_plans.methods.selection import Full, Last
from hedgerow_plans.plan import Plan
from hedgerow_plans.planning.problem import DeviceCosts, Measures, Problem, pose
from hedgerow_plans.planning.residents import Residents, place_residents
from hedgerow_plans.training.graphs import TrainingGraphs, differentiate
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.tuning import LEAST_BUDGET_BYTES
from hedgerow_plans.verify import Violation, verify
from support.sampling import repetitions

COSTS = DeviceCosts(
    flops_per_second=1_000_000_000,
    picojoules_per_flop=100,
    page_out_bytes_per_second=1_000_000,
    page_in_bytes_per_second=2_000_000,
    picojoules_per_byte_out=7,
    picojoules_per_byte_in=3,
)

PLENTY = 2**40

ENOUGH = LEAST_BUDGET_BYTES - 1
"""More than small models need, and little enough that every budget up to it plans the same graphs."""

UNHURRIED = settings(max_examples=repetitions(20, 200), deadline=None)
"""Planning takes as long as it takes on a busy machine; fewer examples, each a whole job."""


def odd_scratch(node: Node, _tensors: Mapping[str, Tensor], micro_batch: int) -> int:
    """Return scratch of all kinds of sizes, none for some nodes, so that layouts are not all alike."""
    return len(node.name) * 37 * micro_batch % 300 if len(node.name) % 3 else 0


MEASURES = Measures(scratch_bytes=odd_scratch)


@st.composite
def networks(draw: st.DrawFn, most_layers: int = 8) -> Graph:
    """Draw a forward graph of linear layers, rectifiers, scales and residual sums."""
    build = Builder("random")
    width = draw(st.integers(1, 24))
    x = build.input((width,))
    earlier = [x]
    for number in range(draw(st.integers(0, most_layers))):
        kind = draw(st.sampled_from(("linear", "linear", "relu", "scale", "residual")))
        name = f"{kind}{number}"
        if kind == "linear":
            x = build.linear(name, x, draw(st.integers(1, 24)))
        elif kind == "scale":
            x = build.node(name, "scale", (x,), scale=0.5)
        elif kind == "residual" and (same := [other for other in earlier if build.shape(other) == build.shape(x)]):
            x = build.add(name, x, draw(st.sampled_from(same)))
        else:
            x = build.relu(name, x)
        earlier.append(x)
    return build.graph(build.linear("logits", x, draw(st.integers(2, 5))))


METHODS: st.SearchStrategy[Method] = st.sampled_from([Full(), Last(), Lora(2), Lora(3, alpha=6.0)])


@dataclass(frozen=True, slots=True)
class Case:
    """A training job in small."""

    graphs: TrainingGraphs
    residents: Residents
    batch_size: int

    def problems(self) -> list[Problem]:
        """Return the direct problem, the accumulating ones of all micro-batches, and the evaluation."""
        batch = self.batch_size
        sizes = [(self.graphs.direct, batch, 1), (self.graphs.evaluate, batch, 1)]
        sizes += [(self.graphs.accumulating, size, batch // size) for size in range(1, batch) if batch % size == 0]
        return [self.problem(*size) for size in sizes]

    def problem(self, graph: Graph, micro_batch: int, micro_batches: int) -> Problem:
        """Return one of the graphs as a problem."""
        return pose(
            graph,
            self.residents,
            COSTS,
            micro_batch=micro_batch,
            micro_batches=micro_batches,
            measures=MEASURES,
        )


@st.composite
def cases(draw: st.DrawFn, batch_sizes: tuple[int, ...] = (1, 2, 4, 6)) -> Case:
    """Draw a network, a method, an optimiser, a batch size, and where frozen parameters live."""
    adapted = draw(METHODS).apply(draw(networks()))
    batch_size = draw(st.sampled_from(batch_sizes))
    graphs = differentiate(adapted.graph, Sgd(draw(st.sampled_from((0.0, 0.9)))), batch_size)
    frozen = [tensor.name for tensor in graphs.direct.resident() if tensor.role is Role.FROZEN]
    return Case(graphs, place_residents(graphs.all(), frozen if draw(st.booleans()) else ()), batch_size)


def violations(problem: Problem, plan: Plan, budget_bytes: int | None = None) -> tuple[Violation, ...]:
    """Verify a plan against the problem it was made for."""
    return verify(
        plan,
        problem.graph,
        resident=problem.residents.placements,
        resident_bytes=problem.residents.bytes,
        mapped=tuple(problem.residents.mapped),
        budget_bytes=budget_bytes,
        batch_size=problem.micro_batch * problem.micro_batches,
        scratch_bytes=odd_scratch,
    )
