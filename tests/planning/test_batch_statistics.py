"""Batches that must stay whole: no micro-batch rungs, a program that says so, and a check that catches others."""

from dataclasses import replace

import pytest

from hedgerow_plans.codec import decode, encode
from hedgerow_plans.graph.ir import Graph, Node
from hedgerow_plans.methods.catalogue import Full, Last
from hedgerow_plans.plan import Infeasible, Program
from hedgerow_plans.program import ProgramRequest, build_program
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.verify import Rule, verify_program
from support.networks import COSTS, ENOUGH, PLENTY

REQUEST = ProgramRequest("resnet8", Full(), Sgd(), 4, "small-board", COSTS, ENOUGH, input_shape=(3, 16, 16))

REASON = (
    "The batch is never cut into micro-batches, because 'bn' and 6 more norms learn from the statistics of the whole "
    "batch; a method that freezes them allows it."
)


def built(request: ProgramRequest) -> Program:
    program = build_program(request)
    assert isinstance(program, Program), program
    assert verify_program(program, request.budget_bytes) == ()
    return program


def test_norms_that_learn_leave_no_micro_batch_rungs_and_the_program_says_why() -> None:
    program = built(REQUEST)
    assert len(program.rungs) > 1
    assert {rung.micro_batches for rung in program.rungs} == {1}
    assert program.remarks == (REASON,)
    assert decode(encode(program)) == program


def test_frozen_statistics_allow_micro_batches() -> None:
    program = built(replace(REQUEST, method=Last()))
    assert max(rung.micro_batches for rung in program.rungs) > 1
    assert program.remarks == ()


def test_a_budget_that_only_a_cut_batch_would_fit_is_refused_with_the_reason() -> None:
    smallest = built(REQUEST).rungs[-1].promise.peak_bytes
    refusal = build_program(replace(REQUEST, budget_bytes=smallest - 1))
    assert isinstance(refusal, Infeasible)
    assert refusal.needed_bytes == smallest
    assert refusal.reason.endswith(REASON)


def changed(program: Program, name: str, norm: Node) -> Program:
    """Return the program with another first norm in one of its graphs."""

    def swapped(graph: Graph) -> Graph:
        return replace(graph, nodes=tuple(norm if node.name == norm.name else node for node in graph.nodes))

    return replace(program, graphs=tuple(swapped(g) if g.name == name else g for g in program.graphs))


def find_norm(program: Program, name: str) -> Node:
    return next(node for node in program.graph(name).nodes if node.name == "bn")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("accumulating", "node bn works on statistics of a micro-batch, not of the batch."),
        ("evaluate", "node bn of the evaluation does what only training does."),
    ],
)
def test_statistics_of_a_part_of_the_batch_do_not_verify(name: str, sentence: str) -> None:
    program = built(replace(REQUEST, method=Last()))
    norm = find_norm(program, name)
    hostile = changed(program, name, replace(norm, attributes={**norm.attributes, "statistics": "batch"}))
    found = verify_program(hostile, PLENTY)
    assert any(violation.rule is Rule.VALUES and sentence in violation.sentence for violation in found), found
