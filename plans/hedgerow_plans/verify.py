"""The independent check: a plan that passes can be executed, fits, and computes what keep-all computes.

Operator and agent both run it, and a plan that does not pass is never executed. It imports nothing of `planning`; all
they share is the graph's own knowledge: its rules and the operator table. Input may be hostile: the answer is then a
list of sentences, after work that grows with the size of the input and nothing else.

Graph outputs are read when the body ends and are given up then without a step; everything else the body makes it frees.
"""

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from hedgerow_plans.graph import table, validate
from hedgerow_plans.graph.ir import ALIGNMENT_BYTES, Graph, Node, Order, Role, Section, Tensor
from hedgerow_plans.graph.ops.batch_norm import is_batch
from hedgerow_plans.plan import Placement, Plan, Program
from hedgerow_plans.replay import Arena, Replay, ScratchBytes, reference_values
from hedgerow_plans.violations import Findings, Rule, TooManyViolations, Violation

__all__ = ["Rule", "Violation", "verify", "verify_program"]


def verify(
    plan: Plan,
    graph: Graph,
    *,
    resident: tuple[Placement, ...],
    resident_bytes: int,
    mapped: tuple[str, ...] = (),
    budget_bytes: int | None = None,
    batch_size: int | None = None,
    scratch_bytes: ScratchBytes = table.scratch_bytes,
) -> tuple[Violation, ...]:
    """Replay a plan on paper and return everything that is wrong with it; nothing means that it may be executed."""
    findings = Findings(f"Plan {plan.strategy} of graph {graph.name} at micro-batch {plan.micro_batch}")
    with contextlib.suppress(TooManyViolations):
        _check_graph(graph, findings)
        _check_batch(plan, batch_size, findings)
        if not findings.found:
            _check_residents(graph.resident(), resident, resident_bytes, mapped, findings)
            _check_once_a_step(plan, graph, findings)
            arena = Arena(resident_bytes)
            _follow(plan, Replay(graph, plan.micro_batch, arena, scratch_bytes, findings), findings)
            _check_peak(plan, max(arena.top, _resident_top(graph, resident)), budget_bytes, findings)
    return tuple(findings.found)


def verify_program(
    program: Program, budget_bytes: int | None = None, scratch_bytes: ScratchBytes = table.scratch_bytes
) -> tuple[Violation, ...]:
    """Check every rung, the evaluation plan, and what they have in common."""
    findings = Findings(f"Program for {program.model} by {program.method}")
    with contextlib.suppress(TooManyViolations):
        _check_program(program, findings)
    if findings.found:
        return tuple(findings.found)
    smallest = program.rungs[-1].promise.peak_bytes
    checks = [(rung, budget_bytes, program.batch_size) for rung in program.rungs]
    checks.append((program.evaluation, smallest, program.evaluation.micro_batch))
    violations: list[Violation] = []
    for plan, budget, batch in checks:
        violations += verify(
            plan,
            program.graph(plan.graph),
            resident=program.resident,
            resident_bytes=program.resident_bytes,
            mapped=program.mapped,
            budget_bytes=budget,
            batch_size=batch,
            scratch_bytes=scratch_bytes,
        )
    return tuple(violations)


def _check_graph(graph: Graph, findings: Findings) -> None:
    for problem in validate.problems(graph):
        findings.add(Rule.STRUCTURE, problem)


def _follow(plan: Plan, replay: Replay, findings: Findings) -> None:
    """Run begin, the body as often as it takes to see it repeat, and finish."""
    passes = min(plan.micro_batches, 2)  # what holds from the first to the second pass holds from each to the next
    reference = reference_values(replay.graph, passes)
    replay.run(plan.begin, Section.BEGIN, 0, reference)
    for number in range(passes):
        before = {tensor: live.offset for tensor, live in replay.live.items()}
        replay.run(plan.body, Section.BODY, number, reference)
        _give_up_outputs(replay, findings)
        _check_same(replay, before, "the body", findings)
    replay.run(plan.finish, Section.FINISH, 0, reference)
    _check_same(replay, {}, "the step", findings)


def _give_up_outputs(replay: Replay, findings: Findings) -> None:
    for name in dict.fromkeys(replay.graph.outputs):
        tensor = replay.position[name]
        if findings.check(tensor in replay.live, Rule.LIVENESS, f"output {name} is not live when the body ends."):
            replay.drop(tensor)


def _check_same(replay: Replay, before: dict[int, int], what: str, findings: Findings) -> None:
    after = {tensor: live.offset for tensor, live in replay.live.items()}
    for tensor in sorted(before.keys() | after.keys()):
        name = replay.graph.tensors[tensor].name
        if tensor not in before:
            findings.add(Rule.REPETITION, f"{what} leaves {name} behind; free it.")
            replay.drop(tensor)
        elif before[tensor] != after.get(tensor):
            findings.add(Rule.REPETITION, f"{what} does not leave {name} where it found it.")


def _check_peak(plan: Plan, top: int, budget_bytes: int | None, findings: Findings) -> None:
    promised = plan.promise.peak_bytes
    findings.check(promised == top, Rule.PEAK, f"it promises a peak of {promised} bytes, but reaches {top}.")
    within = budget_bytes is None or max(promised, top) <= budget_bytes
    findings.check(within, Rule.BUDGET, f"its peak of {max(promised, top)} bytes is over the budget of {budget_bytes}.")


def _check_batch(plan: Plan, batch_size: int | None, findings: Findings) -> None:
    sentence = f"{plan.micro_batches} micro-batches of {plan.micro_batch} do not make a batch of {batch_size}."
    whole = plan.micro_batch * plan.micro_batches
    possible = plan.micro_batch >= 1 and plan.micro_batches >= 1 and batch_size in (None, whole)
    findings.check(possible, Rule.BATCH, sentence)


def _check_once_a_step(plan: Plan, graph: Graph, findings: Findings) -> None:
    """With several micro-batches, what survives the step must not change in each of them."""
    tensors = graph.by_name()
    for node in (node for node in graph.nodes if plan.micro_batches > 1 and node.section is Section.BODY):
        if _learns_from_batch(node):
            findings.add(Rule.VALUES, f"node {node.name} works on statistics of a micro-batch, not of the batch.")
        for name in (name for name in node.updates if tensors[name].resident):
            findings.add(Rule.VALUES, f"node {node.name} changes {name} in each micro-batch, not once a step.")


def _resident_top(graph: Graph, resident: tuple[Placement, ...]) -> int:
    tensors = graph.by_name()
    return max((p.offset + tensors[p.tensor].bytes(1) for p in resident if p.tensor in tensors), default=0)


def _check_residents(
    tensors: Iterable[Tensor],
    resident: tuple[Placement, ...],
    resident_bytes: int,
    mapped: tuple[str, ...],
    findings: Findings,
) -> None:
    """Every resident tensor has one place of its own below `resident_bytes`, or lives outside the arena."""
    known = {tensor.name: tensor for tensor in tensors}
    place = {placement.tensor: placement.offset for placement in resident}
    findings.check(
        resident_bytes % ALIGNMENT_BYTES == 0, Rule.PLACEMENT, f"{resident_bytes} resident bytes are not aligned."
    )
    findings.check(len(place) == len(resident), Rule.STRUCTURE, "a resident tensor has two places.")
    arena = Arena(0)
    for name, tensor in known.items():
        inside, outside = name in place, name in mapped and tensor.role is Role.FROZEN
        if not findings.check(inside != outside, Rule.PLACEMENT, f"resident {name} must lie in one place.") or outside:
            continue
        offset, end = place[name], place[name] + tensor.bytes(1)
        aligned = offset % ALIGNMENT_BYTES == 0 and offset >= 0 and end <= resident_bytes
        findings.check(aligned, Rule.PLACEMENT, f"resident {name} at {offset} is misaligned or out of its part.")
        findings.check(arena.take(offset, end - offset), Rule.OVERLAP, f"resident {name} overlaps another.")


def _check_program(program: Program, findings: Findings) -> None:
    """Check what the plans of a program have in common."""
    graphs = {graph.name: graph for graph in program.graphs}
    findings.check(len(graphs) == len(program.graphs), Rule.STRUCTURE, "two graphs have the same name.")
    findings.check(bool(program.rungs), Rule.STRUCTURE, "it has no rungs.")
    for plan in (*program.rungs, program.evaluation):
        findings.check(plan.graph in graphs, Rule.STRUCTURE, f"a plan speaks of graph {plan.graph}, which is missing.")
    for graph in program.graphs:
        _check_graph(graph, findings)
    if findings.found:
        return
    peaks = [rung.promise.peak_bytes for rung in program.rungs]
    falling = all(above > below for above, below in pairwise(peaks))
    findings.check(falling, Rule.STRUCTURE, f"the rungs' peaks {peaks} do not fall.")
    _check_common_residents(program, findings)
    trained_on = [graphs[name] for name in dict.fromkeys(rung.graph for rung in program.rungs)]
    for graph in trained_on:
        _check_updates(graph, program.delta, findings)
    surviving = {frozenset(tensor.name for tensor in graph.resident()) for graph in trained_on}
    findings.check(len(surviving) == 1, Rule.STRUCTURE, "not all rungs have the same resident tensors.")
    _check_evaluation(program, graphs[program.evaluation.graph], findings)


def _check_evaluation(program: Program, graph: Graph, findings: Findings) -> None:
    sentence = "the evaluation changes resident tensors, or has several micro-batches."
    fixed = program.evaluation.micro_batches == 1 and not _updaters(graph)
    findings.check(fixed, Rule.VALUES, sentence)
    for node in (node for node in graph.nodes if _learns_from_batch(node) or node.op == "dropout"):
        findings.add(Rule.VALUES, f"node {node.name} of the evaluation does what only training does.")


def _learns_from_batch(node: Node) -> bool:
    return node.op == "batch_norm" and is_batch(node)


def _check_common_residents(program: Program, findings: Findings) -> None:
    common: dict[str, Tensor] = {}
    for tensor in (tensor for graph in program.graphs for tensor in graph.resident()):
        first = common.setdefault(tensor.name, tensor)
        same = replace(first, init=None) == replace(tensor, init=None)
        findings.check(same, Rule.STRUCTURE, f"graphs disagree about resident {tensor.name}.")
    for name in program.mapped:
        as_in_file = name not in common or common[name].order is Order.SAMPLES
        findings.check(as_in_file, Rule.STRUCTURE, f"{name} is mapped from a file, and lies in another order there.")
    for placement in program.resident:
        findings.check(placement.tensor in common, Rule.STRUCTURE, f"{placement.tensor} is placed but unknown.")
    _check_residents(common.values(), program.resident, program.resident_bytes, program.mapped, findings)


def _updaters(graph: Graph) -> dict[str, int]:
    tensors = graph.by_name()
    counts: dict[str, int] = {}
    for name in (name for node in graph.nodes for name in node.updates):
        if tensors[name].resident:
            counts[name] = counts.get(name, 0) + 1
    return counts


def _check_updates(graph: Graph, delta: tuple[str, ...], findings: Findings) -> None:
    """Every tensor of the delta, and every state, is changed by exactly one node of a training graph."""
    counts = _updaters(graph)
    trained = {tensor.name for tensor in graph.resident() if tensor.role is not Role.FROZEN}
    for name in sorted(trained | set(delta) | counts.keys()):
        times = counts.get(name, 0)
        sentence = f"graph {graph.name} changes {name} {times} times a step; every trained tensor changes once."
        findings.check(name in trained and times == 1, Rule.VALUES, sentence)
