"""Networks of every kind of layer, trained with every loss: gradients, scratch, rungs and whole runs."""

from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.core.data import Dataset
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.training import Schedule, TrainingRun
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.methods.lora import Lora
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.plan import Program
from hedgerow_plans.training.graphs import TrainingGraphs, differentiate
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.training.schedules import Cosine
from support.kernel_calls import Laboratory
from support.layer_networks import CASES, VOCABULARY, Case
from support.programs import program_of, same_micro_batch

BATCH = 4
STEP = 1e-6
PATTERNS = (0xA5, 0x5A)
BY_NAME = {case.name: case for case in CASES}
WITHOUT_EFFECT = {"key.bias"}
"""What moves all scores of a query alike changes no probability, so its gradient is zero but for rounding."""

cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def mean_loss(graphs: TrainingGraphs, arrays: dict[str, Array]) -> float:
    return float(Laboratory(BATCH).run_graph(graphs.evaluate, dict(arrays))["losses"].sum()) / BATCH


@pytest.mark.parametrize("variant", ["direct", "accumulating"])
@pytest.mark.parametrize("method", [Full(), Lora(2, 3.0)], ids=lambda method: method.name)
@cases
def test_a_step_subtracts_the_gradient(case: Case, method: Method, variant: str) -> None:
    graphs = differentiate(method.apply(case.build()).graph, Sgd(), BATCH, case.loss)
    rng = np.random.default_rng(5)
    arrays: dict[str, Array] = {
        tensor.name: 0.3 * rng.standard_normal(tensor.shape) for tensor in graphs.direct.resident()
    }
    arrays["x"], arrays["labels"] = case.draw(BATCH, 6, "float64")
    after = {name: value.copy() for name, value in arrays.items()}
    Laboratory(BATCH).run_graph(getattr(graphs, variant), after)
    for name in graphs.delta:
        gradient = arrays[name] - after[name]
        direction = rng.standard_normal(gradient.shape)
        sides = [mean_loss(graphs, {**arrays, name: arrays[name] + sign * STEP * direction}) for sign in (1.0, -1.0)]
        slope = (sides[0] - sides[1]) / (2 * STEP)
        scale = float(np.abs(gradient * direction).sum())
        assert scale > 0 or name in WITHOUT_EFFECT
        assert abs(float((gradient * direction).sum()) - slope) < 1e-6 * max(scale, 1e-2)


@cases
def test_scratch_is_used_to_its_last_byte_and_not_beyond(case: Case) -> None:
    graphs = differentiate(Full().apply(case.build()).graph, Sgd(), BATCH, case.loss)
    rng = np.random.default_rng(0)
    for graph in graphs.all():
        reached: dict[str, int] = {}
        promised: dict[str, int] = {}
        for pattern in PATTERNS:
            lab = Laboratory(BATCH, "float32", pattern)
            arrays: dict[str, Array] = {
                tensor.name: rng.standard_normal(tensor.shape).astype(np.float32) for tensor in graph.resident()
            }
            arrays["x"], arrays["labels"] = case.draw(BATCH, 1)
            lab.run_graph(graph, arrays)
            for name, (end, promise) in lab.scratch_reached.items():
                reached[name], promised[name] = max(reached.get(name, 0), end), promise
        assert reached == promised


@cases
def test_every_way_of_running_it_trains_alike_in_the_bytes_it_promised(case: Case, tmp_path: Path) -> None:
    program = program_of(case.build(), Full(), loss=case.loss)
    whole = set(same_micro_batch(program))
    reference = train(case, program, 0, tmp_path)
    for rung in range(1, len(program.rungs)):
        state = train(case, program, rung, tmp_path)
        if rung in whole:
            assert state == reference
        else:
            values, wanted = (np.frombuffer(content, np.float32) for content in (state, reference))
            assert np.allclose(values, wanted, rtol=1e-3, atol=1e-5)


def train(case: Case, program: Program, rung: int, folder: Path) -> bytes:
    executor = Executor(program, {}, seed=1, rung=rung, paging_folder=folder)
    for step in range(2):
        executor.step(*case.draw(program.batch_size, step), 0.05)
    result = executor.measure(*case.draw(program.batch_size, 2), 0.05)
    assert result.measured_peak_bytes == program.rungs[rung].promise.peak_bytes
    state = executor.resident_state()
    executor.close()
    return state


def test_a_transformer_learns_which_token_comes_first() -> None:
    case = BY_NAME["transformer"]
    x, _ = case.draw(400, 0)
    dataset = Dataset(x, (x[:, 0] % 3).astype(np.int32))
    program = program_of(case.build(), Full(), batch_size=20, evaluation_batch=9)
    schedule = Schedule(epochs=20, learning_rate=0.02, seed=0, rates=Cosine(40))
    run = TrainingRun(Executor(program, {}, seed=0), dataset, schedule)
    before = run.test()
    while not run.done:
        run.run_step()
    after = run.test()
    assert before.accuracy is not None
    assert after.accuracy is not None
    assert before.accuracy < 0.6
    assert after.accuracy > 0.95


@pytest.mark.parametrize("name", ["autoencoder", "images-mse", "images-bce"])
def test_losses_without_classes_fall_and_have_no_accuracy(name: str) -> None:
    case = BY_NAME[name]
    executor = Executor(program_of(case.build(), Full(), evaluation_batch=5, loss=case.loss), {}, seed=0)
    x, y = case.draw(12, 3)
    before = executor.evaluate(x, y)
    for _ in range(60):
        executor.step(x, y, 0.05)
    after = executor.evaluate(x, y)
    assert after.loss < 0.9 * before.loss
    assert before.accuracy is None
    assert executor.predict(x).shape == (12, *executor.samples.output)


@pytest.mark.parametrize("token", [-1, VOCABULARY])
def test_a_token_outside_the_table_is_refused(token: int) -> None:
    case = BY_NAME["transformer"]
    executor = Executor(program_of(case.build(), Full()), {}, seed=0)
    x, y = case.draw(12, 0)
    x[3, 2] = token
    before = executor.resident_state()
    for refuse in (lambda: executor.step(x, y, 0.1), lambda: executor.evaluate(x, y), lambda: executor.predict(x)):
        with pytest.raises(BadInput, match=f"A token is {token} and the model knows 0 to 10; check the dataset"):
            refuse()
    assert executor.resident_state() == before


def test_targets_and_samples_of_another_type_are_refused() -> None:
    tokens, numbers = BY_NAME["transformer"], BY_NAME["images-mse"]
    x, y = tokens.draw(12, 0)
    with pytest.raises(BadInput, match=r"The samples are float32 \[5\] and the model takes int32 \[5\]"):
        Executor(program_of(tokens.build(), Full()), {}, seed=0).step(x.astype(np.float32), y, 0.1)
    x, y = numbers.draw(12, 0)
    with pytest.raises(BadInput, match=r"The targets are float32 \[12, 8, 6\]; give float32 \[1, 8, 6\] for each"):
        Executor(program_of(numbers.build(), Full(), loss="mse"), {}, seed=0).step(x, y[:, 0], 0.1)
