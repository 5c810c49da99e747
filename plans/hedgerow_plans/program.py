"""From what a job asks for to the program its devices run: model, method, gradients, residents, ladder, evaluation.

The caller verifies the result; the check must not depend on who planned.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hedgerow_plans.graph.ir import Role
from hedgerow_plans.methods.adapted import Adapted
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Infeasible, Plan, Program
from hedgerow_plans.planning.ladder import Each, Searching, Task, build_ladder, plan_evaluation, training_problems
from hedgerow_plans.planning.problem import DeviceCosts, Measures
from hedgerow_plans.planning.residents import Residents, place_residents
from hedgerow_plans.planning.strategies import SEQUENCES, Offering, keep_all
from hedgerow_plans.planning.strategies.limits import Limits, forever
from hedgerow_plans.training import forward_only
from hedgerow_plans.training.clipping import Clipping
from hedgerow_plans.training.forward_only import ForwardOnlyGraphs
from hedgerow_plans.training.graphs import TrainingGraphs, differentiate
from hedgerow_plans.training.optimizers import Optimizer
from hedgerow_plans.tuning import tuned

__all__ = ["DeviceCosts", "ProgramRequest", "build_program", "difference"]


@dataclass(frozen=True, slots=True)
class ProgramRequest:
    """Everything a program depends on; equal requests give equal bytes."""

    model: str  # a name of the zoo
    method: Method
    optimizer: Optimizer
    batch_size: int
    device_class: str
    costs: DeviceCosts
    budget_bytes: int  # no rung needs more
    floor_bytes: int | None = None  # the lowest budget a rung is wanted for; None: as low as possible
    classes: int | None = None  # None: the model's own number
    input_shape: tuple[int, ...] | None = None  # None: the model's own
    frozen_outside: bool = False  # frozen parameters live in flash or a mapped file, not in the arena
    seed: int = 0
    loss: str | None = None  # None: the model's own
    clipping: Clipping | None = None  # of gradients; None: they are used as they are


def build_program(
    request: ProgramRequest,
    keep_going: Callable[[], bool] = forever,
    measures: Measures | None = None,
    searching: Sequence[Searching] = (),
    *,
    quick: Mapping[str, Offering] = SEQUENCES,
    each: Each = map,
) -> Program | Infeasible:
    """Plan everything; raise GraphError with a sentence if model, method or settings make no graph.

    `searching`, `quick` and `each` are the ladder's: which strategies are asked, and where they run.
    """
    graphs = _graphs(request)
    residents = place_residents(graphs.all(), _frozen(graphs) if request.frozen_outside else ())
    task = Task(residents, request.costs, request.batch_size, measures or Measures())
    limits = Limits(request.budget_bytes, request.seed, keep_going)
    problems = training_problems(task, graphs.direct, graphs.in_pieces)
    rungs = build_ladder(problems, limits, request.floor_bytes, searching, quick=quick, each=each)
    if isinstance(rungs, Infeasible) and graphs.in_pieces is not None:
        return _forward_only(request, task, limits, rungs)
    if isinstance(rungs, Infeasible):
        return replace(rungs, reason=" ".join(filter(None, (rungs.reason, graphs.why_whole))))
    return _with_evaluation(request, task, graphs, rungs, limits)


def _forward_only(request: ProgramRequest, task: Task, limits: Limits, refused: Infeasible) -> Program | Infeasible:
    """Plan without a backward pass; all rungs do without, since the two do not train to the same parameters."""
    graphs = _forward_only_graphs(request)
    residents = place_residents(graphs.all(), task.residents.mapped)
    lean = replace(task, residents=residents)
    problems = training_problems(lean, graphs.train, graphs.train)
    quick = {forward_only.NAME: keep_all.sequences}  # without a backward pass nothing waits to be read again
    rungs = build_ladder(problems, limits, request.floor_bytes, quick=quick)
    if isinstance(rungs, Infeasible):
        return rungs if rungs.needed_bytes < refused.needed_bytes else refused
    return _with_evaluation(request, lean, graphs, rungs, limits)


def _forward_only_graphs(request: ProgramRequest) -> ForwardOnlyGraphs:
    """Return the graphs as they are: memory that no backward plan fits is too short to be spent on speed."""
    adapted, loss = _adapted(request)
    evaluate = _differentiated(request).evaluate
    return forward_only.forward_only(adapted.graph, request.optimizer, request.batch_size, loss, evaluate)


def difference(program: Program, request: ProgramRequest) -> str:
    """Return what about a program is not what was asked for, in a few words; empty if nothing is.

    For a program that somebody else kept: `verify` says that it does what its graphs say, this that they are ours.
    """
    graphs: TrainingGraphs | ForwardOnlyGraphs = _graphs(request)
    if isinstance(graphs, TrainingGraphs) and all(rung.graph == forward_only.NAME for rung in program.rungs):
        graphs = _forward_only_graphs(request)
    asked = {graph.name: graph for graph in graphs.all()}
    facts = {
        "model": program.model == request.model,
        "method": program.method == request.method.name,
        "device class": program.device_class == request.device_class,
        "batch size": program.batch_size == request.batch_size,
        "trained tensors": program.delta == graphs.delta,
        "mapped tensors": program.mapped == (tuple(sorted(_frozen(graphs))) if request.frozen_outside else ()),
        "graphs": all(asked.get(graph.name) == graph for graph in program.graphs),
        "training graph": all(rung.graph != graphs.evaluate.name for rung in program.rungs),
        "evaluation graph": program.evaluation.graph == graphs.evaluate.name,
    }
    return ", ".join(name for name, holds in facts.items() if not holds)


def _adapted(request: ProgramRequest) -> tuple[Adapted, str]:
    """Return the model under the method, and the loss."""
    adapted = request.method.apply(zoo.build(request.model, request.classes, request.input_shape))
    return adapted, request.loss or zoo.entry(request.model).loss


def _differentiated(request: ProgramRequest) -> TrainingGraphs:
    adapted, loss = _adapted(request)
    return differentiate(adapted.graph, request.optimizer, request.batch_size, loss, request.clipping)


def _graphs(request: ProgramRequest) -> TrainingGraphs:
    graphs = _differentiated(request)
    outside = _frozen(graphs) if request.frozen_outside else ()
    return tuned(graphs, request.budget_bytes, request.batch_size, outside)


def _frozen(graphs: TrainingGraphs | ForwardOnlyGraphs) -> list[str]:
    return [tensor.name for tensor in graphs.evaluate.resident() if tensor.role is Role.FROZEN]


def _with_evaluation(
    request: ProgramRequest,
    task: Task,
    graphs: TrainingGraphs | ForwardOnlyGraphs,
    rungs: tuple[Plan, ...],
    limits: Limits,
) -> Program | Infeasible:
    """Add the evaluation plan below the smallest rung, leaving out rungs too small for any evaluation."""
    evaluation = plan_evaluation(task, graphs.evaluate, limits)
    if isinstance(evaluation, Infeasible):
        return evaluation
    for count in range(len(rungs), 0, -1):
        ceiling = Limits(rungs[count - 1].promise.peak_bytes, limits.seed, limits.keep_going)
        below = plan_evaluation(task, graphs.evaluate, ceiling)
        if isinstance(below, Plan):
            return _assemble(request, task.residents, graphs, rungs[:count], below)
    return _evaluation_needs_more(evaluation, limits)


def _evaluation_needs_more(evaluation: Plan, limits: Limits) -> Infeasible:
    needed = evaluation.promise.peak_bytes
    reason = f"Evaluating one sample needs {needed} bytes, more than any rung has; raise the budget."
    return Infeasible(needed, limits.budget_bytes, evaluation.bounds.working_set_bytes, "", reason)


def _assemble(
    request: ProgramRequest,
    residents: Residents,
    graphs: TrainingGraphs | ForwardOnlyGraphs,
    rungs: tuple[Plan, ...],
    evaluation: Plan,
) -> Program:
    remarks = (graphs.why_whole,) if isinstance(graphs, TrainingGraphs) else forward_only.REMARKS
    used = {plan.graph for plan in (*rungs, evaluation)}
    return Program(
        model=request.model,
        method=request.method.name,
        device_class=request.device_class,
        batch_size=request.batch_size,
        graphs=tuple(graph for graph in graphs.all() if graph.name in used),
        delta=graphs.delta,
        resident=residents.placements,
        resident_bytes=residents.bytes,
        mapped=tuple(sorted(residents.mapped)),
        rungs=rungs,
        evaluation=evaluation,
        remarks=tuple(filter(None, remarks)),
    )
