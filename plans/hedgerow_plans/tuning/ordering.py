"""The order in which tensors lie in memory: one for the images of a whole program, and those of weights by their use.

A node gets its tensors in the orders it works best with; where one lies otherwise, a node is put in that copies it.
Whether a node can work with an order is asked of the operator table, so that a new operator is safe before it is fast.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Graph, Node, Order, Tensor
from hedgerow_plans.graph.operator import Tensors
from hedgerow_plans.graph.ops.convolution_ways import Way
from hedgerow_plans.graph.ops.orders import is_image
from hedgerow_plans.tuning import convolutions, layers

PREFIX = "reordered."
"""What the names of copies in another order begin with."""

_FEW_CHANNELS = 8
"""Images with fewer channels than this, read from outside, lie by channels: as pixels their runs would be too short."""

_MOST_CHANNELS_BY_CHANNEL = 64
"""Where no convolution reads more channels than this, unfolding by channels is the fastest way."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What holds for all graphs of a program."""

    images: Order
    weights: Mapping[str, Order]  # of resident tensors that do not lie in the order of the samples
    batch_size: int
    scratch_bytes: int  # that a convolution may spend


@dataclass(frozen=True, slots=True)
class _Wish:
    """A node as it is run, and the order of each of its tensors."""

    node: Node
    orders: Mapping[str, Order]


def choose(graphs: Iterable[Graph], batch_size: int, scratch_bytes: int, outside: Collection[str]) -> Choice | None:
    """Return how the graphs of a program lie best; None if that is as they are."""
    graphs = tuple(graphs)
    found = [
        convolutions.layer_of(node, graph.by_name(), batch_size)
        for graph in graphs
        for node in graph.nodes
        if node.op == "conv2d"
    ]
    choice = Choice(_images(graphs, found), {}, batch_size, scratch_bytes)
    taps = dict.fromkeys(_by_taps(graphs, choice, outside), Order.TAPS)
    inputs = dict.fromkeys(layers.read_forward_alone(graphs, outside), Order.INPUTS)
    weights = dict(_with_state(graphs, {**taps, **inputs}))
    return replace(choice, weights=weights) if found or weights else None


def _images(graphs: Iterable[Graph], found: Collection[convolutions.Layer]) -> Order:
    if not found:
        return Order.SAMPLES
    norms = any(node.op == "batch_norm" for graph in graphs for node in graph.nodes)
    narrow = all(layer.groups == 1 and layer.sizes.channels <= _MOST_CHANNELS_BY_CHANNEL for layer in found)
    return Order.CHANNELS if narrow and not norms else Order.PIXELS


def _by_taps(graphs: Iterable[Graph], choice: Choice, outside: Collection[str]) -> Iterator[str]:
    """Yield the weights that every convolution wants by taps."""
    wishes: dict[str, set[Order]] = {}
    for graph in graphs:
        tensors, sources = graph.by_name(), _read_by_convolutions(graph)
        for node in (node for node in graph.nodes if node.op in ("conv2d", "conv2d_grad_input")):
            wish, weight = _convolution(node, tensors, sources, choice), node.inputs[1]
            if tensors[weight].resident and weight not in outside:
                wishes.setdefault(weight, set()).add(wish.orders[weight])
    yield from (name for name, orders in wishes.items() if orders == {Order.TAPS})


def _with_state(graphs: Iterable[Graph], weights: Mapping[str, Order]) -> Iterator[tuple[str, Order]]:
    """Yield weights, and the optimiser's state of their shapes that goes with them."""
    yield from weights.items()
    for graph in graphs:
        tensors = graph.by_name()
        for node in (node for node in graph.nodes if node.updates and node.updates[0] in weights):
            shape, order = tensors[node.updates[0]].shape, weights[node.updates[0]]
            yield from ((name, order) for name in node.updates if tensors[name].shape == shape)


def _read_by_convolutions(graph: Graph) -> frozenset[str]:
    """Return images from outside that convolutions alone read."""
    sources = {node.outputs[0] for node in graph.nodes if node.op == "input"}
    others = {name for node in graph.nodes if node.op not in ("conv2d", "conv2d_grad_weight") for name in node.reads}
    return frozenset(sources - others)


def ordered(graph: Graph, choice: Choice) -> Graph:
    """Return a graph whose tensors lie as chosen."""
    writer = _Writer(graph, choice)
    for node in graph.nodes:
        writer.write(node)
    return writer.graph()


class _Writer:
    """Writes a graph anew, node by node, and keeps the books on where tensors lie."""

    def __init__(self, graph: Graph, choice: Choice) -> None:
        self._graph, self._choice = graph, choice
        self._tensors = {
            tensor.name: replace(tensor, order=choice.weights.get(tensor.name, tensor.order))
            for tensor in graph.tensors
        }
        self._nodes: list[Node] = []
        self._sources = _read_by_convolutions(graph)
        self._gradients = dict(self._gradient_orders())

    def _gradient_orders(self) -> Iterator[tuple[str, Order]]:
        """Yield the orders of gradients of layers and of sums of gradients: those of the parameters they update."""
        sums = dict[str, Order]()
        for node in (node for node in self._graph.nodes if node.op == "zero"):
            readers = (other for other in self._graph.nodes if node.outputs[0] in other.inputs and other.updates)
            sums.update((node.outputs[0], self._tensors[reader.updates[0]].order) for reader in readers)
        yield from sums.items()
        for gradient, total in layers.gradients(self._graph):
            yield gradient, sums.get(total, self._tensors[total].order)

    def write(self, node: Node) -> None:
        """Append a node, after copies of what it reads that lies otherwise than it wants."""
        wish = self._wish(node)
        for name in (name for name in node.outputs if name in wish.orders):
            self._tensors[name] = replace(self._tensors[name], order=wish.orders[name])
        inputs = tuple(self._in_order(name, wish.orders.get(name, Order.SAMPLES), node) for name in node.inputs)
        self._nodes.append(replace(wish.node, inputs=inputs))

    def graph(self) -> Graph:
        """Return what was written."""
        made = [tensor.name for tensor in self._graph.tensors]
        added = [name for name in self._tensors if name.startswith(PREFIX)]
        return replace(
            self._graph, nodes=tuple(self._nodes), tensors=tuple(self._tensors[name] for name in (*made, *added))
        )

    def _in_order(self, name: str, order: Order, reader: Node) -> str:
        tensor = self._tensors[name]
        if tensor.order is order:
            return name
        copy = f"{PREFIX}{order.value}.{name}"
        if copy not in self._tensors:
            self._tensors[copy] = Tensor(copy, tensor.shape, tensor.dtype, tensor.batched, order=order)
            self._nodes.append(Node(copy, "reorder", (name,), (copy,), section=reader.section))
        return copy

    def _wish(self, node: Node) -> _Wish:
        if node.op in convolutions.OPERATORS:
            wish = _convolution(node, self._tensors, self._sources, self._choice)
        elif node.op in layers.OPERATORS:
            wish = _Wish(node, dict(self._layer_orders(node)))
        elif node.op == "zero":
            wish = _Wish(node, dict(self._made_orders(node)))
        elif table.operator(node.op).as_stored:
            wish = _update(node, self._tensors)
        else:
            wish = _images_alike(node, self._tensors, self._sources, self._choice)
        return wish if _possible(wish, self._tensors) else _Wish(node, {})

    def _made_orders(self, node: Node) -> Iterator[tuple[str, Order]]:
        yield from ((name, self._gradients.get(name, Order.SAMPLES)) for name in node.outputs)

    def _layer_orders(self, node: Node) -> Iterator[tuple[str, Order]]:
        """Yield the order of a layer's weight, which is read as it lies, or of its gradient."""
        yield from self._made_orders(node)
        yield from ((name, self._tensors[name].order) for name in node.inputs if self._tensors[name].resident)


def _convolution(node: Node, tensors: Tensors, sources: Collection[str], choice: Choice) -> _Wish:
    layer = convolutions.layer_of(node, tensors, choice.batch_size)
    images = choice.images
    if layer.image in sources and layer.sizes.channels < _FEW_CHANNELS and layer.groups == 1:
        images = Order.CHANNELS
    way = convolutions.way_by_pixels(node, layer, choice.scratch_bytes) if images is Order.PIXELS else Way.UNFOLD
    orders = {
        layer.image: images,
        layer.weight: convolutions.weight_order(way, images, tensors[layer.weight]),
        layer.result: choice.images,
    }
    return _Wish(replace(node, attributes={**node.attributes, "algorithm": way.value}), orders)


def _update(node: Node, tensors: Tensors) -> _Wish:
    """Let everything of the shape of what is updated lie as that does; where nothing is, all stays as it lies."""
    if not node.updates:
        return _Wish(node, {name: tensors[name].order for name in node.inputs})
    changed = tensors[node.updates[0]]
    return _Wish(node, {name: changed.order for name in node.inputs if tensors[name].shape == changed.shape})


def _images_alike(node: Node, tensors: Tensors, sources: Collection[str], choice: Choice) -> _Wish:
    images = [name for name in (*node.inputs, *node.outputs) if is_image(tensors[name])]
    from_outside = node.op == "input" and node.outputs[0] in sources
    if from_outside and images and tensors[images[0]].shape[0] < _FEW_CHANNELS:
        return _Wish(node, {images[0]: Order.CHANNELS})
    return _Wish(node, dict.fromkeys(images, choice.images))


def _possible(wish: _Wish, tensors: Tensors) -> bool:
    """Ask the operator table whether a node can work with the orders wished for."""
    names = (*wish.node.reads, *wish.node.outputs)
    kept = {name: tensors[name].order for name in wish.node.updates}
    lying = {name: replace(tensors[name], order=wish.orders.get(name, kept.get(name, Order.SAMPLES))) for name in names}
    return table.takes_orders(wish.node, lying)
