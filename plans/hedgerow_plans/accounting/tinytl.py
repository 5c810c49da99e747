"""TinyTL's memory profiler, as its authors count: what makes "391 MB against 37 MB" (arXiv 2007.11622).

The network's leaves are walked once, forward. Each needs its input and its output for a moment, on top of all that was
saved so far for the backward pass, on top of the input of the residual block around it. A trained weight of a layer or
norm saves the layer's input; a rectifier saves one bit per element, a smooth activation the element, as soon as the
backward pass goes through any activation at all. The peak, times the batch, plus the parameters, four bytes each if
trained and one if frozen, is the figure. Pools, sums and upsampling are free; so are gradients and optimiser state.

It is a rule for comparing papers, not a promise: our own account of the same graph is in `accounting.memory`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hedgerow_plans.graph import running_statistics
from hedgerow_plans.graph.ir import Graph, Node, Role
from hedgerow_plans.graph.operator import Tensors

TRAINED_PARAMETER_BYTES = 4
FROZEN_PARAMETER_BYTES = 1
_BITS = 32  # of an activation

_LAYERS = ("conv2d", "linear")
_NORMS = ("batch_norm", "group_norm", "layer_norm", "rms_norm")
_MASKED = ("relu", "relu6")
_SMOOTH = ("hswish", "sigmoid", "tanh", "gelu", "silu")


@dataclass(frozen=True, slots=True)
class Profile:
    """What the profiler says of a network and what of it is trained."""

    parameter_bytes: int
    peak_bits: int  # of one sample

    def total_bytes(self, batch_size: int) -> float:
        """Return the training memory at a batch size; masks make it a fraction of a byte."""
        return self.peak_bits * batch_size / 8 + self.parameter_bytes


def profile(graph: Graph) -> Profile:
    """Profile a forward graph whose parameters have the roles that a method gave them."""
    tensors = graph.by_name()
    trained = _depending(graph)
    backward = any(node.op in _MASKED + _SMOOTH and node.inputs[0] in trained for node in graph.nodes)
    peak_bits = saved_bits = 0
    for node, held_bits in zip(graph.nodes, _held_bits(graph, tensors), strict=True):
        momentary = _MOMENTARY.get(node.op)
        if momentary is None:
            continue
        peak_bits = max(peak_bits, momentary(node, tensors) + saved_bits + held_bits)
        saved_bits += _saved_bits(node, tensors, trained, backward)
    return Profile(_parameter_bytes(graph), peak_bits)


def _parameter_bytes(graph: Graph) -> int:
    bytes_each = {Role.TRAINABLE: TRAINED_PARAMETER_BYTES, Role.FROZEN: FROZEN_PARAMETER_BYTES}
    measured = running_statistics.names(graph)
    parameters = (tensor for tensor in graph.tensors if tensor.role in bytes_each and tensor.name not in measured)
    return sum(bytes_each[tensor.role] * tensor.elements for tensor in parameters)


def _depending(graph: Graph) -> set[str]:
    """Return the trainable tensors and everything that is computed from one."""
    found = {tensor.name for tensor in graph.tensors if tensor.role is Role.TRAINABLE}
    for node in graph.nodes:
        if not found.isdisjoint(node.inputs):
            found.update(node.outputs)
    return found


def _saved_bits(node: Node, tensors: Tensors, trained: set[str], backward: bool) -> int:
    elements = tensors[node.inputs[0]].elements
    if node.op in _MASKED:
        return elements if backward else 0
    if node.op in _SMOOTH:
        return _BITS * elements if backward else 0
    return _BITS * elements if node.inputs[1] in trained else 0


def _layer_moment(node: Node, tensors: Tensors) -> int:
    """Return input and output; of a grouped convolution only one group's share of the output, in whole bytes."""
    groups = node.attributes.get("groups", 1)
    output_bytes = tensors[node.outputs[0]].elements * _BITS // 8
    share = output_bytes // groups if isinstance(groups, int) else output_bytes
    return _input_moment(node, tensors) + 8 * share


def _input_moment(node: Node, tensors: Tensors) -> int:
    return _BITS * tensors[node.inputs[0]].elements


_MOMENTARY: Mapping[str, Callable[[Node, Tensors], int]] = {
    **dict.fromkeys(_LAYERS, _layer_moment),
    **dict.fromkeys(_NORMS + _MASKED + _SMOOTH, _input_moment),
}


def _held_bits(graph: Graph, tensors: Tensors) -> list[int]:
    """Return for each node the bits of residual inputs that wait while it runs.

    A residual block is a sum of a tensor with something computed from that very tensor. A sum of two branches is none,
    so the common input of a strided block and its lite residual does not count, as in the original.
    """
    made_at = {name: at for at, node in enumerate(graph.nodes) for name in node.outputs}
    held = [0] * len(graph.nodes)
    for at, node in enumerate(graph.nodes):
        if node.op != "add":
            continue
        first, second = node.inputs
        for waiting, other in ((first, second), (second, first)):
            if waiting in made_at and _computed_from(graph, made_at, other, waiting):
                for between in range(made_at[waiting] + 1, at):
                    held[between] += _BITS * tensors[waiting].elements
    return held


def _computed_from(graph: Graph, made_at: Mapping[str, int], tensor: str, source: str) -> bool:
    """Tell whether a tensor depends on a source; nothing made before the source is looked at."""
    seen, todo = {tensor}, [tensor]
    while todo:
        for name in graph.nodes[made_at[todo.pop()]].inputs:
            if name == source:
                return True
            if name not in seen and made_at.get(name, -1) > made_at[source]:
                seen.add(name)
                todo.append(name)
    return False
