"""Low-rank adapters: chosen linear and conv2d layers get a small trained detour, their own parameters stay frozen.

    y = layer(x) + (alpha / rank) * up(down(x))

Pure LoRA: the last layer is adapted like any other and no bias is trained, so the delta is small and the same file of
base weights serves every method. `up` starts at zero, so that training starts from the base model exactly. The scale
is applied between down and up, where tensors have only `rank` channels; at the sum it would cost one more tensor of
the layer's full width in the backward. A layer with fewer inputs or outputs than `rank` gets a detour of that width,
because more cannot express more. A grouped convolution gets a detour in each group.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from hedgerow_plans.graph.builder import fan_in_init
from hedgerow_plans.graph.ir import Graph, Init, Node, Tensor
from hedgerow_plans.methods.adapted import (
    Adapted,
    Insertion,
    MethodError,
    base_of,
    new_parameter,
    put_in,
    refuse,
    train_only,
)
from hedgerow_plans.methods.anatomy import chosen_layers, groups_of, layers


@dataclass(frozen=True, slots=True)
class Lora:
    """Train low-rank detours around linear and conv2d layers; alpha is the rank unless given."""

    rank: int
    alpha: float | None = None  # None: equal to the rank, so the detour is not scaled
    targets: tuple[str, ...] = ()  # patterns of layer names, such as "block*.conv2"; none: all layers

    @property
    def name(self) -> str:
        """Return the method's name in a TrainingJob."""
        return "lora"

    @property
    def scale(self) -> float:
        """Return what a detour is multiplied with."""
        return 1.0 if self.alpha is None else self.alpha / self.rank

    def apply(self, graph: Graph) -> Adapted:
        """Put a detour around each chosen layer and train nothing else."""
        self._check(graph)
        tensors = graph.by_name()
        insertions: dict[str, Insertion] = {}
        for node in chosen_layers(self.name, graph, self.targets):
            adapters = tuple(self._adapters(node, tensors[node.inputs[1]]))
            insertions[node.outputs[0]] = Insertion(adapters, tuple(_detour(node, adapters, self.scale)))
        added = {tensor.name for insertion in insertions.values() for tensor in insertion.parameters}
        return train_only(put_in(graph, self.name, insertions), added)

    def _check(self, graph: Graph) -> None:
        if self.rank < 1:
            raise MethodError(f"Method lora has rank {self.rank}; give it a rank of at least 1.")
        if self.alpha is not None and not (math.isfinite(self.alpha) and self.alpha > 0):
            raise MethodError(f"Method lora has alpha {self.alpha}; give it a finite number above 0.")
        if not layers(graph):
            raise refuse(self.name, graph, "it has no linear or conv2d layer; choose full")
        if any(tensor.name.endswith(".lora_down") for tensor in graph.resident()):
            raise refuse(self.name, graph, "it already has adapters; apply lora to the base model")

    def _adapters(self, node: Node, weight: Tensor) -> Iterator[Tensor]:
        """Return the weights of down and up; a convolution's down has its kernel, its up is pointwise."""
        groups = groups_of(node)
        outputs, *inner = weight.shape
        rank = min(self.rank, math.prod(inner), outputs // groups)
        down = (rank * groups, *inner)
        up = (outputs, rank, *(1 for _ in inner[1:]))
        yield new_parameter(f"{weight.name}.lora_down", down, fan_in_init(down, gain=1.0))
        yield new_parameter(f"{weight.name}.lora_up", up, Init("zeros"))


def _detour(layer: Node, adapters: tuple[Tensor, ...], scale: float) -> Iterator[Node]:
    """Return the detour of a layer, and the sum of both under the layer's old name."""
    y = layer.outputs[0]
    down, up = f"{y}.lora_down", f"{y}.lora_up"
    pointwise = {"groups": groups_of(layer)} if layer.op == "conv2d" else {}
    narrow = f"{y}.lora_scaled" if scale != 1 else down
    yield Node(down, layer.op, (layer.inputs[0], adapters[0].name), (down,), attributes=layer.attributes)
    if scale != 1:
        yield Node(narrow, "scale", (down,), (narrow,), attributes={"scale": scale})
    yield Node(up, layer.op, (narrow, adapters[1].name), (up,), attributes=pointwise)
    yield Node(f"{y}.lora_sum", "add", (base_of(y), up), (y,))
