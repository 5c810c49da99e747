"""The backward pass, written out at plan time as nodes after the forward ones.

Only what depends on a trainable tensor is differentiated, so nothing before the first one. Where a gradient equals
another one (a sum passes its gradient through) no tensor is made and the other one's name stands for both. Within a
layer the parameters' gradients come first, smallest first: then the layer's saved input dies before the gradient of
that input is born (`tuning.updates` has exceptions). Contributions to one gradient are summed as they arrive, so that
at most two are live.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hedgerow_plans.graph import running_statistics, table
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Node, Role, Tensor
from hedgerow_plans.graph.operator import Backward


@dataclass(frozen=True, slots=True)
class Tape:
    """Forward and backward nodes in order, all tensors, and the name of each trainable tensor's gradient."""

    nodes: tuple[Node, ...]
    tensors: tuple[Tensor, ...]
    gradients: dict[str, str]


def differentiate_nodes(nodes: Sequence[Node], residents: Sequence[Tensor], batch_size: int) -> Tape:
    """Append to forward nodes, of which the last is the loss, the nodes that compute all wanted gradients."""
    moved = {name for node in nodes for name in running_statistics.of(node)}  # by other means than a gradient
    trainable = [tensor.name for tensor in residents if tensor.role is Role.TRAINABLE and tensor.name not in moved]
    wanted = _wanted(nodes, trainable)
    writer = _Writer(residents, batch_size)
    forward = [_saving(node) if node.outputs[0] in wanted else node for node in nodes]
    for node in forward:
        writer.emit(node)
    on_path = [node for node in forward if node.outputs[0] in wanted]
    writer.expect(Counter(name for node in on_path for name in node.inputs if name in wanted))
    for node in reversed(on_path):
        writer.differentiate(node, wanted)
    return writer.tape(trainable)


def _wanted(nodes: Sequence[Node], trainable: Sequence[str]) -> set[str]:
    """Return the names of all tensors that depend on a trainable one, those included."""
    wanted = set(trainable)
    for node in nodes:
        if not wanted.isdisjoint(node.inputs):
            wanted.update(node.outputs[:1] if table.operator(node.op).saved else node.outputs)
    return wanted


def _saving(node: Node) -> Node:
    """Return the node with the extra output that its backward reads, if its operator has one."""
    row = table.operator(node.op)
    if not (row.saved and row.saves(node)):
        return node
    return replace(node, outputs=(node.outputs[0], f"{row.saved}.{node.outputs[0]}"))


class _Writer:
    """Appends nodes and keeps the books on gradients."""

    def __init__(self, residents: Sequence[Tensor], batch_size: int) -> None:
        self._batch_size = batch_size
        self._tensors = {tensor.name: tensor for tensor in residents}
        self._nodes: list[Node] = []
        self._gradients: dict[str, str] = {}
        self._uses: Counter[str] = Counter()  # contributions to each gradient
        self._arrived: Counter[str] = Counter()

    def emit(self, node: Node) -> str:
        """Append a node and return its first output."""
        for tensor in table.infer(node, self._tensors):
            if tensor.name in self._tensors:
                raise GraphError(f"Training needs the name {tensor.name!r}, which the graph already uses; rename it.")
            self._tensors[tensor.name] = tensor
        self._nodes.append(node)
        return node.outputs[0]

    def expect(self, uses: Counter[str]) -> None:
        """Note how many contributions each gradient will get."""
        self._uses = uses

    def differentiate(self, node: Node, wanted: set[str]) -> None:
        """Append what computes the gradients of a node's wanted inputs."""
        gradients = tuple(self._gradients.get(name, "") for name in node.outputs)
        for position in self._order(node, wanted):
            name = node.inputs[position]
            result = f"grad.{name}" if self._uses[name] == 1 else f"grad.{name}.from.{node.name}.{position}"
            self._contribute(name, self._input_gradient(node, position, gradients, result))

    def tape(self, trainable: Sequence[str]) -> Tape:
        """Return everything written."""
        gradients = {name: self._gradients[name] for name in trainable if name in self._gradients}
        return Tape(tuple(self._nodes), tuple(self._tensors.values()), gradients)

    def _order(self, node: Node, wanted: set[str]) -> Iterator[int]:
        positions = [position for position, name in enumerate(node.inputs) if name in wanted]
        tensors = self._tensors
        yield from sorted(
            positions, key=lambda at: (tensors[node.inputs[at]].batched, tensors[node.inputs[at]].elements)
        )

    def _input_gradient(self, node: Node, position: int, gradients: tuple[str, ...], result: str) -> str:
        rules = table.operator(node.op).backward
        rule = rules[position] if position < len(rules) else None
        if rule is None:
            problem = f"input {node.inputs[position]!r} of node {node.name!r} ({node.op}) has no gradient"
            raise GraphError(f"The graph cannot be differentiated: {problem}; train only what comes after it.")
        made = rule(Backward(node, self._tensors, gradients[0], result, self._batch_size, gradients))
        return gradients[0] if made is None else self.emit(made)

    def _contribute(self, name: str, contribution: str) -> None:
        self._arrived[name] += 1
        if name not in self._gradients:
            self._gradients[name] = contribution
            return
        last = self._arrived[name] == self._uses[name]
        total = f"grad.{name}" if last else f"grad.{name}.sum.{self._arrived[name]}"
        self._gradients[name] = self.emit(Node(total, "add", (self._gradients[name], contribution), (total,)))
