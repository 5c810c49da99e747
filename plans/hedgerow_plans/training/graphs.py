"""From a forward graph to the three graphs of a job: two ways to train and one to evaluate.

All three list the same resident tensors in the same order, optimiser state included, and forward tensors keep their
names, so that one layout of what survives a step serves every plan.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hedgerow_plans.graph import table
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Node, Role, Tensor
from hedgerow_plans.graph.validate import check
from hedgerow_plans.training import updates
from hedgerow_plans.training.backward import differentiate_nodes
from hedgerow_plans.training.optimizers import STATE_PREFIXES, UPDATE_PREFIXES, Optimizer
from hedgerow_plans.training.pruning import pruned

LABELS = "labels"
LOSSES = "losses"

_GRADIENT_PREFIXES = ("grad.", "sum.", "mask.", "index.", "probabilities.", "accumulate.")
RESERVED_PREFIXES = _GRADIENT_PREFIXES + STATE_PREFIXES + UPDATE_PREFIXES
"""What the names of a forward graph must not begin with, because differentiating makes such names."""


@dataclass(frozen=True, slots=True)
class TrainingGraphs:
    """The graphs of one job, and the names of what they train."""

    direct: Graph  # the batch in one micro-batch; updates inside the body
    accumulating: Graph  # several micro-batches; updates at the end
    evaluate: Graph  # forward only; outputs logits and losses
    delta: tuple[str, ...]

    def all(self) -> tuple[Graph, Graph, Graph]:
        """Return the three graphs."""
        return self.direct, self.accumulating, self.evaluate


def differentiate(graph: Graph, optimizer: Optimizer, batch_size: int) -> TrainingGraphs:
    """Return the graphs that train a forward graph's trainable tensors, or raise a sentence."""
    _check_forward(graph, batch_size)
    forward = pruned(graph)
    trainable = tuple(tensor for tensor in graph.tensors if tensor.role is Role.TRAINABLE)
    _check_reached(trainable, forward)
    state = tuple(tensor for parameter in trainable for tensor in optimizer.state(parameter))
    residents = (*forward.resident(), *state, *optimizer.shared_state())
    nodes = (*forward.nodes, *_loss(forward.outputs[0]))
    tape = differentiate_nodes(nodes, residents, batch_size)
    return TrainingGraphs(
        updates.direct(tape, trainable, optimizer, (LOSSES,)),
        updates.accumulating(tape, trainable, optimizer, (LOSSES,)),
        _evaluate(nodes, residents, forward.outputs[0]),
        tuple(tensor.name for tensor in trainable),
    )


def _loss(logits: str) -> tuple[Node, Node]:
    labels = Node(LABELS, "input", (), (LABELS,), attributes={"field": "y"})
    return labels, Node(LOSSES, "cross_entropy", (logits, LABELS), (LOSSES,))


def _evaluate(nodes: Iterable[Node], residents: Iterable[Tensor], logits: str) -> Graph:
    tensors = {tensor.name: tensor for tensor in residents}
    for node in nodes:
        tensors.update((tensor.name, tensor) for tensor in table.infer(node, tensors))
    return Graph("evaluate", tuple(tensors.values()), tuple(nodes), (logits, LOSSES))


def _check_forward(graph: Graph, batch_size: int) -> None:
    check(graph)
    if batch_size < 1:
        raise GraphError(f"Graph {graph.name!r} cannot train with batch size {batch_size}; give it at least 1.")
    if len(graph.outputs) != 1:
        count = len(graph.outputs)
        raise GraphError(f"Graph {graph.name!r} has {count} outputs; give it one, the logits.")
    if not any(tensor.role is Role.TRAINABLE for tensor in graph.tensors):
        raise GraphError(f"Graph {graph.name!r} has no trainable tensor; apply a method to it first.")
    names = [tensor.name for tensor in graph.tensors] + [node.name for node in graph.nodes]
    for name in names:
        if name in (LABELS, LOSSES) or name.startswith(RESERVED_PREFIXES):
            raise GraphError(f"Graph {graph.name!r} uses the name {name!r}, which training needs; rename it.")


def _check_reached(trainable: Iterable[Tensor], forward: Graph) -> None:
    kept = forward.by_name()
    for tensor in trainable:
        if tensor.name not in kept:
            logits = forward.outputs[0]
            raise GraphError(f"Trainable tensor {tensor.name!r} does not reach {logits!r}; freeze it or use it.")
