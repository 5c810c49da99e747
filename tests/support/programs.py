"""Programs put together by hand from single plans, so that tests decide which kinds of rung there are.

What the planner would choose for a budget is tested elsewhere; here every way of running a graph is wanted, paging too.
"""

from dataclasses import replace

from hedgerow_plans.graph.ir import Graph, Section
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Plan, Program
from hedgerow_plans.planning.lowering import lower
from hedgerow_plans.planning.problem import DeviceCosts, Problem, pose
from hedgerow_plans.planning.residents import place_residents
from hedgerow_plans.planning.sequence import Fetch, Operation, Run, Sequence, straight
from hedgerow_plans.planning.strategies.sqrt_n import forward_nodes, segmented
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Optimizer, Sgd
from hedgerow_plans.tuning import tuned
from hedgerow_plans.verify import verify

COSTS = DeviceCosts(10**9, 1, 10**6, 10**6, 1, 1)
MOMENTUM = Sgd(0.9, 1e-4)


def make_program(
    model: str,
    method: Method,
    batch_size: int = 12,
    evaluation_batch: int = 1,
    input_shape: tuple[int, ...] | None = None,
    *,
    budget_bytes: int = 0,
    optimizer: Optimizer = MOMENTUM,
) -> Program:
    """Return keep-all, every segmentation up to 5, paging, and micro-batches of them; all verified."""
    graph = zoo.build(model, input_shape=input_shape)
    return program_of(graph, method, batch_size, evaluation_batch, budget_bytes=budget_bytes, optimizer=optimizer)


def program_of(
    graph: Graph,
    method: Method,
    batch_size: int = 12,
    evaluation_batch: int = 1,
    loss: str = "cross_entropy",
    *,
    budget_bytes: int = 0,
    optimizer: Optimizer = MOMENTUM,
) -> Program:
    """Return the same for any forward graph and loss; with a large budget, graphs that were tuned for speed."""
    graphs = tuned(differentiate(method.apply(graph).graph, optimizer, batch_size, loss), budget_bytes, batch_size)
    residents = place_residents(graphs.all())
    whole = pose(graphs.direct, residents, COSTS, micro_batch=batch_size)
    rungs = list(_ways(whole))
    for count in (2, 3, batch_size) if graphs.in_pieces else ():
        rungs += _ways(
            pose(graphs.accumulating, residents, COSTS, micro_batch=batch_size // count, micro_batches=count)
        )
    evaluation = pose(graphs.evaluate, residents, COSTS, micro_batch=evaluation_batch)
    program = Program(
        model=graph.name,
        method=method.name,
        device_class="test",
        batch_size=batch_size,
        graphs=graphs.all(),
        delta=graphs.delta,
        resident=residents.placements,
        resident_bytes=residents.bytes,
        mapped=tuple(sorted(residents.mapped)),
        rungs=tuple(rungs),
        evaluation=lower(evaluation, straight(evaluation), "evaluation"),
    )
    _check(program)
    return program


def with_keep_all(program: Program, plan: Plan) -> Program:
    """Return the program with one rung: keep-all at the micro-batch of a plan."""
    residents = place_residents(program.graphs, program.mapped)
    assert residents.placements == program.resident
    problem = pose(
        program.graph(plan.graph),
        residents,
        COSTS,
        micro_batch=plan.micro_batch,
        micro_batches=plan.micro_batches,
    )
    return replace(program, rungs=(lower(problem, straight(problem), "keep-all"),))


def same_micro_batch(program: Program) -> list[int]:
    """Return the rungs that take the whole batch at once."""
    return [number for number, rung in enumerate(program.rungs) if rung.micro_batches == 1]


def _ways(problem: Problem) -> list[Plan]:
    forward = forward_nodes(problem)
    plans = [lower(problem, straight(problem), "keep-all")]
    plans += [lower(problem, segmented(problem, forward, count), f"segments-{count}") for count in (2, 3, 5)]
    return [*plans, lower(problem, _paged(problem, forward), "paging")]


def _paged(problem: Problem, forward: tuple[int, ...]) -> Sequence:
    """Page everything the backward pass reads of the forward pass: out at once, in right before its first reader."""
    made = {tensor for node in forward for tensor in problem.makes[node]}
    plain, body, fetched = straight(problem), list[Operation](), set[int]()
    for node in problem.section(Section.BODY):
        if node not in forward:
            wanted = [tensor for tensor in problem.reads[node] if tensor in made - fetched]
            body += map(Fetch, wanted)
            fetched.update(wanted)
        body.append(Run(node))
    return Sequence(plain.begin, tuple(body), plain.finish)


def _check(program: Program) -> None:
    for plan in (*program.rungs, program.evaluation):
        violations = verify(
            plan,
            program.graph(plan.graph),
            resident=program.resident,
            resident_bytes=program.resident_bytes,
            mapped=program.mapped,
        )
        assert not violations, violations
