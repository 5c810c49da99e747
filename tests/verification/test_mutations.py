"""The check catches every kind of wrong plan, each by the rule it breaks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.models.perceptron import mlp
from hedgerow_plans.plan import Compute, Free, PageIn, PageOut, Plan, Recompute, Step, Update
from hedgerow_plans.planning.lowering import lower
from hedgerow_plans.planning.problem import Problem, pose
from hedgerow_plans.planning.residents import place_residents
from hedgerow_plans.planning.sequence import Fetch, Run, Sequence, straight
from hedgerow_plans.planning.strategies import Limits, keep_all, sqrt_n
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.verify import Rule
from support.mutations import repeated, with_offsets, without
from support.networks import COSTS, MEASURES, PLENTY, violations


@dataclass(frozen=True, slots=True)
class Subject:
    problem: Problem
    plan: Plan

    @property
    def graph(self) -> Graph:
        return self.problem.graph

    def rules(self, plan: Plan, budget_bytes: int | None = None) -> set[Rule]:
        return {violation.rule for violation in violations(self.problem, plan, budget_bytes)}

    def with_body(self, body: list[Step]) -> Plan:
        return replace(self.plan, body=tuple(body))

    def tensor(self, name: str) -> int:
        return next(index for index, tensor in enumerate(self.graph.tensors) if tensor.name == name)


GRAPHS = differentiate(Full().apply(mlp(3, (10,), hidden=(12, 20, 12, 9))).graph, Sgd(0.9), 6)
RESIDENTS = place_residents(GRAPHS.all())


def direct_problem() -> Problem:
    return pose(GRAPHS.direct, RESIDENTS, COSTS, micro_batch=6, measures=MEASURES)


def accumulating_problem() -> Problem:
    return pose(GRAPHS.accumulating, RESIDENTS, COSTS, micro_batch=2, micro_batches=3, measures=MEASURES)


def subject(problem: Problem, strategy: Callable[[Problem, Limits], object]) -> Subject:
    plan = strategy(problem, Limits(PLENTY))
    assert isinstance(plan, Plan)
    assert violations(problem, plan) == ()
    return Subject(problem, plan)


SUBJECTS = [
    pytest.param(subject(direct_problem(), keep_all.plan), id="direct"),
    pytest.param(subject(accumulating_problem(), keep_all.plan), id="accumulating"),
    pytest.param(subject(direct_problem(), sqrt_n.plan), id="direct-recomputing"),
    pytest.param(subject(accumulating_problem(), sqrt_n.plan), id="accumulating-recomputing"),
]
every_subject = pytest.mark.parametrize("subject", SUBJECTS)


@every_subject
def test_a_misaligned_offset(subject: Subject) -> None:
    mutants = list(with_offsets(subject.plan, lambda offset: offset + 4))
    assert len(mutants) > 10
    assert all(Rule.PLACEMENT in subject.rules(mutant) for mutant in mutants)


@every_subject
def test_an_offset_among_the_residents(subject: Subject) -> None:
    for mutant in with_offsets(subject.plan, lambda _: RESIDENTS.bytes - 64):
        assert Rule.PLACEMENT in subject.rules(mutant)


@every_subject
def test_an_offset_below_the_arena(subject: Subject) -> None:
    for mutant in with_offsets(subject.plan, lambda offset: offset - 2**40):
        assert Rule.PLACEMENT in subject.rules(mutant)


@every_subject
def test_an_offset_above_the_promised_peak(subject: Subject) -> None:
    for mutant in with_offsets(subject.plan, lambda offset: offset + 2**20):
        assert Rule.PEAK in subject.rules(mutant)


@every_subject
def test_an_output_on_top_of_an_input(subject: Subject) -> None:
    places: dict[str, int] = {}
    seen = 0
    body = list(subject.plan.body)
    for index, step in enumerate(subject.plan.body):
        if isinstance(step, Compute | Recompute):
            node = subject.graph.nodes[step.node]
            for name in (name for name in node.inputs if name in places):
                mutant = [*body]
                mutant[index] = replace(step, offsets=(places[name], *step.offsets[1:]))
                assert Rule.OVERLAP in subject.rules(subject.with_body(mutant))
                seen += 1
            places |= dict(zip(node.outputs, step.offsets, strict=True))
    assert seen > 10


@every_subject
def test_scratch_on_top_of_an_output(subject: Subject) -> None:
    body = list(subject.plan.body)
    for index, step in enumerate(subject.plan.body):
        if isinstance(step, Compute | Recompute) and subject.problem.scratch_bytes[step.node]:
            mutant = [*body]
            mutant[index] = replace(step, scratch_offset=step.offsets[0])
            assert Rule.OVERLAP in subject.rules(subject.with_body(mutant))


@every_subject
def test_a_missing_free(subject: Subject) -> None:
    for mutant, _ in without(subject.plan, Free):
        assert subject.rules(mutant) & {Rule.REPETITION, Rule.LIVENESS}


@every_subject
def test_a_free_that_comes_twice(subject: Subject) -> None:
    assert all(Rule.LIVENESS in subject.rules(mutant) for mutant in repeated(subject.plan, Free))


@every_subject
def test_a_missing_computation_or_update(subject: Subject) -> None:
    for mutant, _ in without(subject.plan, (Compute, Update)):
        assert Rule.COMPLETENESS in subject.rules(mutant)


@every_subject
def test_a_missing_recomputation(subject: Subject) -> None:
    for mutant, _ in without(subject.plan, Recompute):
        assert Rule.LIVENESS in subject.rules(mutant)


@every_subject
def test_an_update_or_computation_that_comes_twice(subject: Subject) -> None:
    assert all(Rule.COMPLETENESS in subject.rules(mutant) for mutant in repeated(subject.plan, (Update, Compute)))


@every_subject
def test_a_free_swapped_with_the_reader_before_it(subject: Subject) -> None:
    body = list(subject.plan.body)
    swaps = 0
    for index, (step, following) in enumerate(pairwise(body)):
        if isinstance(following, Free) and not isinstance(step, Free | PageIn | PageOut):
            mutant = [*body[:index], following, step, *body[index + 2 :]]
            assert Rule.LIVENESS in subject.rules(subject.with_body(mutant))
            swaps += 1
    assert swaps > 5


@every_subject
def test_any_two_neighbours_swapped_are_refused_when_one_needs_the_other(subject: Subject) -> None:
    body = list(subject.plan.body)
    for index, (step, following) in enumerate(pairwise(body)):
        if isinstance(step, Compute | Recompute) and isinstance(following, Compute | Recompute | Update):
            made = subject.graph.nodes[step.node].outputs
            if set(made) & set(subject.graph.nodes[following.node].reads):
                mutant = [*body[:index], following, step, *body[index + 2 :]]
                assert subject.rules(subject.with_body(mutant)) & {Rule.LIVENESS, Rule.VALUES}


@every_subject
@pytest.mark.parametrize("change", [-64, -1, 1, 64])
def test_a_promised_peak_that_is_not_reached_exactly(subject: Subject, change: int) -> None:
    promise = replace(subject.plan.promise, peak_bytes=subject.plan.promise.peak_bytes + change)
    assert subject.rules(replace(subject.plan, promise=promise)) == {Rule.PEAK}


@every_subject
def test_a_peak_over_the_budget(subject: Subject) -> None:
    peak = subject.plan.promise.peak_bytes
    assert subject.rules(subject.plan, peak) == set()
    assert subject.rules(subject.plan, peak - 1) == {Rule.BUDGET}


@every_subject
@pytest.mark.parametrize(("micro_batch", "micro_batches"), [(6, 3), (0, 6), (-6, -1), (6, 0), (5, 1)])
def test_micro_batches_that_do_not_make_up_the_batch(subject: Subject, micro_batch: int, micro_batches: int) -> None:
    mutant = replace(subject.plan, micro_batch=micro_batch, micro_batches=micro_batches)
    assert Rule.BATCH in subject.rules(mutant)


@every_subject
def test_an_output_that_is_freed(subject: Subject) -> None:
    mutant = subject.with_body([*subject.plan.body, Free(subject.tensor("losses"))])
    assert subject.rules(mutant) == {Rule.LIVENESS}


@every_subject
def test_a_resident_that_is_freed_or_paged(subject: Subject) -> None:
    weight = subject.tensor("fc1.weight")
    for step in (Free(weight), PageOut(weight), PageIn(weight, 0)):
        assert subject.rules(subject.with_body([step, *subject.plan.body])) == {Rule.LIVENESS}


@every_subject
@pytest.mark.parametrize("position", [-1, 10**6, 2**70])
def test_positions_that_do_not_exist(subject: Subject, position: int) -> None:
    for step in (
        Free(position),
        PageOut(position),
        PageIn(position, 0),
        Compute(position, (0,)),
        Recompute(position, (0,)),
        Update(position),
    ):
        assert subject.rules(subject.with_body([*subject.plan.body, step])) == {Rule.STRUCTURE}


@every_subject
def test_the_wrong_number_of_offsets(subject: Subject) -> None:
    first = subject.plan.body[0]
    assert isinstance(first, Compute)
    for offsets in ((), (*first.offsets, *first.offsets)):
        mutant = subject.with_body([replace(first, offsets=offsets), *subject.plan.body[1:]])
        assert Rule.STRUCTURE in subject.rules(mutant)


@every_subject
def test_the_wrong_kind_of_step(subject: Subject) -> None:
    body = list(subject.plan.body)
    for index, step in enumerate(body):
        other: Step | None = None
        if isinstance(step, Compute):
            other = Recompute(step.node, step.offsets, step.scratch_offset)
        elif isinstance(step, Recompute):
            other = Compute(step.node, step.offsets, step.scratch_offset)
        elif isinstance(step, Update):
            other = Compute(step.node, (), step.scratch_offset)
        if other is not None:
            mutant = subject.with_body([*body[:index], other, *body[index + 1 :]])
            assert Rule.COMPLETENESS in subject.rules(mutant)


def test_a_page_in_of_what_was_never_paged_out() -> None:
    subject = Subject(direct_problem(), with_paging())
    assert [step for step in subject.plan.body if isinstance(step, PageIn)]
    for mutant, _ in without(subject.plan, PageOut):
        assert Rule.PAGING in subject.rules(mutant)


def test_a_page_out_of_what_is_not_live() -> None:
    subject = Subject(direct_problem(), with_paging())
    for mutant, step in without(subject.plan, PageOut):
        assert Rule.PAGING in subject.rules(replace(mutant, body=(step, *mutant.body)))


def with_paging() -> Plan:
    """Page in what the first layer's output became, right before its last reader."""
    problem = direct_problem()
    plain = straight(problem)
    name = next(index for index, tensor in enumerate(problem.graph.tensors) if tensor.name == "relu1")
    readers = [at for at, op in enumerate(plain.body) if isinstance(op, Run) and name in problem.reads[op.node]]
    body = (*plain.body[: readers[-1]], Fetch(name), *plain.body[readers[-1] :])
    plan = lower(problem, Sequence((), body, ()), "paging")
    assert violations(problem, plan) == ()
    return plan


def node_at(problem: Problem, name: str) -> int:
    return next(index for index, node in enumerate(problem.graph.nodes) if node.name == name)


def test_recomputing_with_a_parameter_that_was_updated_already() -> None:
    problem = direct_problem()
    plain = straight(problem)
    late = Run(node_at(problem, "fc1"))
    plan = lower(problem, Sequence((), (*plain.body, late), ()), "late")
    found = violations(problem, plan)
    assert {violation.rule for violation in found} == {Rule.VALUES}
    assert "reads fc1.weight in another state" in found[0].sentence


def test_an_update_before_the_last_reader_of_the_old_value() -> None:
    problem = direct_problem()
    update, reader = node_at(problem, "sgd.fc3.weight"), node_at(problem, "grad.relu2")
    assert "fc3.weight" in problem.graph.nodes[reader].reads
    order = [op for op in straight(problem).body if op != Run(update)]
    at = order.index(Run(reader))
    plan = lower(problem, Sequence((), (*order[:at], Run(update), *order[at:]), ()), "early")
    assert {violation.rule for violation in violations(problem, plan)} == {Rule.VALUES}


def test_updating_in_every_micro_batch() -> None:
    problem = replace(direct_problem(), micro_batches=3)
    plan = keep_all.plan(problem, Limits(PLENTY))
    assert isinstance(plan, Plan)
    assert {violation.rule for violation in violations(problem, plan)} == {Rule.VALUES}


def test_a_body_that_takes_an_accumulator_away() -> None:
    base = subject(accumulating_problem(), keep_all.plan)
    total = base.tensor("sum.fc1.weight")
    body = [*base.plan.body, Free(total)]
    finish = [step for step in base.plan.finish if step != Free(total)]
    assert Rule.REPETITION in base.rules(replace(base.plan, body=tuple(body), finish=tuple(finish)))


def test_an_accumulator_that_comes_back_from_before_the_micro_batch() -> None:
    base = subject(accumulating_problem(), keep_all.plan)
    total = base.tensor("sum.fc1.weight")
    zero = next(
        s for s in base.plan.begin if isinstance(s, Compute) and s.node == node_at(base.problem, "sum.fc1.weight")
    )
    begin = (*base.plan.begin, PageOut(total))
    restored = (Free(total), PageIn(total, zero.offsets[0]))
    assert base.rules(replace(base.plan, begin=begin, body=(*base.plan.body, *restored))) == {Rule.VALUES}
    saved = (PageOut(total), *restored)
    assert base.rules(replace(base.plan, begin=begin, body=(*base.plan.body, *saved))) == set()


def test_an_accumulator_that_comes_back_elsewhere() -> None:
    base = subject(accumulating_problem(), keep_all.plan)
    total = base.tensor("sum.fc1.weight")
    offset = base.plan.promise.peak_bytes // 64 * 64 + 64
    moved = (PageOut(total), Free(total), PageIn(total, offset))
    assert Rule.REPETITION in base.rules(base.with_body([*base.plan.body, *moved]))


@every_subject
def test_making_again_what_is_live(subject: Subject) -> None:
    body = list(subject.plan.body)
    for index, step in enumerate(body):
        if isinstance(step, Compute):
            again = Recompute(step.node, step.offsets, step.scratch_offset)
            mutant = subject.with_body([*body[: index + 1], again, *body[index + 1 :]])
            assert Rule.LIVENESS in subject.rules(mutant)


def test_paging_in_what_is_live() -> None:
    subject = Subject(direct_problem(), with_paging())
    for mutant in repeated(subject.plan, PageIn):
        assert subject.rules(mutant) == {Rule.LIVENESS}


def test_resident_bytes_that_are_not_aligned() -> None:
    base = subject(direct_problem(), keep_all.plan)
    residents = replace(RESIDENTS, bytes=RESIDENTS.bytes - 4)
    assert Rule.PLACEMENT in {v.rule for v in violations(replace(base.problem, residents=residents), base.plan)}


@pytest.mark.parametrize("change", ["overlap", "misaligned", "outside", "missing", "twice"])
def test_residents_that_are_placed_wrongly(change: str) -> None:
    base = subject(direct_problem(), keep_all.plan)
    first, second, *rest = RESIDENTS.placements
    placements = {
        "overlap": (first, replace(second, offset=first.offset), *rest),
        "misaligned": (first, replace(second, offset=second.offset + 4), *rest),
        "outside": (first, replace(second, offset=RESIDENTS.bytes), *rest),
        "missing": (first, *rest),
        "twice": (first, first, second, *rest),
    }[change]
    problem = replace(base.problem, residents=replace(RESIDENTS, placements=placements))
    assert {v.rule for v in violations(problem, base.plan)} & {Rule.OVERLAP, Rule.PLACEMENT, Rule.STRUCTURE}


def test_a_trained_tensor_cannot_live_outside_the_arena() -> None:
    base = subject(direct_problem(), keep_all.plan)
    first, *rest = RESIDENTS.placements
    outside = replace(RESIDENTS, placements=tuple(rest), mapped=frozenset({first.tensor}))
    assert Rule.PLACEMENT in {v.rule for v in violations(replace(base.problem, residents=outside), base.plan)}
