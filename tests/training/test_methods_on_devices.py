"""Every method from request to device: the program verifies, survives sending, keeps its promise, and learns."""

import numpy as np
import pytest

from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.initial import initial_value
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans import codec
from hedgerow_plans.methods.catalogue import (
    Adapter,
    Bias,
    Last,
    LayerShare,
    LiteResidual,
    Lora,
    Method,
    MiniLearn,
    NormLast,
    Sparse,
    TinyOl,
)
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Program
from hedgerow_plans.program import DeviceCosts, ProgramRequest, build_program
from hedgerow_plans.training.optimizers import Adam8bit
from hedgerow_plans.verify import verify_program

BATCH = 6

CASES: list[tuple[str, Method]] = [
    ("cnn-small", Bias()),
    ("cnn-small", Adapter(4)),
    ("cnn-small", LiteResidual()),
    ("cnn-small", LiteResidual(biases=False)),
    ("cnn-small", Sparse(2, (LayerShare("conv2", 4), LayerShare("block.conv1")))),
    ("cnn-small", Lora(2, targets=("block.*",))),
    ("cnn-small", TinyOl()),
    ("mlp", TinyOl(on_top=True)),
    ("mlp", Last()),
    ("minilearn-har", MiniLearn(24)),
    ("resnet8", NormLast()),
]


def build(model: str, method: Method, frozen_outside: bool = False) -> Program:
    request = ProgramRequest(
        model=model,
        method=method,
        optimizer=Adam8bit(),
        batch_size=BATCH,
        device_class="test",
        costs=DeviceCosts(10**9, 1),
        budget_bytes=1 << 24,
        frozen_outside=frozen_outside,
    )
    built = build_program(request)
    assert isinstance(built, Program)
    return built


def base_weights(model: str) -> dict[str, Array]:
    return {tensor.name: initial_value(tensor, 3) for tensor in zoo.build(model).resident()}


def batch(model: str) -> tuple[Array, Array]:
    rng, entry = np.random.default_rng(4), zoo.entry(model)
    x = rng.standard_normal((BATCH, *entry.input_shape)).astype(np.float32)
    return x, rng.integers(0, entry.classes, BATCH, dtype=np.int32)


@pytest.mark.parametrize(("model", "method"), CASES, ids=str)
def test_a_program_verifies_keeps_its_promise_and_learns(model: str, method: Method) -> None:
    program = build(model, method)
    assert verify_program(program) == ()
    encoded = codec.encode(program)
    assert codec.encode(codec.decode(encoded)) == encoded
    executor = Executor(codec.decode(encoded), base_weights(model), seed=1)
    x, y = batch(model)
    losses = []
    for rung, plan in enumerate(program.rungs):
        executor.switch(rung)
        result = executor.measure(x, y, 0.01)
        assert result.measured_peak_bytes == plan.promise.peak_bytes
    losses = [executor.step(x, y, 0.01).loss for _ in range(30)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(("model", "method"), [("cnn-small", Sparse(1)), ("minilearn-har", MiniLearn(24))], ids=str)
def test_nothing_but_the_delta_and_the_state_changes(model: str, method: Method) -> None:
    program = build(model, method)
    executor = Executor(program, base_weights(model), seed=1)
    before = executor.delta()
    x, y = batch(model)
    executor.step(x, y, 0.01)
    after = executor.delta()
    assert set(after) == set(program.delta)
    assert all(not np.array_equal(before[name], after[name]) for name in after)


def test_filters_are_kept_wherever_frozen_parameters_live() -> None:
    x, _ = batch("minilearn-har")
    inside, outside = (build("minilearn-har", MiniLearn(24), frozen_outside) for frozen_outside in (False, True))
    weights = base_weights("minilearn-har")
    found = [Executor(program, weights, seed=1).predict(x) for program in (inside, outside)]
    assert np.array_equal(found[0], found[1])


def test_a_device_without_the_weights_to_keep_says_so() -> None:
    program = build("minilearn-har", MiniLearn(24))
    with pytest.raises(BadInput, match=r"is part of .*, and the weights do not bring that; use the model's weights"):
        Executor(program, {}, seed=1)
    odd = {**base_weights("minilearn-har"), "conv3.weight": np.ones((31, 32, 1, 1), np.float32)}
    with pytest.raises(BadInput, match="these are not this model's weights"):
        Executor(program, odd, seed=1)


def test_tinyol_learns_sample_by_sample_and_evaluates_with_what_it_saw() -> None:
    program = build("mlp", TinyOl())
    executor = Executor(program, base_weights("mlp"), seed=1)
    x, y = batch("mlp")
    assert executor.delta()["tinyol.samples"][0] == 0
    for _ in range(3):
        executor.step(x, y, 0.01)
    delta = executor.delta()
    assert delta["tinyol.samples"][0] == 3 * BATCH
    assert np.all(delta["tinyol.variance"] >= 0)
    assert {rung.graph for rung in program.rungs} == {"direct"}
