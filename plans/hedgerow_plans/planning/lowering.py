"""From an operation sequence to a plan: lifetimes, offsets, steps with frees right after the last use, and the promise.

Every strategy ends here, so that each of them only has to say what runs when.
"""

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Row
from dataclasses import dataclass

from hedgerow_plans.graph.ir import Section, round_up
from hedgerow_plans.plan import Compute, Free, PageIn, PageOut, Plan, Promise, Recompute, Step, Update
from hedgerow_plans.planning.bounds import bounds
from hedgerow_plans.planning.layout import QUICK, Effort, Interval, lay_out
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Fetch, Instance, Operation, Run, Sequence, first_runs, trace


@dataclass(frozen=True, slots=True)
class _Placed:
    """Offsets in the arena: of instances by tensor and birth, of scratch by position."""

    instance: dict[tuple[int, int], int]
    scratch: dict[int, int]


def lower(
    problem: Problem,
    sequence: Sequence,
    strategy: str,
    keep_going: Callable[[], bool] = lambda: True,
    effort: Effort = QUICK,
) -> Plan:
    """Turn a sequence into a plan; raise ValueError if the sequence cannot be run."""
    instances = trace(problem, sequence)
    placed = _place(problem, sequence, instances, lambda lives: lay_out(lives, keep_going, effort).offsets)
    begin, body, finish = _steps(problem, sequence, instances, placed)
    return Plan(
        graph=problem.graph.name,
        strategy=strategy,
        micro_batch=problem.micro_batch,
        micro_batches=problem.micro_batches,
        begin=begin,
        body=body,
        finish=finish,
        promise=_promise(problem, sequence, _peak(problem, sequence, placed)),
        bounds=bounds(problem, sequence, instances),
    )


def _scratch(problem: Problem, sequence: Sequence) -> Iterator[tuple[int, int]]:
    for position, operation in enumerate(sequence.operations()):
        if isinstance(operation, Run) and problem.scratch_bytes[operation.node]:
            yield position, problem.scratch_bytes[operation.node]


def _place(
    problem: Problem, sequence: Sequence, instances: list[Instance], offsets_of: Callable[[list[Interval]], Row[int]]
) -> _Placed:
    scratch = list(_scratch(problem, sequence))
    lives = [_interval(problem.bytes[item.tensor], item.birth, item.last + 1) for item in instances]
    moments = [_interval(size, position, position + 1) for position, size in scratch]
    offsets = [problem.residents.bytes + offset for offset in offsets_of(lives + moments)]
    keys = [(item.tensor, item.birth) for item in instances]
    return _Placed(
        dict(zip(keys, offsets, strict=False)),
        dict(zip((position for position, _ in scratch), offsets[len(lives) :], strict=True)),
    )


def _interval(size: int, start: int, end: int) -> Interval:
    """Return aligned bytes; if they are the topmost, their rounding is nobody's."""
    return Interval(round_up(size), start, end, round_up(size) - size)


def _peak(problem: Problem, sequence: Sequence, placed: _Placed) -> int:
    tops = [problem.residents.exact_bytes]
    tops += [offset + problem.bytes[tensor] for (tensor, _), offset in placed.instance.items()]
    tops += [placed.scratch[position] + size for position, size in _scratch(problem, sequence)]
    return max(tops)


def _steps(
    problem: Problem, sequence: Sequence, instances: list[Instance], placed: _Placed
) -> tuple[tuple[Step, ...], tuple[Step, ...], tuple[Step, ...]]:
    steps: dict[Section, list[Step]] = {section: [] for section in Section}
    steps[Section.FINISH] += [Free(item.tensor) for item in instances if _outlives_body(sequence, item)]
    deaths: dict[int, list[int]] = {}
    for item in instances:
        if not item.output and not _outlives_body(sequence, item):
            deaths.setdefault(item.last, []).append(item.tensor)
    paged = {operation.tensor for operation in sequence.operations() if isinstance(operation, Fetch)}
    for position, (operation, first) in enumerate(first_runs(sequence)):
        section = steps[sequence.section_at(position)]
        section.append(_step(problem, operation, first, position, placed))
        if first and isinstance(operation, Run):
            section += [PageOut(tensor) for tensor in problem.makes[operation.node] if tensor in paged]
        section += [Free(tensor) for tensor in deaths.get(position, [])]
    return tuple(steps[Section.BEGIN]), tuple(steps[Section.BODY]), tuple(steps[Section.FINISH])


def _outlives_body(sequence: Sequence, item: Instance) -> bool:
    """Whether an instance's last reader is in the body, which must not free what it did not make."""
    return item.birth < len(sequence.begin) and sequence.section_at(item.last) is Section.BODY


def _step(problem: Problem, operation: Operation, first: bool, position: int, placed: _Placed) -> Step:
    if isinstance(operation, Fetch):
        return PageIn(operation.tensor, placed.instance[operation.tensor, position])
    node, scratch = operation.node, placed.scratch.get(position, 0)
    if problem.updates[node]:
        return Update(node, scratch)
    offsets = tuple(placed.instance[tensor, position] for tensor in problem.makes[node])
    return Compute(node, offsets, scratch) if first else Recompute(node, offsets, scratch)


def _promise(problem: Problem, sequence: Sequence, peak_bytes: int) -> Promise:
    flops = sequence_flops(problem, sequence)
    bytes_out, bytes_in = _paged_bytes(problem, sequence)
    costs = problem.costs
    nanoseconds = problem.nanoseconds(flops)
    nanoseconds += _transfer_nanoseconds(bytes_out, costs.page_out_bytes_per_second)
    nanoseconds += _transfer_nanoseconds(bytes_in, costs.page_in_bytes_per_second)
    return Promise(peak_bytes, nanoseconds, sequence_picojoules(problem, sequence), flops)


def sequence_picojoules(problem: Problem, sequence: Sequence) -> int:
    """Return what a whole optimiser step costs, paging included."""
    bytes_out, bytes_in = _paged_bytes(problem, sequence)
    paging = bytes_out * problem.costs.picojoules_per_byte_out + bytes_in * problem.costs.picojoules_per_byte_in
    return problem.picojoules(sequence_flops(problem, sequence)) + paging


def _repeats(problem: Problem, sequence: Sequence) -> Iterator[tuple[Operation, bool, int]]:
    for position, (operation, first) in enumerate(first_runs(sequence)):
        in_body = sequence.section_at(position) is Section.BODY
        yield operation, first, problem.micro_batches if in_body else 1


def sequence_flops(problem: Problem, sequence: Sequence) -> int:
    """Return the operations of a whole optimiser step."""
    return sum(
        problem.flops[operation.node] * times
        for operation, _, times in _repeats(problem, sequence)
        if isinstance(operation, Run)
    )


def _paged_bytes(problem: Problem, sequence: Sequence) -> tuple[int, int]:
    fetched = {operation.tensor for operation in sequence.operations() if isinstance(operation, Fetch)}
    bytes_out = bytes_in = 0
    for operation, first, times in _repeats(problem, sequence):
        if isinstance(operation, Fetch):
            bytes_in += times * problem.bytes[operation.tensor]
        elif first:
            made = fetched.intersection(problem.makes[operation.node])
            bytes_out += times * sum(problem.bytes[tensor] for tensor in made)
    return bytes_out, bytes_in


def _transfer_nanoseconds(byte_count: int, bytes_per_second: int | None) -> int:
    if byte_count == 0:
        return 0
    if bytes_per_second is None:
        raise ValueError("The sequence pages, but the device class has no storage bandwidth; give it one.")
    return -(-byte_count * 1_000_000_000 // bytes_per_second)
