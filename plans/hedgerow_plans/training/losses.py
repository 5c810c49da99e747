"""What a job minimises: the nodes that read the targets and compare the output with them.

Targets are labels (the number of a class), numbers of the output's own shape, or the samples themselves. In the last
case the samples are read a second time, at the loss, so that they need not stay in memory through the whole network.
"""

from dataclasses import dataclass

from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Attribute, Graph, Node, Tensor
from hedgerow_plans.graph.operator import describe

LABELS = "labels"
LOSSES = "losses"


@dataclass(frozen=True, slots=True)
class Loss:
    """One way to compare an output with what it should be."""

    op: str
    field: str = "y"  # the array that the targets are read from
    alike: bool = True  # whether targets have the output's shape; else they are labels


CATALOGUE = {
    "cross_entropy": Loss("cross_entropy", alike=False),
    "mse": Loss("mse"),
    "bce": Loss("bce"),
    "reconstruction": Loss("mse", field="x"),
}
"""Losses by the name a job gives them."""

DEFAULT_LOSS = "cross_entropy"


def loss_nodes(graph: Graph, loss: str) -> tuple[Node, Node]:
    """Return the node that reads the targets of a forward graph's output and the one that makes the losses."""
    if loss not in CATALOGUE:
        raise GraphError(f"There is no loss {loss!r}; known are {', '.join(CATALOGUE)}.")
    chosen, output = CATALOGUE[loss], graph.by_name()[graph.outputs[0]]
    if chosen.field == "x":
        _check_samples(graph, output)
    attributes: dict[str, Attribute] = {"field": chosen.field}
    if chosen.alike:
        attributes.update(shape=output.shape, dtype="float32")
    targets = Node(LABELS, "input", (), (LABELS,), attributes=attributes)
    return targets, Node(LOSSES, chosen.op, (output.name, LABELS), (LOSSES,))


def _check_samples(graph: Graph, output: Tensor) -> None:
    tensors = graph.by_name()
    for node in graph.nodes:
        if node.op == "input" and node.attributes["field"] == "x":
            samples = tensors[node.outputs[0]]
            if (samples.shape, samples.dtype) != (output.shape, output.dtype):
                made = f"{output.dtype.value} {describe(output.shape)}"
                read = f"{samples.dtype.value} {describe(samples.shape)}"
                raise GraphError(
                    f"Graph {graph.name!r} makes {made} of samples {read}; to reconstruct them make both alike."
                )
