"""What kernels compute and how much scratch they really use."""

import numpy as np
import pytest

from hedgerow_agent.core.kernels import KERNELS
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.ir import Init, Node, Role, Tensor
from hedgerow_plans.graph.table import OPERATORS
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.methods.lora import Lora
from hedgerow_plans.methods.selection import Full, Last
from hedgerow_plans.models import zoo
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from support.kernel_calls import Laboratory

PATTERNS = (0xA5, 0x5A)


def test_every_operator_of_the_table_has_a_kernel_and_no_other_exists() -> None:
    assert set(KERNELS) == set(OPERATORS)


def test_convolution_matches_its_definition() -> None:
    rng = np.random.default_rng(1)
    x, w, b = rng.standard_normal((2, 4, 5, 6)), rng.standard_normal((6, 2, 3, 2)), rng.standard_normal(6)
    tensors = {
        "x": Tensor("x", (4, 5, 6)),
        "w": Tensor("w", (6, 2, 3, 2), batched=False),
        "b": Tensor("b", (6,), batched=False),
    }
    attributes = {"stride": 2, "padding": 1, "groups": 2}
    node = Node("n", "conv2d", ("x", "w", "b"), ("y",), attributes=attributes)
    found = Laboratory(2).run(node, tensors, {"x": x, "w": w, "b": b})["y"]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    assert found.shape == (2, 6, 3, 4)
    for n, o, r, c in np.ndindex(found.shape):
        group = slice(0, 2) if o < 3 else slice(2, 4)
        patch = padded[n, group, 2 * r : 2 * r + 3, 2 * c : 2 * c + 2]
        assert np.isclose(found[n, o, r, c], (patch * w[o]).sum() + b[o])


def test_mask_bits_are_in_the_order_of_packbits() -> None:
    x = np.array([[1.0, -1.0, 0.0, 2.0, 3.0, -4.0, 5.0, 6.0, 7.0]])
    found = Laboratory(1).run(Node("n", "relu", ("x",), ("y", "m")), {"x": Tensor("x", (9,))}, {"x": x})
    assert found["m"].tolist() == [[0b10011011, 0b10000000]]
    assert found["y"].tolist() == [[1, 0, 0, 2, 3, 0, 5, 6, 7]]


def test_the_first_of_equal_pixels_wins_its_window() -> None:
    x = np.zeros((1, 1, 2, 4))
    x[0, 0, 1, 2:] = 5.0
    node = Node("n", "max_pool2d", ("x",), ("y", "i"), attributes={"kernel": 2, "stride": 2})
    found = Laboratory(1).run(node, {"x": Tensor("x", (1, 2, 4))}, {"x": x})
    assert found["i"].tolist() == [[[[0, 2]]]]


@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.0), (0.9, 0.0), (0.9, 0.01), (0.0, 0.01)])
def test_sgd_follows_its_formula_over_several_tiles(momentum: float, decay: float) -> None:
    rng = np.random.default_rng(2)
    p, g, v = (rng.standard_normal(40_000) for _ in range(3))
    tensors = {
        "p": Tensor("p", (40_000,), batched=False, role=Role.TRAINABLE, init=Init()),
        "v": Tensor("v", (40_000,), batched=False, role=Role.STATE, init=Init()),
        "g": Tensor("g", (40_000,), batched=False),
    }
    arrays: dict[str, Array] = {"p": p.copy(), "v": v.copy(), "g": g}
    updates = ("p", "v") if momentum else ("p",)
    attributes = {"momentum": momentum, "weight_decay": decay}
    Laboratory(1).run(Node("n", "sgd", ("g",), (), updates, attributes), tensors, arrays)
    speed = momentum * v + g + decay * p
    assert np.allclose(arrays["p"], p - 1.0 * speed, rtol=0, atol=1e-12)
    assert np.allclose(arrays["v"], speed if momentum else v, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", [Full(), Last(), Lora(3, 6.0)], ids=lambda method: method.name)
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 33, 70)], ids=["small", "larger-than-a-tile"])
def test_scratch_is_used_to_its_last_byte_and_not_beyond(method: Method, shape: tuple[int, ...]) -> None:
    forward = method.apply(zoo.build("cnn-small", input_shape=shape)).graph
    graphs = differentiate(forward, Sgd(0.9, 0.01), 6)
    rng = np.random.default_rng(0)
    for graph in graphs.all():
        reached: dict[str, int] = {}
        for pattern in PATTERNS:
            lab = Laboratory(6, "float32", pattern)
            arrays: dict[str, Array] = {
                tensor.name: rng.standard_normal(tensor.shape).astype(np.float32) for tensor in graph.resident()
            }
            arrays["x"] = rng.standard_normal((6, *shape)).astype(np.float32)
            arrays["labels"] = np.arange(6, dtype=np.int32)
            lab.run_graph(graph, arrays)
            for name, (end, _) in lab.scratch_reached.items():
                reached[name] = max(reached.get(name, 0), end)
        promised = {name: promise for name, (_, promise) in lab.scratch_reached.items()}
        assert reached == promised
        assert any(promised.values())


def test_a_kernel_refuses_less_scratch_than_it_needs() -> None:
    node = Node("n", "sgd", ("g",), (), ("p",))
    tensors = {
        "p": Tensor("p", (8,), batched=False, role=Role.TRAINABLE, init=Init()),
        "g": Tensor("g", (8,), batched=False),
    }
    # 64-bit numbers in scratch counted for 32-bit ones.
    lab = Laboratory(1, "float32")
    with pytest.raises(ValueError, match="needs 64 bytes of scratch and the plan gives 32"):
        lab.run(node, tensors, {"p": np.zeros(8), "g": np.zeros(8)})
