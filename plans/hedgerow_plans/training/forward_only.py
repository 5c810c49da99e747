"""Graphs that train without a backward pass, for memory that no backward plan fits: MeZO (Malladi et al. 2023).

Each micro-batch runs the network twice, a little along a random direction and a little against it; the difference of
the losses is the slope along that direction, and the step ends by walking down it. Nothing survives but the trained
tensors: there is no optimiser state, and momentum or moments of the job's optimiser are not used.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Graph, Node, Role, Section, Tensor
from hedgerow_plans.graph.ops.zeroth_order import ACCUMULATE_SLOPE, DESCEND, PERTURBED
from hedgerow_plans.training import modes
from hedgerow_plans.training.losses import loss_nodes
from hedgerow_plans.training.optimizers import Optimizer
from hedgerow_plans.training.pruning import pruned

NAME = "mezo"
DISTANCE = 1e-3
"""How far along the direction the losses are taken, for every element."""

SLOPE = "slope"
PREFIXES = ("plus.", "minus.", "descend.")
REMARKS = (
    "No backward plan fits: the program trains with forward passes only (mezo), without momentum or moments.",
    "Its results are not those of a program with a backward pass, and its rungs are not mixed with such.",
    "Forward passes need many more steps, and a learning rate smaller by about the number of trained elements.",
)


@dataclass(frozen=True, slots=True)
class ForwardOnlyGraphs:
    """One graph for every micro-batch size, and one to evaluate."""

    train: Graph
    evaluate: Graph
    delta: tuple[str, ...]

    def all(self) -> tuple[Graph, ...]:
        """Return both."""
        return self.train, self.evaluate


def forward_only(graph: Graph, optimizer: Optimizer, batch_size: int, loss: str, evaluate: Graph) -> ForwardOnlyGraphs:
    """Return the graphs that train a forward graph's trainable tensors without a backward pass."""
    forward = pruned(graph)
    residents = forward.resident()
    trainable = [tensor for tensor in residents if tensor.role is Role.TRAINABLE]
    nodes = (*modes.for_training(forward.nodes, forward.by_name()), *loss_nodes(forward, loss))
    keys = {tensor.name: key for key, tensor in enumerate(trainable)}
    zero = Node(SLOPE, "zero", (), (SLOPE,), attributes={"shape": (1,)}, section=Section.BEGIN)
    passes = (*_pass(nodes, keys, "plus.", DISTANCE), *_pass(nodes, keys, "minus.", -DISTANCE))
    ends = tuple(f"{prefix}{nodes[-1].outputs[0]}" for prefix in ("plus.", "minus."))
    about = {"distance": DISTANCE, "batch_size": batch_size}
    slope = Node(f"{ACCUMULATE_SLOPE}.{SLOPE}", ACCUMULATE_SLOPE, ends, (), (SLOPE,), about)
    steps = tuple(_descend(name, key, optimizer) for name, key in keys.items())
    train = _graph((zero, *passes, slope, *steps), residents, ends[:1])
    kept = tuple(tensor for tensor in evaluate.tensors if tensor.role is not Role.STATE)
    return ForwardOnlyGraphs(train, replace(evaluate, tensors=kept), tuple(keys))


def _pass(nodes: Sequence[Node], keys: dict[str, int], prefix: str, distance: float) -> Iterator[Node]:
    """Yield the forward nodes under other names; each trained tensor has a moved copy, made before its first reader."""
    moved: set[str] = set()
    made: set[str] = set()
    for node in nodes:
        for name in node.inputs:
            if name in keys and name not in moved:
                moved.add(name)
                about = {"key": keys[name], "distance": distance}
                yield Node(f"{prefix}{name}", PERTURBED, (name,), (f"{prefix}{name}",), attributes=about)
        inputs = tuple(f"{prefix}{name}" if name in moved | made else name for name in node.inputs)
        made.update(node.outputs)
        outputs = tuple(f"{prefix}{name}" for name in node.outputs)
        yield replace(node, name=f"{prefix}{node.name}", inputs=inputs, outputs=outputs)


def _descend(name: str, key: int, optimizer: Optimizer) -> Node:
    about = {"key": key, "weight_decay": optimizer.weight_decay}
    return Node(f"{DESCEND}.{name}", DESCEND, (SLOPE,), (), (name,), about, Section.FINISH)


def _graph(nodes: Sequence[Node], residents: Sequence[Tensor], outputs: tuple[str, ...]) -> Graph:
    tensors = {tensor.name: tensor for tensor in residents}
    for node in nodes:
        tensors.update((tensor.name, tensor) for tensor in table.infer(node, tensors))
    return Graph(NAME, tuple(tensors.values()), tuple(nodes), outputs)
