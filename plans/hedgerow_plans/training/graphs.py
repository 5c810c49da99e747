"""From a forward graph to the three graphs of a job: two ways to train and one to evaluate.

All three list the same resident tensors in the same order, optimiser state included, and forward tensors keep their
names, so that one layout of what survives a step serves every plan.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hedgerow_plans.graph import table
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Node, Role, Tensor
from hedgerow_plans.graph.validate import check
from hedgerow_plans.training import folded_updates, forward_only, modes, updates
from hedgerow_plans.training.backward import differentiate_nodes
from hedgerow_plans.training.clipping import CLIPPING_PREFIXES, Clipping
from hedgerow_plans.training.losses import DEFAULT_LOSS, LABELS, LOSSES, loss_nodes
from hedgerow_plans.training.optimizers import STATE_PREFIXES, UPDATE_PREFIXES, Optimizer
from hedgerow_plans.training.pruning import pruned

_SAVED_PREFIXES = ("mask.", "index.", "probabilities.", "statistics.", "slope.")
_GRADIENT_PREFIXES = ("grad.", "sum.", *_SAVED_PREFIXES, "accumulate.", "move.")
_TUNING_PREFIXES = ("reordered.",)
_RULE_PREFIXES = STATE_PREFIXES + UPDATE_PREFIXES + CLIPPING_PREFIXES + forward_only.PREFIXES
RESERVED_PREFIXES = _GRADIENT_PREFIXES + _TUNING_PREFIXES + _RULE_PREFIXES
"""What the names of a forward graph must not begin with, because differentiating and tuning make such names."""


@dataclass(frozen=True, slots=True)
class TrainingGraphs:
    """The graphs of one job, and the names of what they train."""

    direct: Graph  # the batch in one micro-batch; updates inside the body
    in_pieces: Graph | None  # several micro-batches; updates at the end; None: the batch must stay whole
    evaluate: Graph  # forward only; outputs logits and losses
    delta: tuple[str, ...]
    why_whole: str = ""  # why there is no graph in pieces, a sentence

    @property
    def accumulating(self) -> Graph:
        """Return the graph for several micro-batches, or raise why there is none."""
        if self.in_pieces is None:
            raise GraphError(self.why_whole)
        return self.in_pieces

    def all(self) -> tuple[Graph, ...]:
        """Return the graphs there are: direct, accumulating unless the batch must stay whole, evaluate."""
        return tuple(graph for graph in (self.direct, self.in_pieces, self.evaluate) if graph is not None)


def differentiate(
    graph: Graph, optimizer: Optimizer, batch_size: int, loss: str = DEFAULT_LOSS, clipping: Clipping | None = None
) -> TrainingGraphs:
    """Return the graphs that train a forward graph's trainable tensors, or raise a sentence."""
    _check_forward(graph, batch_size)
    forward = pruned(graph)
    trainable = tuple(tensor for tensor in graph.tensors if tensor.role is Role.TRAINABLE)
    _check_reached(trainable, forward)
    tensors = forward.by_name()
    moving = modes.moving(forward.nodes, tensors)
    descending = tuple(tensor for tensor in trainable if tensor.name not in moving)
    state = tuple(tensor for parameter in descending for tensor in optimizer.state(parameter))
    residents = (*forward.resident(), *state, *optimizer.shared_state())
    compared = loss_nodes(forward, loss)
    tape = differentiate_nodes((*modes.for_training(forward.nodes, tensors), *compared), residents, batch_size)
    moves = tuple(modes.moves(forward.nodes, tensors, batch_size))
    rule = updates.Rule(optimizer, clipping)
    return TrainingGraphs(
        folded_updates.fold(updates.direct(tape, descending, rule, (LOSSES,), moves), folded_updates.ROWS),
        None if moves else updates.accumulating(tape, descending, rule, (LOSSES,)),
        _evaluate(modes.for_evaluation((*forward.nodes, *compared)), residents),
        tuple(tensor.name for tensor in trainable),
        modes.why_the_batch_is_whole(moves),
    )


def _evaluate(nodes: Sequence[Node], residents: Iterable[Tensor]) -> Graph:
    tensors = {tensor.name: tensor for tensor in residents}
    for node in nodes:
        tensors.update((tensor.name, tensor) for tensor in table.infer(node, tensors))
    logits = nodes[-1].inputs[0]
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
        if name in (LABELS, LOSSES, forward_only.SLOPE) or name.startswith(RESERVED_PREFIXES):
            raise GraphError(f"Graph {graph.name!r} uses the name {name!r}, which training needs; rename it.")


def _check_reached(trainable: Iterable[Tensor], forward: Graph) -> None:
    kept = forward.by_name()
    for tensor in trainable:
        if tensor.name not in kept:
            logits = forward.outputs[0]
            raise GraphError(f"Trainable tensor {tensor.name!r} does not reach {logits!r}; freeze it or use it.")
