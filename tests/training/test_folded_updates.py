"""Plain SGD changes the rows of a table that tokens chose, and a layer's weight, without a gradient of the whole."""

import tracemalloc

import numpy as np
import pytest

from hedgerow_agent.core.blas import find_blas
from hedgerow_agent.core.kernels import dense, sinks
from hedgerow_agent.core.kernels.call import Array, Call, Runtime
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import DType, Graph, Node, Order, Role, Tensor
from hedgerow_plans.graph.table import infer
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.models import zoo
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Adam, Optimizer, Sgd
from hedgerow_plans.tuning import LEAST_BUDGET_BYTES, tuned
from support.kernel_calls import Laboratory

ROWS, WIDTH, TOKENS, BATCH = 40, 300, 30, 4
"""More gradients than a tile holds, and more tokens than rows: some come again, in one tile and in several."""


def words() -> Graph:
    build = Builder("words")
    x = build.embedding("words", build.tokens(TOKENS), ROWS, WIDTH)
    return build.graph(build.linear("logits", build.select("first", build.layer_norm("norm", x)), 3))


def ops(optimizer: Optimizer, graph: Graph | None = None) -> list[str]:
    direct = differentiate(Full().apply(graph or words()).graph, optimizer, BATCH).direct
    return [node.op for node in direct.nodes]


def test_only_an_optimizer_that_leaves_other_rows_alone_updates_by_rows() -> None:
    assert "sgd_rows" in ops(Sgd())
    assert "embedding_grad" not in ops(Sgd())
    for optimizer in (Sgd(momentum=0.9), Sgd(weight_decay=1e-4), Adam()):
        assert "sgd_rows" not in ops(optimizer)
        assert "embedding_grad" in ops(optimizer)


def test_the_gradient_of_a_table_that_is_chosen_from_twice_stays_whole() -> None:
    build = Builder("twice")
    x = build.tokens(TOKENS)
    first = build.embedding("words", x, ROWS, WIDTH)
    second = build.node("again", "embedding", (x, "words.weight"))
    total = build.select("first", build.add("sum", first, second))
    graph = build.graph(build.linear("logits", total, 3))
    assert ops(Sgd(), graph).count("embedding_grad") == 2
    assert "sgd_rows" not in ops(Sgd(), graph)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_move_as_the_whole_table_would(dtype: str) -> None:
    rng = np.random.default_rng(2)
    gradient = rng.standard_normal((BATCH, TOKENS, WIDTH)).astype(dtype)
    tokens = rng.integers(0, ROWS // 2, (BATCH, TOKENS), dtype=np.int32)
    table: Array = rng.standard_normal((ROWS, WIDTH)).astype(dtype)
    tensors = {
        "dy": Tensor("dy", (TOKENS, WIDTH)),
        "x": Tensor("x", (TOKENS,), DType.INT32),
        "table": Tensor("table", (ROWS, WIDTH), batched=False, role=Role.TRAINABLE),
    }
    wanted = table.astype(np.float64)
    np.subtract.at(wanted, tokens, gradient)
    update = Node("n", "sgd_rows", ("dy", "x"), (), ("table",))
    untouched = table[ROWS // 2 :].copy()
    Laboratory(BATCH, dtype).run(update, tensors, {"dy": gradient, "x": tokens, "table": table})
    assert np.allclose(table, wanted, rtol=0, atol=1e-5 if dtype == "float32" else 1e-12)
    assert np.array_equal(table[ROWS // 2 :], untouched)


def tuned_ops(optimizer: Optimizer, graph: Graph) -> list[str]:
    graphs = tuned(differentiate(Full().apply(graph).graph, optimizer, BATCH), LEAST_BUDGET_BYTES, BATCH)
    assert graphs.in_pieces is not None
    assert "sgd_linear" not in [node.op for node in graphs.in_pieces.nodes]  # it adds gradients up first
    return [node.op for node in graphs.direct.nodes]


def test_a_tuned_graph_updates_layers_without_their_gradients_where_the_optimizer_allows_it() -> None:
    graph = zoo.build("mlp")
    assert "sgd_linear" not in ops(Sgd(), graph)
    assert "linear_grad_weight" not in tuned_ops(Sgd(), graph)
    assert tuned_ops(Sgd(), graph).count("sgd_linear") == 3
    for optimizer in (Sgd(momentum=0.9), Sgd(weight_decay=1e-4), Adam()):
        assert "sgd_linear" not in tuned_ops(optimizer, graph)


@pytest.fixture(params=[True, False], ids=["one call of BLAS", "rows at a time"])
def with_blas(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether numpy's BLAS is known, as it is in numpy's own wheels, or not, as in a numpy that somebody else built."""
    assert find_blas() is not None
    if not request.param:
        monkeypatch.setattr(sinks, "find_blas", lambda: None)
    return bool(request.param)


@pytest.mark.usefixtures("with_blas")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [Order.SAMPLES, Order.INPUTS])
@pytest.mark.parametrize(("shape", "outputs"), [((300,), 1000), ((1000,), 300), ((30, 8), 6), ((1,), 7), ((5,), 1)])
def test_a_weight_moves_as_by_its_gradient(shape: tuple[int, ...], outputs: int, order: Order, dtype: str) -> None:
    rng, features = np.random.default_rng(2), shape[-1]
    gradient = rng.standard_normal((BATCH, *shape[:-1], outputs)).astype(dtype)
    x = rng.standard_normal((BATCH, *shape)).astype(dtype)
    weight: Array = rng.standard_normal((outputs, features)).astype(dtype)
    tensors = {
        "dy": Tensor("dy", (*shape[:-1], outputs)),
        "x": Tensor("x", shape),
        "weight": Tensor("weight", (outputs, features), batched=False, role=Role.TRAINABLE, order=order),
    }
    wanted = weight - np.einsum("no,nf->of", gradient.reshape(-1, outputs), x.reshape(-1, features))
    given = (gradient.copy(), x.copy())
    laboratory = Laboratory(BATCH, dtype)
    laboratory.run(
        Node("n", "sgd_linear", ("dy", "x"), (), ("weight",)), tensors, {"dy": gradient, "x": x, "weight": weight}
    )
    assert np.allclose(weight, wanted, rtol=0, atol=1e-4 if dtype == "float32" else 1e-11)
    assert np.array_equal(gradient, given[0])
    assert np.array_equal(x, given[1])


def test_a_weight_of_32_bits_takes_no_memory_beside_it(with_blas: bool) -> None:
    weight, gradient, x = (np.ones(shape, np.float32) for shape in ((2000, 500), (BATCH, 2000), (BATCH, 500)))
    node = Node("n", "sgd_linear", ("dy", "x"), (), ("weight",))
    bound = dense.bind_sgd_linear(Call(node, (gradient, x), (), (weight,), np.zeros(0, np.uint8), Runtime(0.5)))
    tracemalloc.start()
    bound()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (weight == 1 - 0.5 * BATCH).all()
    assert peak < 4096, with_blas


def test_a_frozen_weight_is_not_updated() -> None:
    tensors = {
        "dy": Tensor("dy", (2,)),
        "x": Tensor("x", (3,)),
        "weight": Tensor("weight", (2, 3), batched=False, role=Role.FROZEN),
    }
    with pytest.raises(GraphError, match="'weight' is frozen; it can only update a trainable tensor"):
        infer(Node("n", "sgd_linear", ("dy", "x"), (), ("weight",)), tensors)


def test_a_frozen_table_is_not_updated() -> None:
    tensors = {
        "dy": Tensor("dy", (2, 3)),
        "x": Tensor("x", (2,), DType.INT32),
        "table": Tensor("table", (5, 3), batched=False, role=Role.FROZEN),
    }
    with pytest.raises(GraphError, match="'table' is frozen; it can only update a trainable tensor"):
        infer(Node("n", "sgd_rows", ("dy", "x"), (), ("table",)), tensors)
