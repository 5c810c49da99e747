"""From a plan to three flat lists of calls bound to the arena.

Steps are walked once, with the view of every live tensor at hand; a free only forgets the view. What remains at the end
of the body is what the graph hands out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hedgerow_agent.core.arena import Arena
from hedgerow_agent.core.blas import find_blas
from hedgerow_agent.core.errors import CoreError
from hedgerow_agent.core.forms import Shapes
from hedgerow_agent.core.kernels import bind
from hedgerow_agent.core.kernels.call import Array, Bound, Call, Runtime
from hedgerow_agent.core.paging import PageFile
from hedgerow_agent.core.product_threads import with_threads
from hedgerow_agent.core.samples import loss_node
from hedgerow_plans.graph.ir import Graph, Node
from hedgerow_plans.plan import Compute, Free, PageIn, PageOut, Plan, Recompute, Step, Update


class Backend(Protocol):
    """What runs calls: numpy, or a compiled library."""

    name: str

    def bind(self, steps: Sequence[Call | Bound], arena: Array) -> tuple[Bound, ...]:
        """Return what runs these steps in their order; some are bound already, and calls speak of the arena's bytes."""
        ...


class NumpyBackend:
    """Binds every call to its numpy kernel; BLAS uses the threads that the process gave it, where they pay."""

    name = "numpy"

    def __init__(self) -> None:
        self._blas = find_blas()
        self._threads = 1 if self._blas is None else self._blas.threads()

    def bind(self, steps: Sequence[Call | Bound], _arena: Array) -> tuple[Bound, ...]:
        """Return one bound call for each step, and some that set the number of threads."""
        bound = [bind(step) if isinstance(step, Call) else step for step in steps]
        if self._blas is None or self._threads == 1:
            return tuple(bound)
        return tuple(with_threads(steps, bound, self._blas, self._threads))


@dataclass(frozen=True, slots=True)
class Workplace:
    """What plans are bound to: the same for every rung of a program."""

    arena: Arena
    residents: Mapping[str, Array]
    runtime: Runtime
    pages: PageFile
    backend: Backend = field(default_factory=NumpyBackend)
    shapes: dict[tuple[str, int], Shapes] = field(default_factory=dict)  # by graph and micro-batch


@dataclass(frozen=True, slots=True)
class Compiled:
    """One plan, ready to be replayed."""

    plan: Plan
    begin: tuple[Bound, ...]
    body: tuple[Bound, ...]
    finish: tuple[Bound, ...]
    losses: Array
    logits: Array | None  # None when it is gone by the end of the body


def compile_plan(plan: Plan, graph: Graph, workplace: Workplace) -> Compiled:
    """Bind every step of a plan."""
    walk = _Walk(plan, graph, workplace)
    begin = walk.section(plan.begin)
    body = walk.section(plan.body)
    loss = loss_node(graph)
    losses = walk.find(loss, loss.outputs[0])
    logits = walk.live.get(loss.inputs[0])
    return Compiled(plan, begin, body, walk.section(plan.finish), losses, logits)


class _Walk:
    def __init__(self, plan: Plan, graph: Graph, workplace: Workplace) -> None:
        key = (graph.name, plan.micro_batch)
        if key not in workplace.shapes:
            workplace.shapes[key] = Shapes(graph, plan.micro_batch)
        self._graph = graph
        self._shapes = workplace.shapes[key]
        self._workplace = workplace
        self.live: dict[str, Array] = dict(workplace.residents)

    def section(self, steps: tuple[Step, ...]) -> tuple[Bound, ...]:
        """Bind one section; frees leave no call behind."""
        calls = [call for call in map(self._step, steps) if call is not None]
        return self._workplace.backend.bind(calls, self._workplace.arena.whole)

    def find(self, node: Node, name: str) -> Array:
        """Return the view of a live tensor."""
        if name not in self.live:
            raise CoreError(f"Node {node.name} needs {name}, which is not in memory; the plan was not verified.")
        return self.live[name]

    def _step(self, step: Step) -> Call | Bound | None:
        match step:
            case Compute(node, offsets, scratch_offset) | Recompute(node, offsets, scratch_offset):
                return self._run(self._graph.nodes[node], offsets, scratch_offset)
            case Update(node, scratch_offset):
                return self._run(self._graph.nodes[node], (), scratch_offset)
            case Free(tensor):
                self.live.pop(self._graph.tensors[tensor].name, None)
                return None
            case PageOut(tensor):
                name = self._graph.tensors[tensor].name
                return self._workplace.pages.bind_out(name, self._stored(name))
            case PageIn(tensor, offset):
                name = self._graph.tensors[tensor].name
                self._place(name, offset)
                return self._workplace.pages.bind_in(name, self._stored(name))

    def _run(self, node: Node, offsets: tuple[int, ...], scratch_offset: int) -> Call:
        for name, offset in zip(node.outputs, offsets, strict=True):
            self._place(name, offset)
        form = self._shapes.node(node)
        views = [[self.find(node, name) for name in names] for names in (node.inputs, node.outputs, node.updates)]
        if form.as_stored:
            views = [[self._stored(name) for name in names] for names in (node.inputs, node.outputs, node.updates)]
        scratch = self._workplace.arena.lay(scratch_offset, form.scratch)
        inputs, outputs, updates = map(tuple, views)
        runtime, orders = self._workplace.runtime, (form.input_orders, form.output_orders)
        return Call(node, inputs, outputs, updates, scratch, runtime, *orders, form.flops, form.update_orders)

    def _place(self, name: str, offset: int) -> None:
        self.live[name] = self._workplace.arena.lay(offset, self._shapes.tensor(name))

    def _stored(self, name: str) -> Array:
        return self._shapes.stored(name, self.live[name])
