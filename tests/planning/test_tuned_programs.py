"""Programs with memory to spare: planned, verified and sent like any other, and the same on every rung."""

from dataclasses import replace

import numpy as np
import pytest

from hedgerow_agent.core.executor import Executor
from hedgerow_plans.codec import decode, encode
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.methods.lora import Lora
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.plan import Program
from hedgerow_plans.program import ProgramRequest, build_program, difference
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.verify import verify_program
from hedgerow_plans.violations import Rule
from support.networks import COSTS, PLENTY

REQUEST = ProgramRequest(
    "resnet18", Lora(2), Sgd(0.9), 2, "large-board", COSTS, PLENTY, classes=3, input_shape=(3, 32, 32)
)


def built(request: ProgramRequest) -> Program:
    program = build_program(request, keep_going=lambda: False)
    assert isinstance(program, Program), program
    return program


@pytest.mark.parametrize("frozen_outside", [False, True])
def test_it_is_verified_sent_and_recognised_like_any_other(frozen_outside: bool) -> None:
    request = replace(REQUEST, frozen_outside=frozen_outside)
    program = built(request)
    assert verify_program(program, PLENTY) == ()
    assert decode(encode(program)) == program
    assert difference(program, request) == ""
    assert difference(program, replace(request, budget_bytes=1)) == "graphs"


def test_weights_in_a_file_train_to_the_same_bits_as_weights_in_the_arena() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype(np.float32)
    results = []
    for frozen_outside in (False, True):
        executor = Executor(built(replace(REQUEST, frozen_outside=frozen_outside)), {}, seed=1)
        executor.step(x, np.array([0, 2]), 0.1)
        results.append(executor.delta())
        executor.close()
    assert all(np.array_equal(results[0][name], value) for name, value in results[1].items())


def test_a_weight_in_a_file_cannot_lie_in_another_order_there() -> None:
    program = built(replace(REQUEST, method=Lora(2), frozen_outside=True))

    def turned(name: str) -> Program:
        graphs = (
            replace(g, tensors=tuple(replace(t, order=Order.TAPS) if t.name == name else t for t in g.tensors))
            for g in program.graphs
        )
        return replace(program, graphs=tuple(graphs))

    found = verify_program(turned("layer1.0.conv1.weight"), PLENTY)
    assert any(violation.rule is Rule.STRUCTURE for violation in found)


def test_the_order_of_a_trained_weight_is_the_same_in_every_graph() -> None:
    program = built(replace(REQUEST, method=Full()))
    direct, evaluate = program.graph("direct"), program.graph("evaluate")
    orders = {tensor.name: tensor.order for tensor in direct.resident()}
    assert Order.TAPS in orders.values()
    assert orders == {tensor.name: tensor.order for tensor in evaluate.resident()}
