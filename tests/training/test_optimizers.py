"""Optimisers against plain references in 64 bits: what they change, what they keep, and that they go on to the bit."""

from collections.abc import Iterator

import numpy as np
import pytest

from hedgerow_agent.core.data.augmentation import noise
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.training import Schedule, TrainingRun
from hedgerow_plans import codec
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Node, Role, Section, Tensor
from hedgerow_plans.methods.selection import Full, Last
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Program
from hedgerow_plans.program import DeviceCosts, ProgramRequest, build_program
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Adam, Adam8bit, Optimizer, Sgd, state_bytes
from hedgerow_plans.training.schedules import Cosine
from hedgerow_plans.verify import verify_program
from support.digits import digits
from support.kernel_calls import Laboratory

RATE = 1.0
"""What the laboratory's runtime says."""

ADAPTIVE = [Adam(), Adam(0.8, 0.95, 1e-3, 0.1), Adam8bit(), Adam8bit(0.8, 0.95, 1e-3, 0.1)]
SIZES = [1, 255, 256, 300, 16_384, 40_000]


class Bench:
    """One parameter, its state, and the nodes that update it."""

    def __init__(self, optimizer: Optimizer, size: int, dtype: str = "float64") -> None:
        parameter = Tensor("p", (size,), batched=False, role=Role.TRAINABLE)
        state = (*optimizer.state(parameter), *optimizer.shared_state())
        self.tensors = {tensor.name: tensor for tensor in (parameter, Tensor("g", (size,), batched=False), *state)}
        self.nodes = (
            optimizer.update(parameter, "g", Section.BODY),
            *optimizer.after_updates(Section.BODY),
        )
        self.lab = Laboratory(1, dtype)
        self.arrays: dict[str, Array] = {
            tensor.name: np.zeros(tensor.shape, self.lab.array_type(tensor)) for tensor in state
        }

    def update(self, parameter: Array, gradient: Array) -> Array:
        """Return the parameter after one more step."""
        self.arrays.update(p=parameter.copy(), g=gradient)
        for node in self.nodes:
            self.lab.run(node, self.tensors, self.arrays)
        return self.arrays["p"]


def reference(optimizer: Adam, parameter: Array, gradients: list[Array]) -> Iterator[Array]:
    """Yield the parameter after each step of the textbook's Adam with decoupled decay."""
    p, m, v = parameter.copy(), np.zeros_like(parameter), np.zeros_like(parameter)
    for t, g in enumerate(gradients, start=1):
        m = optimizer.beta1 * m + (1 - optimizer.beta1) * g
        v = optimizer.beta2 * v + (1 - optimizer.beta2) * g**2
        m_hat, v_hat = m / (1 - optimizer.beta1**t), v / (1 - optimizer.beta2**t)
        p = p - RATE * (m_hat / (np.sqrt(v_hat) + optimizer.epsilon) + optimizer.weight_decay * p)
        yield p


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("optimizer", ADAPTIVE[:2], ids=["plain", "all-settings"])
def test_adam_follows_the_textbook_over_several_steps_and_tiles(optimizer: Adam, size: int) -> None:
    rng = np.random.default_rng(3)
    start = rng.standard_normal(size)
    gradients = [rng.standard_normal(size) * 10.0 ** rng.integers(-6, 3, size) for _ in range(5)]
    bench, found = Bench(optimizer, size), start
    for wanted, gradient in zip(reference(optimizer, start, gradients), gradients, strict=True):
        found = bench.update(found, gradient)
        assert np.allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert bench.arrays["steps.adam"] == 5


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("optimizer", ADAPTIVE[2:], ids=["plain", "all-settings"])
def test_the_first_step_with_eight_bits_is_adams(optimizer: Adam8bit, size: int) -> None:
    rng = np.random.default_rng(4)
    start, gradient = rng.standard_normal(size), rng.standard_normal(size)
    (wanted,) = reference(optimizer, start, [gradient])
    assert np.allclose(Bench(optimizer, size).update(start, gradient), wanted, rtol=1e-12, atol=1e-12)


def test_eight_bit_moments_stay_close_to_the_moments_they_stand_for() -> None:
    size = 1000
    rng = np.random.default_rng(5)
    scale = np.repeat(10.0 ** np.arange(-3, 1), 250)  # blocks with scales of their own
    bench, m, v, p = Bench(Adam8bit(), size), np.zeros(size), np.zeros(size), np.zeros(size)
    for _ in range(20):
        gradient = scale * (1 + 0.5 * rng.standard_normal(size))
        p = bench.update(p, gradient)
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
    codes, scales = bench.arrays["moment1.p"] / 127.0, np.repeat(bench.arrays["scale1.p"], 256)[:size]
    # one rounding is off by 1/127 of the largest at most, and 0.9 of each error is handed on: ten times that in all
    assert np.abs(codes * np.abs(codes) * scales - m).max() / np.abs(m).max() < 10 / 127
    squares, scales = bench.arrays["moment2.p"] / 255.0, np.repeat(bench.arrays["scale2.p"], 256)[:size]
    large = v > 0.01 * np.repeat([v[i : i + 256].max() for i in range(0, size, 256)], 256)[:size]
    assert large.sum() > 300
    off = (np.abs(squares**4 * scales - v) / v)[large]
    assert off.mean() < 0.05
    assert off.max() < 0.25


@pytest.mark.parametrize("optimizer", [Adam(), Adam8bit()], ids=lambda optimizer: optimizer.name)
def test_a_gradient_of_zeros_moves_nothing_and_leaves_no_odd_number(optimizer: Adam) -> None:
    bench, start = Bench(optimizer, 300, "float32"), np.ones(300, np.float32)
    found = start
    for _ in range(3):
        found = bench.update(found, np.zeros(300, np.float32))
    assert np.array_equal(found, start)
    assert all(np.isfinite(array).all() for array in bench.arrays.values())


def test_a_small_gradient_beside_a_huge_one_takes_no_huge_step() -> None:
    """A second moment of zero would make it one: m / epsilon."""
    bench, found = Bench(Adam8bit(), 256, "float32"), np.zeros(256, np.float32)
    sign = np.float32(1)
    for _ in range(10):
        gradient = np.full(256, 1e-6, np.float32)
        gradient[0], sign = 1e4 * sign, -sign  # its first moment stays small, its second does not
        found = bench.update(found, gradient)
    before = found.copy()
    found = bench.update(found, np.zeros(256, np.float32))
    assert np.abs(found - before).max() <= 10 * RATE


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("optimizer", [Adam(), Adam8bit()], ids=lambda optimizer: optimizer.name)
def test_scratch_is_used_to_its_last_byte(optimizer: Adam, size: int) -> None:
    rng, reached = np.random.default_rng(6), 0
    for pattern in (0xA5, 0x5A):
        bench = Bench(optimizer, size, "float32")
        bench.lab = Laboratory(1, "float32", pattern)
        bench.update(rng.standard_normal(size).astype(np.float32), rng.standard_normal(size).astype(np.float32))
        end, promised = bench.lab.scratch_reached[f"{optimizer.name}.p"]
        reached = max(reached, end)
    assert reached == promised


def test_state_bytes_are_what_each_optimiser_says() -> None:
    parameters = (
        Tensor("a", (1000,), batched=False, role=Role.TRAINABLE),
        Tensor("b", (16, 16), batched=False, role=Role.TRAINABLE),
    )
    assert state_bytes(Sgd(), parameters) == 0
    assert state_bytes(Sgd(0.9), parameters) == 4 * 1256
    assert state_bytes(Adam(), parameters) == 8 * 1256 + 4
    assert state_bytes(Adam8bit(), parameters) == 2 * 1256 + 2 * 4 * (4 + 1) + 4


@pytest.mark.parametrize("optimizer", [Sgd(), Sgd(0.9), Adam(), Adam8bit()], ids=str)
def test_the_graphs_hold_exactly_that_state(optimizer: Optimizer) -> None:
    graphs = differentiate(Full().apply(zoo.build("cnn-small")).graph, optimizer, 8)
    trainable = tuple(tensor for tensor in graphs.direct.tensors if tensor.role is Role.TRAINABLE)
    for graph in graphs.all():
        held = sum(tensor.bytes(1) for tensor in graph.tensors if tensor.role is Role.STATE)
        assert held == state_bytes(optimizer, trainable)


def build(optimizer: Optimizer, model: str = "cnn-small") -> Program:
    request = ProgramRequest(
        model=model,
        method=Full(),
        optimizer=optimizer,
        batch_size=32,
        device_class="test",
        costs=DeviceCosts(10**9, 1),
        budget_bytes=1 << 20,
    )
    built = build_program(request)
    assert isinstance(built, Program)
    return built


@pytest.fixture(scope="module", params=[Adam(), Adam8bit()], ids=lambda optimizer: optimizer.name)
def program(request: pytest.FixtureRequest) -> Program:
    return build(request.param)


def test_its_programs_verify_and_survive_being_sent(program: Program) -> None:
    assert verify_program(program) == ()
    assert {rung.graph for rung in program.rungs} == {"direct", "accumulating"}
    encoded = codec.encode(program)
    assert codec.encode(codec.decode(encoded)) == encoded


def test_every_rung_reaches_exactly_the_peak_it_promises(program: Program) -> None:
    executor = Executor(program, {}, seed=1)
    x, y = digits().x[:32], digits().y[:32]
    for rung, plan in enumerate(program.rungs):
        executor.switch(rung)
        assert executor.measure(x, y, 0.001).measured_peak_bytes == plan.promise.peak_bytes


def test_rungs_agree_and_each_step_is_counted_once(program: Program) -> None:
    x, y = digits().x[:32], digits().y[:32]
    deltas = []
    for rung in (0, len(program.rungs) - 1):
        executor = Executor(program, {}, seed=1, rung=rung)
        for _ in range(3):
            executor.step(x, y, 0.001)
        deltas.append(executor.delta())
        (offset,) = [place.offset for place in program.resident if place.tensor == "steps.adam"]
        assert int.from_bytes(executor.resident_state()[offset : offset + 4], "little") == 3
    for name in program.delta:
        assert np.allclose(deltas[0][name], deltas[1][name], rtol=0, atol=2e-3)


def test_going_on_after_a_restart_changes_no_bit(program: Program) -> None:
    schedule = Schedule(epochs=1, learning_rate=0.002, seed=3)
    whole = TrainingRun(Executor(program, {}, seed=3), digits(), schedule)
    first = TrainingRun(Executor(program, {}, seed=3), digits(), schedule)
    for _ in range(17):
        first.run_step()
    second = TrainingRun(Executor(program, {}, seed=99), digits(), schedule, first.step)
    second.executor.load_resident_state(first.executor.resident_state())
    for run in (whole, second):
        while not run.done:
            run.run_step()
    assert second.executor.resident_state() == whole.executor.resident_state()


def test_digits_are_learnt(program: Program) -> None:
    run = TrainingRun(Executor(program, {}, seed=1), digits(), Schedule(20, 0.003, 1, Cosine(20), noise(0.15)))
    while not run.done:
        run.run_step()
    accuracy = run.test().accuracy
    assert accuracy is not None
    assert accuracy >= 0.95


def test_eight_bits_cost_a_quarter_of_the_state() -> None:
    parameter = Tensor("w", (512, 512), batched=False, role=Role.TRAINABLE)
    ratio = state_bytes(Adam8bit(), (parameter,)) / state_bytes(Adam(), (parameter,))
    assert ratio < 0.26


def convergence(optimizer: Optimizer, rate: float) -> float:
    """Return what remains of a badly scaled quadratic after some steps."""
    rng = np.random.default_rng(8)
    size = 600
    curvature, target = 10.0 ** rng.uniform(-2, 2, size), rng.standard_normal(size)
    bench, p = Bench(optimizer, size, "float32"), np.zeros(size, np.float32)
    for step in range(400):
        gradient = (curvature * (p - target)).astype(np.float32)
        moved = bench.update(p, gradient)
        p = p + np.float32(rate * (1 - step / 400)) * (moved - p)  # the laboratory's rate is 1
    return float(np.abs(p - target).max())


def test_eight_bit_adam_converges_like_adam_on_a_badly_scaled_problem() -> None:
    plain, eight = convergence(Adam(), 0.05), convergence(Adam8bit(), 0.05)
    assert plain < 0.05
    assert eight < 0.1


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"beta1": 1.0}, "adam has beta1 1.0; give it a number from 0 to below 1."),
        ({"beta2": float("nan")}, "adam has beta2 nan; give it a number from 0 to below 1."),
        ({"epsilon": 0.0}, "adam has epsilon 0.0; give it a finite number above 0."),
        ({"weight_decay": -1.0}, "adam has weight decay -1.0; give it a finite number of at least 0."),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, float], sentence: str) -> None:
    with pytest.raises(GraphError) as refusal:
        Adam(**settings)
    assert str(refusal.value) == sentence


def test_a_model_that_uses_the_names_of_state_is_refused() -> None:
    model = Last().apply(zoo.build("mlp")).graph
    renamed = tuple(
        Node("steps.adam", node.op, node.inputs, node.outputs, attributes=node.attributes)
        if node.name == "fc1"
        else node
        for node in model.nodes
    )
    with pytest.raises(GraphError, match=r"uses the name 'steps\.adam', which training needs; rename it"):
        differentiate(Graph(model.name, model.tensors, renamed, model.outputs), Adam(), 4)
