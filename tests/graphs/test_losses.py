"""What a loss adds to a graph: targets of the right kind, and sentences for losses that do not fit."""

import pytest

from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import DType, Graph
from hedgerow_plans.graph.validate import check
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd


def network(outputs: int) -> Graph:
    build = Builder("network")
    hidden = build.relu("relu", build.linear("hidden", build.input((6,)), 3))
    return Full().apply(build.graph(build.linear("out", hidden, outputs))).graph


@pytest.mark.parametrize(
    ("loss", "op", "shape", "dtype"),
    [
        ("cross_entropy", "cross_entropy", (), DType.INT32),
        ("mse", "mse", (6,), DType.FLOAT32),
        ("bce", "bce", (6,), DType.FLOAT32),
        ("reconstruction", "mse", (6,), DType.FLOAT32),
    ],
)
def test_targets_have_the_type_and_shape_of_the_loss(loss: str, op: str, shape: tuple[int, ...], dtype: DType) -> None:
    graphs = differentiate(network(6), Sgd(), 4, loss)
    for graph in graphs.all():
        check(graph)
        targets = graph.by_name()["labels"]
        assert (targets.shape, targets.dtype) == (shape, dtype)
        assert [node.op for node in graph.nodes if node.outputs[:1] == ("losses",)] == [op]
    assert graphs.evaluate.outputs == ("out", "losses")


def test_cross_entropy_is_what_a_job_gets_unasked() -> None:
    assert differentiate(network(3), Sgd(), 4) == differentiate(network(3), Sgd(), 4, "cross_entropy")


def test_reconstruction_reads_the_samples_again_instead_of_keeping_them() -> None:
    graph = differentiate(network(6), Sgd(), 4, "reconstruction").evaluate
    readers = [node.name for node in graph.nodes if node.op == "input" and node.attributes["field"] == "x"]
    assert readers == ["x", "labels"]
    assert [node.name for node in graph.nodes if "x" in node.inputs] == ["hidden"]


def test_what_cannot_be_reconstructed_is_refused() -> None:
    with pytest.raises(GraphError) as refusal:
        differentiate(network(5), Sgd(), 4, "reconstruction")
    assert str(refusal.value) == (
        "Graph 'network' makes float32 [5] of samples float32 [6]; to reconstruct them make both alike."
    )


def test_an_unknown_loss_is_refused_with_those_that_exist() -> None:
    with pytest.raises(GraphError, match="There is no loss 'hinge'; known are cross_entropy, mse, bce, reconstruction"):
        differentiate(network(5), Sgd(), 4, "hinge")
