"""A plan before it has offsets: a sequence of operations, from which lifetimes follow.

A strategy only says what runs when. The first run of a node is its computation, each later one a recomputation. An
instance of a tensor is born when its node runs or when it is fetched from storage, and dies right after its last use
before its next instance. Any sequence that holds every node once in a working order stays right when more runs are put
in, as long as nothing reads a tensor that was changed in place meanwhile.

The body repeats: what `begin` makes and somebody reads later stays through all of the body, graph outputs stay until
its end, and nothing the body makes is read after it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hedgerow_plans.graph.ir import Section
from hedgerow_plans.planning.problem import Problem


@dataclass(frozen=True, slots=True)
class Run:
    """Run a node."""

    node: int


@dataclass(frozen=True, slots=True)
class Fetch:
    """Page a tensor in; it is paged out right after its first computation."""

    tensor: int


Operation = Run | Fetch


@dataclass(frozen=True, slots=True)
class Sequence:
    """Operations by section."""

    begin: tuple[Operation, ...]
    body: tuple[Operation, ...]
    finish: tuple[Operation, ...]

    def operations(self) -> tuple[Operation, ...]:
        """Return all operations in order; positions in it are the time of a plan."""
        return self.begin + self.body + self.finish

    def section_at(self, position: int) -> Section:
        """Return the section of a position."""
        if position < len(self.begin):
            return Section.BEGIN
        return Section.BODY if position < self.body_end else Section.FINISH

    @property
    def body_end(self) -> int:
        """First position after the body."""
        return len(self.begin) + len(self.body)


@dataclass(slots=True)
class Instance:
    """One life of a tensor, from its birth through its last use, both inclusive."""

    tensor: int
    birth: int
    last: int
    output: bool = False  # read from outside when the body ends, and never freed by a step


def straight(problem: Problem) -> Sequence:
    """Return the sequence that runs every node once in the graph's order."""
    begin, body, finish = (tuple(map(Run, problem.section(section))) for section in Section)
    return Sequence(begin, body, finish)


def trace(problem: Problem, sequence: Sequence) -> list[Instance]:
    """Return the instances in order of birth; raise ValueError if the sequence cannot be run."""
    instances: list[Instance] = []
    current: dict[int, Instance] = {}
    for position, operation in enumerate(sequence.operations()):
        if position == sequence.body_end:
            _close_body(problem, sequence, current)
        for tensor in _uses(problem, operation):
            _use(problem, sequence, current, tensor, position)
        for tensor in born(problem, operation):
            current[tensor] = Instance(tensor, position, position)
            instances.append(current[tensor])
    if sequence.body_end == len(sequence.operations()):
        _close_body(problem, sequence, current)
    _keep_through_body(sequence, instances)
    return instances


def born(problem: Problem, operation: Operation) -> tuple[int, ...]:
    """Return the tensors that an operation brings into memory."""
    return problem.makes[operation.node] if isinstance(operation, Run) else (operation.tensor,)


def _uses(problem: Problem, operation: Operation) -> tuple[int, ...]:
    return problem.reads[operation.node] if isinstance(operation, Run) else ()


def _use(problem: Problem, sequence: Sequence, current: dict[int, Instance], tensor: int, position: int) -> None:
    instance = current.get(tensor)
    name = problem.graph.tensors[tensor].name
    if instance is None:
        raise ValueError(f"Graph {problem.graph.name} reads {name} before any node made it.")
    if sequence.section_at(instance.birth) is Section.BODY and position >= sequence.body_end:
        raise ValueError(f"Graph {problem.graph.name} reads {name} after the body that made it; accumulate it instead.")
    instance.last = position


def _close_body(problem: Problem, sequence: Sequence, current: dict[int, Instance]) -> None:
    for tensor in problem.outputs & current.keys():
        current[tensor].last = sequence.body_end - 1
        current[tensor].output = True


def _keep_through_body(sequence: Sequence, instances: list[Instance]) -> None:
    start, end = len(sequence.begin), sequence.body_end
    for instance in instances:
        if instance.birth < start <= instance.last < end:
            instance.last = end - 1


def first_runs(sequence: Sequence) -> Iterator[tuple[Operation, bool]]:
    """Yield the operations with whether each is the first run of its node."""
    seen: set[int] = set()
    for operation in sequence.operations():
        yield operation, isinstance(operation, Run) and operation.node not in seen
        if isinstance(operation, Run):
            seen.add(operation.node)
