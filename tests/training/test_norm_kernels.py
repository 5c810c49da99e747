"""What norms, activations and dropout compute, in how much scratch, against plain formulas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.kernels import bind
from hedgerow_agent.core.kernels.call import Array, Call, Rows, Runtime
from hedgerow_plans.graph import table
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph, Init, Node, Role, Tensor
from hedgerow_plans.methods.adapted import train_only
from hedgerow_plans.methods.catalogue import Full
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from support.gradients import parameter, sample
from support.kernel_calls import Laboratory

RNG = np.random.default_rng(0)


def run(node: Node, inputs: tuple[Tensor, ...], arrays: dict[str, Array], micro_batch: int) -> dict[str, Array]:
    tensors = {tensor.name: tensor for tensor in inputs}
    tensors.update((tensor.name, tensor) for tensor in table.infer(node, tensors))
    return Laboratory(micro_batch).run(node, tensors, arrays)


def channel(values: Array) -> Array:
    return values[:, np.newaxis, np.newaxis]


def test_batch_norm_follows_its_formula_with_either_statistics() -> None:
    x, w, b = RNG.standard_normal((5, 3, 4, 2)) + 7, RNG.standard_normal(3), RNG.standard_normal(3)
    inputs = (sample("x", 3, 4, 2), *(parameter(name, 3) for name in ("w", "b", "mean", "variance")))
    running = {"mean": RNG.standard_normal(3), "variance": RNG.uniform(0.5, 2, 3)}
    arrays: dict[str, Array] = {"x": x, "w": w, "b": b, **running}
    names = tuple(arrays)
    of_batch = Node("n", "batch_norm", names, ("y", "s"), attributes={"statistics": "batch", "epsilon": 0.01})
    found = run(of_batch, inputs, arrays, 5)
    mean, variance = x.mean(axis=(0, 2, 3)), x.var(axis=(0, 2, 3))
    assert np.allclose(found["s"], [mean, variance], rtol=1e-12)
    expected = channel(w) * (x - channel(mean)) / channel(np.sqrt(variance + 0.01)) + channel(b)
    assert np.allclose(found["y"], expected, rtol=1e-12)
    of_running = Node("n", "batch_norm", names, ("y",), attributes={"statistics": "running", "epsilon": 0.01})
    wanted = channel(w) * (x - channel(running["mean"])) / channel(np.sqrt(running["variance"] + 0.01)) + channel(b)
    assert np.allclose(run(of_running, inputs, arrays, 5)["y"], wanted, rtol=1e-12)


def test_running_statistics_move_a_tenth_of_the_way_to_those_of_the_batch() -> None:
    mean, variance = (Tensor(n, (3,), batched=False, role=Role.TRAINABLE, init=Init("ones")) for n in ("m", "v"))
    arrays: dict[str, Array] = {"s": np.array([[1.0, 2, 3], [4, 5, 6]]), "m": np.ones(3), "v": np.ones(3)}
    attributes = {"momentum": 0.1, "samples": 5}
    node = Node("n", "update_running_statistics", ("s",), (), ("m", "v"), attributes)
    run(node, (Tensor("s", (2, 3), batched=False), mean, variance), arrays, 1)
    assert np.allclose(arrays["m"], 0.9 + 0.1 * np.array([1, 2, 3]))
    assert np.allclose(arrays["v"], 0.9 + 0.1 * np.array([4, 5, 6]) * 5 / 4)


def test_norms_within_a_sample_follow_their_formulas() -> None:
    x, w, b = RNG.standard_normal((2, 4, 6)) + 3, RNG.standard_normal(6), RNG.standard_normal(6)
    arrays: dict[str, Array] = {"x": x, "w": w, "b": b}
    inputs = (sample("x", 4, 6), parameter("w", 6), parameter("b", 6))
    layer = run(Node("n", "layer_norm", ("x", "w", "b"), ("y", "s")), inputs, arrays, 2)["y"]
    deviation = np.sqrt(x.var(axis=2, keepdims=True) + 1e-5)
    assert np.allclose(layer, w * (x - x.mean(axis=2, keepdims=True)) / deviation + b)
    rms = run(Node("n", "rms_norm", ("x", "w"), ("y", "s")), inputs[:2], arrays, 2)["y"]
    assert np.allclose(rms, w * x / np.sqrt((x**2).mean(axis=2, keepdims=True) + 1e-5))
    channels = (sample("x", 4, 6), parameter("w", 4), parameter("b", 4))
    arrays = {"x": x, "w": w[:4], "b": b[:4]}
    group = run(Node("n", "group_norm", ("x", "w", "b"), ("y", "s"), attributes={"groups": 2}), channels, arrays, 2)
    halves = x.reshape(2, 2, 12)
    standard = (halves - halves.mean(axis=2, keepdims=True)) / np.sqrt(halves.var(axis=2, keepdims=True) + 1e-5)
    assert np.allclose(group["y"], w[:4, np.newaxis] * standard.reshape(2, 4, 6) + b[:4, np.newaxis])


def test_a_standardised_weight_has_mean_zero_and_deviation_one_for_each_output() -> None:
    weight: Array = RNG.standard_normal((4, 3, 2, 2)) * 5 + 2
    node = Node("n", "weight_standardisation", ("w",), ("y",))
    found = run(node, (parameter("w", 4, 3, 2, 2),), {"w": weight}, 1)["y"].reshape(4, -1)
    assert np.allclose(found.mean(axis=1), 0, atol=1e-12)
    assert np.allclose(found.std(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-14)])
def test_gelu_is_the_exact_one(dtype: str, tolerance: float) -> None:
    x = np.linspace(-9, 9, 4001, dtype=dtype).reshape(1, -1)
    tensors = {"x": sample("x", 4001)}
    found = Laboratory(1, dtype).run(Node("n", "gelu", ("x",), ("y",)), tensors, {"x": x})["y"]
    expected = [0.5 * float(value) * (1 + math.erf(float(value) / math.sqrt(2))) for value in x[0]]
    assert np.abs(found[0] - expected).max() < tolerance


def test_activations_follow_their_formulas() -> None:
    x = np.linspace(-8, 8, 33).reshape(1, -1)
    sigmoid = 1 / (1 + np.exp(-x))
    expected = {
        "sigmoid": sigmoid,
        "silu": x * sigmoid,
        "tanh": np.tanh(x),
        "hswish": x * np.clip(x + 3, 0, 6) / 6,
        "relu6": np.clip(x, 0, 6),
    }
    for op, wanted in expected.items():
        assert np.allclose(run(Node("n", op, ("x",), ("y",)), (sample("x", 33),), {"x": x}, 1)["y"], wanted), op


def test_relu6_keeps_one_bit_where_the_slope_is_one() -> None:
    x = np.array([[-1.0, 0.0, 0.5, 5.9, 6.0, 7.0, 3.0, 1.0, 2.0]])
    found = run(Node("n", "relu6", ("x",), ("y", "m")), (sample("x", 9),), {"x": x}, 1)
    assert found["m"].tolist() == [[0b00110011, 0b10000000]]


def dropped(x: Array, rows: Rows, step: int = 0, seed: int = 0, key: int = 5, *, rate: float = 0.25) -> Array:
    """Run dropout on some samples in 32 bits."""
    node = Node("n", "dropout", ("x",), ("y",), attributes={"rate": rate, "seed": key})
    tensors = {"x": sample("x", *x.shape[1:]), "y": sample("y", *x.shape[1:])}
    scratch = np.full(table.scratch_bytes(node, tensors, len(x)), 0xFF, np.uint8)
    y = np.full_like(x, np.nan)
    bind(Call(node, (x,), (y,), (), scratch, Runtime(rows=rows, step=step, seed=seed)))()
    return y


def test_dropout_drops_its_share_and_scales_the_rest() -> None:
    y = dropped(np.ones((4, 40_000), np.float32), slice(0, 4))
    assert set(np.unique(y).tolist()) == {0.0, np.float32(1 / 0.75)}
    assert np.abs((y == 0).mean(axis=1) - 0.25).max() < 0.01


@given(st.integers(0, 2**40), st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_what_is_dropped_follows_from_seed_step_layer_and_sample_alone(step: int, seed: int, key: int) -> None:
    x = np.ones((6, 64), np.float32)
    rows = np.array([11, 3, 8, 0, 5, 2])
    whole = dropped(x, rows, step, seed, key, rate=0.5)
    parts = [dropped(x[:2], rows[first : first + 2], step, seed, key, rate=0.5) for first in (0, 2, 4)]
    assert np.array_equal(whole, np.concatenate(parts))
    others = [(step + 1, seed, key), (step, seed + 1, key), (step, seed, key ^ 1)]
    assert all(not np.array_equal(whole, dropped(x, rows, *other, rate=0.5)) for other in others)
    assert len({sample.tobytes() for sample in whole}) == 6


def test_neighbouring_samples_steps_and_elements_are_dropped_independently() -> None:
    x = np.ones((64, 512), np.float32)
    now, later = (dropped(x, slice(0, 64), step, rate=0.5) == 0 for step in (0, 1))
    for first, second in ((now, later), (now[1:], now[:-1]), (now[:, 1:], now[:, :-1])):
        assert abs(float((first & second).mean()) - 0.25) < 0.01


def everything(shape: tuple[int, ...]) -> Graph:
    """Return a network with every operator of these families."""
    build = Builder("everything")
    x = build.conv2d("conv", build.input(shape), 4)
    standard = build.weight_standardisation("standard", build.parameter("ws", (4, 4, 3, 3), Init("normal", 0.3)))
    x = build.node("ws.conv", "conv2d", (x, standard), padding=1)
    x = build.activation("relu6", build.batch_norm("bn", x), "relu6")
    x = build.activation("hswish", build.group_norm("gn", x, 2), "hswish")
    x = build.activation("gelu", build.layer_norm("ln", x, axes=2), "gelu")
    x = build.activation("silu", build.rms_norm("rms", x), "silu")
    gate = build.activation("sigmoid", x, "sigmoid")
    x = build.dropout("drop", build.mul("mul", build.activation("tanh", x, "tanh"), gate), 0.3)
    return build.graph(build.linear("logits", build.flatten("flat", x), 3))


@pytest.mark.parametrize("moving", [True, False], ids=["batch-statistics", "running-statistics"])
@pytest.mark.parametrize("shape", [(2, 6, 5), (2, 150, 130)], ids=["small", "larger-than-a-tile"])
def test_scratch_is_used_to_its_last_byte_and_not_beyond(shape: tuple[int, ...], moving: bool) -> None:
    graph = everything(shape)
    names = [tensor.name for tensor in graph.resident() if moving or "running" not in tensor.name]
    graphs = differentiate(train_only(graph, names).graph, Sgd(), 3)
    for made in graphs.all():
        reached: dict[str, int] = {}
        for pattern in (0xA5, 0x5A):
            lab, rng = Laboratory(3, "float32", pattern), np.random.default_rng(1)
            arrays: dict[str, Array] = {
                tensor.name: rng.uniform(0.5, 1.5, tensor.shape).astype(np.float32) for tensor in made.resident()
            }
            arrays["x"] = rng.standard_normal((3, *shape)).astype(np.float32)
            arrays["labels"] = np.arange(3, dtype=np.int32)
            lab.run_graph(made, arrays)
            assert all(np.isfinite(arrays[name]).all() for name in graphs.delta)
            for name, (end, _) in lab.scratch_reached.items():
                reached[name] = max(reached.get(name, 0), end)
        promised = {name: promise for name, (_, promise) in lab.scratch_reached.items()}
        assert {name: end for name, end in reached.items() if end != promised[name]} == {}


def test_a_step_on_statistics_of_the_batch_subtracts_the_gradient_of_the_batch() -> None:
    graphs = differentiate(Full().apply(everything((2, 6, 5))).graph, Sgd(), 4)
    rng = np.random.default_rng(2)
    arrays: dict[str, Array] = {t.name: rng.uniform(0.5, 1.5, t.shape) for t in graphs.direct.resident()}
    arrays["ws"] = rng.standard_normal((4, 4, 3, 3))
    arrays["x"], arrays["labels"] = rng.standard_normal((4, 2, 6, 5)), rng.integers(0, 3, 4, dtype=np.int32)
    after = Laboratory(4).run_graph(graphs.direct, {name: value.copy() for name, value in arrays.items()})

    def loss(name: str, move: Array) -> float:
        moved = {**{key: value.copy() for key, value in arrays.items()}, name: arrays[name] + move}
        return float(Laboratory(4).run_graph(graphs.direct, moved)["losses"].mean())

    for name in (name for name in graphs.delta if "running" not in name):
        gradient, direction = arrays[name] - after[name], rng.standard_normal(arrays[name].shape)
        slope = (loss(name, 1e-6 * direction) - loss(name, -1e-6 * direction)) / 2e-6
        scale = float(np.abs(gradient * direction).sum())
        assert abs(float((gradient * direction).sum()) - slope) < 1e-6 * max(scale, 1e-2), name
