"""Whatever a plan or program says, the check answers with sentences and never with an exception."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_plans.graph.ir import Graph, Role, Tensor
from hedgerow_plans.methods.lora import Lora
from hedgerow_plans.plan import Compute, Free, PageIn, PageOut, Placement, Plan, Program, Recompute, Step, Update
from hedgerow_plans.program import ProgramRequest, build_program
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.verify import Rule, verify_program
from hedgerow_plans.violations import MOST_VIOLATIONS
from support.networks import COSTS, PLENTY, UNHURRIED

NUMBERS = st.one_of(st.integers(-2, 60), st.integers(), st.sampled_from((64, 128, 4096, 34880, 2**63)))
OFFSETS = st.lists(NUMBERS, max_size=3).map(tuple)
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(Compute, NUMBERS, OFFSETS, NUMBERS),
    st.builds(Recompute, NUMBERS, OFFSETS, NUMBERS),
    st.builds(Update, NUMBERS, NUMBERS),
    st.builds(Free, NUMBERS),
    st.builds(PageOut, NUMBERS),
    st.builds(PageIn, NUMBERS, NUMBERS),
)


def make_program() -> Program:
    program = build_program(ProgramRequest("mlp", Lora(2), Sgd(0.9), 4, "board", COSTS, PLENTY))
    assert isinstance(program, Program)
    assert verify_program(program, PLENTY) == ()
    return program


PROGRAM = make_program()


def with_plan(at: int, plan: Plan) -> Program:
    return replace(PROGRAM, rungs=(*PROGRAM.rungs[:at], plan, *PROGRAM.rungs[at + 1 :]))


@UNHURRIED
@given(st.lists(STEPS, max_size=30))
def test_arbitrary_steps_are_refused_with_sentences(steps: list[Step]) -> None:
    plan = PROGRAM.rungs[0]
    found = verify_program(with_plan(0, replace(plan, body=tuple(steps))))
    assert found
    assert all(violation.sentence.endswith(".") for violation in found)


@UNHURRIED
@given(STEPS, st.data())
def test_an_arbitrary_step_put_in_anywhere_never_raises(step: Step, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(PROGRAM.rungs) - 1))
    plan = PROGRAM.rungs[at]
    position = data.draw(st.integers(0, len(plan.body)))
    body = (*plan.body[:position], step, *plan.body[position:])
    found = verify_program(with_plan(at, replace(plan, body=body)))
    harmless = isinstance(step, PageOut | Recompute | PageIn)
    assert found or harmless


def test_a_plan_that_is_all_wrong_is_not_looked_at_for_ever() -> None:
    plan = replace(PROGRAM.rungs[0], body=(Free(-1),) * 100_000, micro_batches=1)
    assert len(verify_program(with_plan(0, plan))) == MOST_VIOLATIONS


def test_many_micro_batches_cost_no_more_than_two() -> None:
    accumulating = next(at for at, rung in enumerate(PROGRAM.rungs) if rung.micro_batches > 1)
    plan = PROGRAM.rungs[accumulating]
    program = replace(PROGRAM, rungs=(replace(plan, micro_batches=2**31),), batch_size=plan.micro_batch * 2**31)
    assert [violation.rule for violation in verify_program(program) if violation.rule is not Rule.BUDGET] == []


def changed(graph: Graph) -> Program:
    return replace(PROGRAM, graphs=tuple(graph if one.name == graph.name else one for one in PROGRAM.graphs))


def direct() -> Graph:
    return PROGRAM.graph(PROGRAM.rungs[0].graph)


EXTRA = Tensor("extra", (1,), batched=False, role=Role.FROZEN)

WRONG_PROGRAMS = {
    "no rungs": replace(PROGRAM, rungs=()),
    "no graphs": replace(PROGRAM, graphs=()),
    "the same graph twice": replace(PROGRAM, graphs=(*PROGRAM.graphs, PROGRAM.graphs[0])),
    "rungs out of order": replace(PROGRAM, rungs=PROGRAM.rungs[::-1]),
    "an evaluation that trains": replace(PROGRAM, evaluation=PROGRAM.rungs[-1]),
    "a rung that only evaluates": replace(PROGRAM, rungs=(PROGRAM.evaluation,)),
    "another batch": replace(PROGRAM, batch_size=PROGRAM.batch_size + 1),
    "residents that overlap": replace(PROGRAM, resident=tuple(Placement(p.tensor, 0) for p in PROGRAM.resident)),
    "a resident nobody knows": replace(PROGRAM, resident=(*PROGRAM.resident, Placement("ghost", 0))),
    "no residents": replace(PROGRAM, resident=()),
    "too few resident bytes": replace(PROGRAM, resident_bytes=64),
    "negative resident bytes": replace(PROGRAM, resident_bytes=-64),
    "a delta nobody trains": replace(PROGRAM, delta=(*PROGRAM.delta, "fc1.weight")),
    "mapped and placed": replace(PROGRAM, mapped=("fc1.weight",)),
    "a node without its tensors": changed(replace(direct(), tensors=direct().tensors[:-1])),
    "a node too few": changed(replace(direct(), nodes=direct().nodes[:-1])),
    "an unknown operator": changed(
        replace(direct(), nodes=(replace(direct().nodes[0], op="magic"), *direct().nodes[1:]))
    ),
    "a shape that does not follow": changed(
        replace(direct(), tensors=(*direct().tensors[:-1], replace(direct().tensors[-1], shape=(99,))))
    ),
    "a negative shape": changed(
        replace(direct(), tensors=(*direct().tensors[:-1], replace(direct().tensors[-1], shape=(-1,))))
    ),
    "a resident that one rung lacks": replace(
        changed(replace(direct(), tensors=(*direct().tensors, EXTRA))), mapped=("extra",)
    ),
    "a frozen tensor made trainable": changed(
        replace(
            direct(),
            tensors=tuple(
                replace(tensor, role=Role.TRAINABLE) if tensor.name == "fc1.weight" else tensor
                for tensor in direct().tensors
            ),
        )
    ),
}


@pytest.mark.parametrize("what", WRONG_PROGRAMS)
def test_a_wrong_program_is_refused(what: str) -> None:
    found = verify_program(WRONG_PROGRAMS[what], PLENTY)
    assert found
    assert all(violation.sentence.startswith(("Program for", "Plan ")) for violation in found)


def test_an_evaluation_larger_than_the_smallest_rung_is_refused() -> None:
    smallest = replace(PROGRAM, rungs=PROGRAM.rungs[:1])
    assert verify_program(smallest, PLENTY) == ()
    larger = build_program(ProgramRequest("mlp", Lora(2), Sgd(0.9), 64, "board", COSTS, PLENTY, floor_bytes=PLENTY))
    assert isinstance(larger, Program)
    assert larger.evaluation.promise.peak_bytes > PROGRAM.rungs[-1].promise.peak_bytes
    found = verify_program(replace(PROGRAM, evaluation=larger.evaluation), PLENTY)
    assert {violation.rule for violation in found} == {Rule.BUDGET}


def test_a_program_over_the_budget_is_refused_rung_by_rung() -> None:
    budget = PROGRAM.rungs[0].promise.peak_bytes - 1
    found = verify_program(PROGRAM, budget)
    assert [violation.rule for violation in found] == [Rule.BUDGET]
