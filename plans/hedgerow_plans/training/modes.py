"""What differs between a forward graph and its use: norms while they learn, and dropout that only training has.

A batch norm whose running statistics are trainable works on the batch in training and saves its mean and variance, from
which one node a step moves the running ones; it no longer reads them, so that computing it again changes nothing. In
every other graph batch norms work with running statistics. Such training cannot be cut into micro-batches: the
statistics of a part are not those of the whole.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hedgerow_plans.graph import running_statistics, table
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Node, Role, Tensor
from hedgerow_plans.graph.ops.batch_norm import BATCH, RUNNING, is_batch

Tensors = Mapping[str, Tensor]


def for_training(nodes: Iterable[Node], tensors: Tensors) -> tuple[Node, ...]:
    """Return forward nodes as training runs them, or raise a sentence about statistics that cannot be trained."""
    nodes = tuple(nodes)
    _check_statistics(nodes, tensors)
    return tuple(_trained(node, tensors) if node.op == "batch_norm" else node for node in nodes)


def _trained(node: Node, tensors: Tensors) -> Node:
    if not _moves(node, tensors):
        return _with_running(node)
    y = node.outputs[0]
    return replace(node, inputs=node.inputs[:3], outputs=(y, f"statistics.{y}"))


def _moves(node: Node, tensors: Tensors) -> bool:
    return any(tensors[name].role is Role.TRAINABLE for name in running_statistics.of(node))


def _with_running(node: Node) -> Node:
    if len(node.inputs) < 5:
        problem = "has no running statistics to evaluate with"
        raise GraphError(f"Node {node.name!r} (batch_norm) {problem}; give it a running mean and variance.")
    return replace(node, attributes={**node.attributes, "statistics": RUNNING})


def _check_statistics(nodes: Sequence[Node], tensors: Tensors) -> None:
    uses = Counter(name for node in nodes for name in running_statistics.of(node))
    for node in (node for node in nodes if _moves(node, tensors)):
        if node.op == "batch_norm" and not is_batch(node):
            problem = f"its statistics are {RUNNING!r} and {node.inputs[3]!r} is trainable"
            raise GraphError(f"Node {node.name!r} (batch_norm): {problem}; freeze it, or say {BATCH!r}.")
        for name in running_statistics.of(node):
            if tensors[name].role is not Role.TRAINABLE:
                raise GraphError(f"Node {node.name!r} ({node.op}): only {name!r} is frozen; train all or none.")
            if uses[name] > 1:
                raise GraphError(f"Running statistics {name!r} belong to {uses[name]} norms; freeze them to train.")


def moving(graph_nodes: Iterable[Node], tensors: Tensors) -> frozenset[str]:
    """Return the running statistics of forward nodes that training moves; they have no gradient."""
    return frozenset(name for node in graph_nodes if _moves(node, tensors) for name in running_statistics.of(node))


def moves(forward: Iterable[Node], tensors: Tensors, batch_size: int) -> Iterator[Node]:
    """Yield, for each norm that learns, the node that moves its running statistics once a step."""
    for node in (node for node in forward if _moves(node, tensors)):
        yield _move_of_standardise(node) if node.op == "standardise" else _move_of_norm(node, tensors, batch_size)


def _move_of_standardise(node: Node) -> Node:
    y = node.outputs[0]
    return Node(f"move.{y}", "update_standardisation", node.inputs[:1], (), running_statistics.of(node))


def _move_of_norm(node: Node, tensors: Tensors, batch_size: int) -> Node:
    y = tensors[node.outputs[0]]
    momentum = node.attributes.get("momentum", 0.1)
    attributes = {"momentum": momentum, "samples": batch_size * (y.elements // y.shape[0])}
    inputs = (f"statistics.{y.name}",)
    move = Node(f"move.{y.name}", "update_running_statistics", inputs, (), node.inputs[3:], attributes)
    table.infer(move, {**tensors, inputs[0]: Tensor(inputs[0], (2, y.shape[0]), batched=False)})
    return move


def why_the_batch_is_whole(moves: Sequence[Node]) -> str:
    """Return why there are no micro-batches, as a sentence; empty if nothing forbids them."""
    if not moves:
        return ""
    first = moves[0].name.removeprefix("move.")[:60]
    learners = f"{first!r} and {len(moves) - 1} more norms learn" if len(moves) > 1 else f"{first!r} learns"
    learn = f"{learners} from the statistics of the whole batch"
    return f"The batch is never cut into micro-batches, because {learn}; a method that freezes them allows it."


def for_evaluation(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return forward nodes as evaluation runs them: running statistics, and no dropout."""
    kept: list[Node] = []
    stands_for: dict[str, str] = {}
    for node in nodes:
        inputs = tuple(stands_for.get(name, name) for name in node.inputs)
        if node.op == "dropout":
            stands_for[node.outputs[0]] = inputs[0]
            continue
        rewired = replace(node, inputs=inputs)
        kept.append(_with_running(rewired) if node.op == "batch_norm" else rewired)
    return tuple(kept)
