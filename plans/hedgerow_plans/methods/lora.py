"""Low-rank adapters: each linear and conv2d layer gets a small trained detour, its own parameters stay frozen.

    y = layer(x) + (alpha / rank) * up(down(x))

Pure LoRA: the last layer is adapted like any other and no bias is trained, so the delta is small and the same file of
base weights serves every method. `up` starts at zero, so that training starts from the base model exactly. The scale
is applied between down and up, where tensors have only `rank` channels; at the sum it would cost one more tensor of
the layer's full width in the backward. A layer with fewer inputs or outputs than `rank` gets a detour of that width,
because more cannot express more. A grouped convolution gets a detour in each group.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hedgerow_plans.graph import table
from hedgerow_plans.graph.builder import fan_in_init
from hedgerow_plans.graph.ir import Graph, Init, Node, Role, Tensor
from hedgerow_plans.methods.adapted import Adapted, MethodError, train_only

_LAYERS = ("linear", "conv2d")


@dataclass(frozen=True, slots=True)
class Lora:
    """Train low-rank detours around linear and conv2d layers; alpha is the rank unless given."""

    rank: int
    alpha: float | None = None  # None: equal to the rank, so the detour is not scaled

    @property
    def name(self) -> str:
        """Return the method's name in a TrainingJob."""
        return "lora"

    @property
    def scale(self) -> float:
        """Return what a detour is multiplied with."""
        return 1.0 if self.alpha is None else self.alpha / self.rank

    def apply(self, graph: Graph) -> Adapted:
        """Put a detour around each layer and train nothing else."""
        self._check(graph)
        tensors = graph.by_name()
        parameters: list[Tensor] = []
        nodes: list[Node] = []
        for node in graph.nodes:
            if node.op not in _LAYERS:
                nodes.append(node)
                continue
            adapters = tuple(self._adapters(node, tensors[node.inputs[1]]))
            parameters += adapters
            nodes += _detour(node, adapters, self.scale)
        rewritten = _assemble(graph, parameters, nodes)
        return train_only(rewritten, {tensor.name for tensor in parameters})

    def _check(self, graph: Graph) -> None:
        if self.rank < 1:
            raise MethodError(f"Method lora has rank {self.rank}; give it a rank of at least 1.")
        if self.alpha is not None and not (math.isfinite(self.alpha) and self.alpha > 0):
            raise MethodError(f"Method lora has alpha {self.alpha}; give it a finite number above 0.")
        if not any(node.op in _LAYERS for node in graph.nodes):
            problem = "it has no linear or conv2d layer; choose full"
            raise MethodError(f"Method lora cannot train {graph.name!r}: {problem}.")
        if any(tensor.name.endswith(".lora_down") for tensor in graph.resident()):
            problem = "it already has adapters; apply lora to the base model"
            raise MethodError(f"Method lora cannot train {graph.name!r}: {problem}.")

    def _adapters(self, node: Node, weight: Tensor) -> Iterator[Tensor]:
        """Return the weights of down and up; a convolution's down has its kernel, its up is pointwise."""
        groups = _groups(node)
        outputs, *inner = weight.shape
        rank = min(self.rank, math.prod(inner), outputs // groups)
        down = (rank * groups, *inner)
        up = (outputs, rank, *(1 for _ in inner[1:]))
        yield _adapter(f"{weight.name}.lora_down", down, fan_in_init(down, gain=1.0))
        yield _adapter(f"{weight.name}.lora_up", up, Init("zeros"))


def _groups(node: Node) -> int:
    groups = node.attributes.get("groups", 1)
    return groups if isinstance(groups, int) else 1


def _adapter(name: str, shape: tuple[int, ...], init: Init) -> Tensor:
    return Tensor(name, shape, batched=False, role=Role.TRAINABLE, init=init)


def _detour(layer: Node, adapters: tuple[Tensor, ...], scale: float) -> Iterator[Node]:
    """Return the layer under a new output name, its detour, and their sum under the old name."""
    y = layer.outputs[0]
    base, down, up = f"{y}.base", f"{y}.lora_down", f"{y}.lora_up"
    pointwise = {"groups": _groups(layer)} if layer.op == "conv2d" else {}
    narrow = f"{y}.lora_scaled" if scale != 1 else down
    yield replace(layer, outputs=(base,))
    yield Node(down, layer.op, (layer.inputs[0], adapters[0].name), (down,), attributes=layer.attributes)
    if scale != 1:
        yield Node(narrow, "scale", (down,), (narrow,), attributes={"scale": scale})
    yield Node(up, layer.op, (narrow, adapters[1].name), (up,), attributes=pointwise)
    yield Node(f"{y}.lora_sum", "add", (base, up), (y,))


def _assemble(graph: Graph, parameters: list[Tensor], nodes: list[Node]) -> Graph:
    """Return the graph with new parameters and nodes, every other tensor inferred again."""
    known = {tensor.name: tensor for tensor in (*graph.resident(), *parameters)}
    for node in nodes:
        for tensor in table.infer(node, known):
            if tensor.name in known:
                problem = f"it already has a tensor called {tensor.name!r}; rename it"
                raise MethodError(f"Method lora cannot train {graph.name!r}: {problem}.")
            known[tensor.name] = tensor
    return replace(graph, tensors=tuple(known.values()), nodes=tuple(nodes))
