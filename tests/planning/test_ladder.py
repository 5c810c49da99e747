"""A program's rungs: few, ordered, each worth having, inside the budget; and an evaluation that fits below them all."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow_plans.codec import encode
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.methods.lora import Lora
from hedgerow_plans.methods.selection import Full, Last
from hedgerow_plans.plan import Infeasible, Program
from hedgerow_plans.planning.ladder import MOST_RUNGS
from hedgerow_plans.program import ProgramRequest, build_program
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.verify import verify_program
from support.networks import COSTS, ENOUGH

REQUEST = ProgramRequest("cnn-small", Lora(4), Sgd(0.9), 8, "small-board", COSTS, ENOUGH)


@cache
def built(request: ProgramRequest) -> Program:
    program = build_program(request)
    assert isinstance(program, Program), program
    assert verify_program(program, request.budget_bytes) == ()
    return program


def peaks(program: Program) -> list[int]:
    return [rung.promise.peak_bytes for rung in program.rungs]


@pytest.mark.parametrize("model", ["mlp", "cnn-small"])
@pytest.mark.parametrize("method", [Full(), Last(), Lora(4)], ids=lambda method: method.name)
@pytest.mark.parametrize("batch_size", [1, 6])
def test_rungs_fall_in_bytes_and_rise_in_energy(model: str, method: Full | Last | Lora, batch_size: int) -> None:
    program = built(replace(REQUEST, model=model, method=method, batch_size=batch_size))
    energy = [rung.promise.step_picojoules for rung in program.rungs]
    assert peaks(program) == sorted(set(peaks(program)), reverse=True)
    assert energy == sorted(set(energy))
    assert 1 <= len(program.rungs) <= MOST_RUNGS
    assert program.evaluation.promise.peak_bytes <= peaks(program)[-1]


@pytest.mark.parametrize("batch_size", [1, 8, 32])
def test_there_are_three_rungs_or_more_where_activations_weigh(batch_size: int) -> None:
    assert len(built(replace(REQUEST, batch_size=batch_size)).rungs) >= 3


def test_no_rung_is_over_the_budget() -> None:
    whole = peaks(built(REQUEST))
    tight = peaks(built(replace(REQUEST, budget_bytes=whole[1])))
    assert tight[0] == whole[1]
    assert tight[-1] == whole[-1]


def test_rungs_go_no_lower_than_the_floor_asks() -> None:
    whole = peaks(built(replace(REQUEST, batch_size=4)))
    higher = peaks(built(replace(REQUEST, batch_size=4, floor_bytes=whole[1])))
    assert (higher[0], min(higher)) == (whole[0], whole[1])  # in between there may be more: fewer are left out
    assert peaks(built(replace(REQUEST, batch_size=4, floor_bytes=1))) == whole


def test_a_budget_nothing_fits_is_answered_with_numbers() -> None:
    below_backward = built(replace(REQUEST, budget_bytes=peaks(built(REQUEST))[-1] - 1))
    assert {rung.strategy for rung in below_backward.rungs} == {"mezo"}
    least = peaks(below_backward)[-1]
    result = build_program(replace(REQUEST, budget_bytes=least - 1))
    assert isinstance(result, Infeasible)
    assert result.needed_bytes == least
    assert result.available_bytes == least - 1
    assert 0 < result.floor_bytes < least
    assert result.tensor in result.reason
    assert f"needs {least} bytes" in result.reason


def test_what_was_needed_is_enough() -> None:
    refusal = build_program(replace(REQUEST, budget_bytes=0))
    assert isinstance(refusal, Infeasible)
    assert peaks(built(replace(REQUEST, budget_bytes=refusal.needed_bytes))) == [refusal.needed_bytes]


def test_frozen_parameters_outside_the_arena_cost_nothing() -> None:
    inside, outside = built(REQUEST), built(replace(REQUEST, frozen_outside=True))
    assert inside.mapped == ()
    assert set(outside.mapped) == {place.tensor for place in inside.resident} - {
        place.tensor for place in outside.resident
    }
    assert inside.resident_bytes - outside.resident_bytes == peaks(inside)[0] - peaks(outside)[0] > 0


def test_residents_lie_in_one_run_with_the_delta_first() -> None:
    program = built(REQUEST)
    assert [place.tensor for place in program.resident[: len(program.delta)]] == list(program.delta)
    offsets = [place.offset for place in program.resident]
    assert offsets == sorted(offsets)
    assert offsets[0] == 0


def test_planning_again_gives_the_same_bytes() -> None:
    again = build_program(REQUEST)
    assert isinstance(again, Program)
    assert again is not built(REQUEST)
    assert encode(again) == encode(built(REQUEST))


def test_an_interrupted_build_still_gives_a_program() -> None:
    program = build_program(REQUEST, keep_going=lambda: False)
    assert isinstance(program, Program)
    assert verify_program(program, REQUEST.budget_bytes) == ()


def test_only_graphs_that_a_plan_uses_are_carried() -> None:
    program = built(replace(REQUEST, batch_size=1))
    assert {graph.name for graph in program.graphs} == {"direct", "evaluate"}


def test_an_unknown_model_is_a_sentence() -> None:
    with pytest.raises(GraphError, match="no model 'gpt'"):
        build_program(replace(REQUEST, model="gpt"))


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 12), st.integers(0, 100))
def test_any_budget_gives_a_verified_program_or_numbers(batch_size: int, percent: int) -> None:
    request = replace(REQUEST, model="mlp", batch_size=batch_size)
    least, most = peaks(built(request))[-1], peaks(built(request))[0]
    budget = least - 100 + (most - least + 200) * percent // 100
    result = build_program(replace(request, budget_bytes=budget))
    if isinstance(result, Infeasible):
        assert budget < least
        assert result.needed_bytes > budget
    else:
        assert verify_program(result, budget) == ()
        strategies = {rung.strategy for rung in result.rungs}
        assert strategies == {"mezo"} if budget < least else "mezo" not in strategies
