"""Plain SGD changes the rows of a table that tokens chose, and makes no gradient of the whole table."""

import numpy as np
import pytest

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import DType, Graph, Node, Role, Tensor
from hedgerow_plans.graph.table import infer
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Adam, Optimizer, Sgd
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


def test_a_frozen_table_is_not_updated() -> None:
    tensors = {
        "dy": Tensor("dy", (2, 3)),
        "x": Tensor("x", (2,), DType.INT32),
        "table": Tensor("table", (5, 3), batched=False, role=Role.FROZEN),
    }
    with pytest.raises(GraphError, match="'table' is frozen; it can only update a trainable tensor"):
        infer(Node("n", "sgd_rows", ("dy", "x"), (), ("table",)), tensors)
