"""What the kernels of layers compute, by their definitions."""

import numpy as np
import pytest

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.ir import Attribute, DType, Node, Tensor
from support.kernel_calls import Laboratory


def run(op: str, arrays: dict[str, Array], **attributes: Attribute) -> Array:
    """Run a node on samples; arrays called w and b are parameters."""
    tensors = {
        name: Tensor(name, array.shape, batched=False) if name in "wb" else Tensor(name, array.shape[1:], _type(array))
        for name, array in arrays.items()
    }
    batch = next(len(array) for name, array in arrays.items() if name not in "wb")
    return Laboratory(batch).run(Node("n", op, tuple(arrays), ("y",), (), attributes), tensors, arrays)["y"]


def _type(array: Array) -> DType:
    return DType.INT32 if array.dtype == np.int32 else DType.FLOAT32


@pytest.mark.parametrize(
    ("corners", "expected"),
    [("halved", [0.0, 0.25, 0.75, 1.0]), ("aligned", [0.0, 1 / 3, 2 / 3, 1.0])],
)
def test_bilinear_interpolation_of_an_edge(corners: str, expected: list[float]) -> None:
    edge = np.array([[[[0.0, 1.0]]]])
    assert np.allclose(run("upsample_bilinear", {"x": edge}, size=(1, 4), corners=corners)[0, 0, 0], expected)
    upright = edge.transpose(0, 1, 3, 2)
    assert np.allclose(run("upsample_bilinear", {"x": upright}, size=(4, 1), corners=corners)[0, 0, :, 0], expected)


@pytest.mark.parametrize("corners", ["halved", "aligned"])
def test_interpolation_to_the_same_size_changes_nothing(corners: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 4))
    assert np.allclose(run("upsample_bilinear", {"x": x}, size=(5, 4), corners=corners), x)


@pytest.mark.parametrize("rounding", ["down", "up"])
@pytest.mark.parametrize("op", ["max_pool2d", "avg_pool2d"])
def test_pooling_matches_its_definition(op: str, rounding: str) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 7, 6))
    found = run(op, {"x": x}, kernel=(3, 2), stride=(3, 2), padding=(1, 1), rounding=rounding)
    assert found.shape == (2, 3, 3, 4)
    filler = -np.inf if op == "max_pool2d" else 0.0
    padded = np.pad(x, ((0, 0), (0, 0), (1, 4), (1, 4)), constant_values=filler)
    for n, c, row, column in np.ndindex(found.shape):
        window = padded[n, c, 3 * row : 3 * row + 3, 2 * column : 2 * column + 2]
        assert np.isclose(found[n, c, row, column], window.max() if op == "max_pool2d" else window.mean())


def test_a_window_that_is_rounded_up_sees_what_is_left_of_the_image() -> None:
    x = np.arange(5.0).reshape(1, 1, 1, 5)
    assert run("max_pool2d", {"x": x}, kernel=(1, 2), stride=2, rounding="down").tolist() == [[[[1, 3]]]]
    assert run("max_pool2d", {"x": x}, kernel=(1, 2), stride=2, rounding="up").tolist() == [[[[1, 3, 4]]]]


def test_a_depthwise_convolution_matches_its_definition() -> None:
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((2, 3, 6, 5)), rng.standard_normal((3, 1, 3, 1))
    found = run("conv2d", {"x": x, "w": w}, groups=3, stride=(2, 1), padding=(1, 0))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    assert found.shape == (2, 3, 3, 5)
    for n, c, row, column in np.ndindex(found.shape):
        assert np.isclose(found[n, c, row, column], padded[n, c, 2 * row : 2 * row + 3, column] @ w[c, 0, :, 0])


def test_a_linear_layer_treats_every_token_alike() -> None:
    rng = np.random.default_rng(3)
    x, w, b = rng.standard_normal((2, 4, 3)), rng.standard_normal((5, 3)), rng.standard_normal(5)
    assert np.allclose(run("linear", {"x": x, "w": w, "b": b}), x @ w.T + b)


def test_an_embedding_picks_rows() -> None:
    table = np.arange(12.0).reshape(4, 3)
    tokens = np.array([[3, 0], [1, 3]], np.int32)
    assert np.array_equal(run("embedding", {"t": tokens, "w": table}), table[tokens])


def test_a_border_has_its_value_and_a_slice_takes_it_off_again() -> None:
    x = np.random.default_rng(4).standard_normal((2, 3, 2))
    bordered = run("pad", {"x": x}, before=(1, 0), after=(0, 2), value=7.5)
    assert np.array_equal(bordered, np.pad(x, ((0, 0), (1, 0), (0, 2)), constant_values=7.5))
    assert np.array_equal(run("slice", {"x": bordered}, start=(1, 0), shape=(3, 2)), x)
