"""A plan as a picture: which tensor lies where at which step, and which steps pay for the memory that was saved.

A chart is plain numbers; who draws it decides on colours and files. Steps are counted over begin, body and finish;
frees take no time, and the body is drawn once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hedgerow_plans.bare import BareProblem
from hedgerow_plans.bare import Step as BareStep
from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.plan import Compute, Free, PageIn, PageOut, Plan, Program, Recompute, Step, Update
from hedgerow_plans.planning.layout import Interval, lay_out


class Kind(StrEnum):
    """What a block of memory holds."""

    RESIDENT = "parameters and optimiser state"
    ACTIVATION = "activation"
    RETURNED = "recomputed or paged in"
    GRADIENT = "gradient"
    TOTAL = "sum of gradients"
    SCRATCH = "scratch"


class Mark(StrEnum):
    """A step that a plan without a budget would not have."""

    RECOMPUTE = "recompute"
    PAGE_OUT = "page out"
    PAGE_IN = "page in"


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes in use from one step until before another."""

    name: str
    kind: Kind
    first: int
    end: int
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Chart:
    """What there is to draw."""

    title: str
    steps: int
    blocks: tuple[Block, ...]
    marks: tuple[tuple[int, Mark], ...]
    budget_bytes: int
    peak_bytes: int

    def live_bytes(self) -> list[int]:
        """Return the bytes in use at each step, wherever they lie."""
        changes = [0] * (self.steps + 1)
        for block in self.blocks:
            changes[block.first] += block.bytes
            changes[block.end] -= block.bytes
        total, live = 0, []
        for change in changes[:-1]:
            total += change
            live.append(total)
        return live


def chart_plan(program: Program, plan: Plan, budget_bytes: int) -> Chart:
    """Return the chart of a plan of a program."""
    graph = program.graph(plan.graph)
    pen = _Pen(graph, plan.micro_batch)
    for section in plan.sections():
        for step in section:
            pen.draw(step)
    tensors = graph.by_name()
    residents = [(place.tensor, place.offset) for place in program.resident if place.tensor in tensors]
    blocks = [Block(name, Kind.RESIDENT, 0, pen.now, at, tensors[name].bytes(1)) for name, at in residents]
    title = (
        f"{program.model} by {program.method} on {program.device_class}: {plan.strategy}, "
        f"micro-batch {plan.micro_batch} of {program.batch_size}"
    )
    return Chart(title, pen.now, (*blocks, *pen.finished()), tuple(pen.marks), budget_bytes, plan.promise.peak_bytes)


@dataclass(slots=True)
class _Pen:
    """Follows the steps of a plan and notes what it sees."""

    graph: Graph
    micro_batch: int
    now: int = 0
    marks: list[tuple[int, Mark]] = field(default_factory=list)
    _open: dict[int, tuple[int, int, Kind]] = field(default_factory=dict)  # by tensor: first step, offset, what it is
    _done: list[Block] = field(default_factory=list)

    def draw(self, step: Step) -> None:
        """Note one step."""
        match step:
            case Free(tensor):
                self._close(tensor)
                return
            case PageOut(_):
                self.marks.append((self.now, Mark.PAGE_OUT))
            case PageIn(tensor, offset):
                self.marks.append((self.now, Mark.PAGE_IN))
                self._open[tensor] = (self.now, offset, Kind.RETURNED)
            case Recompute(node, offsets, scratch_offset):
                self.marks.append((self.now, Mark.RECOMPUTE))
                self._run(node, offsets, scratch_offset, returned=True)
            case Compute(node, offsets, scratch_offset):
                self._run(node, offsets, scratch_offset, returned=False)
            case Update(node, scratch_offset):
                self._run(node, (), scratch_offset, returned=False)
        self.now += 1

    def finished(self) -> list[Block]:
        """Return all blocks; what nobody freed is there until the end."""
        for tensor in list(self._open):
            self._close(tensor)
        return self._done

    def _run(self, node: int, offsets: Sequence[int], scratch_offset: int, *, returned: bool) -> None:
        called, tensors = self.graph.nodes[node], self.graph.by_name()
        for name, offset in zip(called.outputs, offsets, strict=False):
            at = next(number for number, tensor in enumerate(self.graph.tensors) if tensor.name == name)
            self._open[at] = (self.now, offset, Kind.RETURNED if returned else _kind(name))
        if scratch := table.scratch_bytes(called, tensors, self.micro_batch):
            name = f"scratch of {called.name}"
            self._done.append(Block(name, Kind.SCRATCH, self.now, self.now + 1, scratch_offset, scratch))

    def _close(self, tensor: int) -> None:
        first, offset, kind = self._open.pop(tensor)
        held = self.graph.tensors[tensor]
        self._done.append(Block(held.name, kind, first, self.now, offset, held.bytes(self.micro_batch)))


def _kind(name: str) -> Kind:
    if name.startswith("sum."):
        return Kind.TOTAL
    return Kind.GRADIENT if name.startswith("grad.") else Kind.ACTIVATION


def chart_bare(title: str, problem: BareProblem, steps: Sequence[BareStep], budget_bytes: int) -> Chart:
    """Return the chart of a plan for a bare problem; it has no offsets, so it is laid out for the picture."""
    now, born, computed = 0, dict[int, tuple[int, Kind]](), set[int]()
    lives: list[tuple[int, int, int, Kind]] = []
    marks: list[tuple[int, Mark]] = []
    for kind, node in steps:
        if kind == "free":
            lives.append((node, born[node][0], now, born.pop(node)[1]))
            continue
        if kind == "page_out":
            marks.append((now, Mark.PAGE_OUT))
        else:
            returned = kind == "page_in" or node in computed
            if returned:
                marks.append((now, Mark.PAGE_IN if kind == "page_in" else Mark.RECOMPUTE))
            born[node] = (now, Kind.RETURNED if returned else Kind.ACTIVATION)
            computed.add(node)
        now += 1
    placed = lay_out([Interval(problem.bytes[node], first, end) for node, first, end, _ in lives])
    blocks = tuple(
        Block(str(node), kind, first, end, offset, problem.bytes[node])
        for (node, first, end, kind), offset in zip(lives, placed.offsets, strict=True)
    )
    return Chart(title, now, blocks, tuple(marks), budget_bytes, placed.top)
