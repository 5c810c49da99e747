"""Is this graph one that can be planned and run? Every problem is a sentence; limits are checked before any work.

It looks at one graph by itself: names, order, sections, shapes, and that a trained value is not read after it was
changed. It does not know plans; those have their own check.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from hedgerow_plans.graph import table
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import ORDERED_AXES, DType, Graph, Node, Order, Role, Section, Tensor
from hedgerow_plans.graph.operator import MAXIMUM_DIMENSION, describe

MAXIMUM_NODES = 100_000
MAXIMUM_TENSORS = 200_000
MAXIMUM_NAMES_PER_NODE = 64
MAXIMUM_NAME_CHARACTERS = 200
MAXIMUM_ELEMENTS = 2**40
"""Elements of one sample or parameter; anything above is a mistake or an attack, not a model for a device."""

_INITS = ("zeros", "ones", "normal", "kept")
_SECTIONS = tuple(Section)


def check(graph: Graph) -> None:
    """Raise the first problem of a graph, if it has one."""
    for problem in problems(graph):
        raise GraphError(problem)


def problems(graph: Graph) -> Iterator[str]:
    """Return the problems of a graph as sentences; later checks run only when earlier ones passed."""
    stages: tuple[Callable[[Graph], Iterator[str]], ...] = (
        _sizes,
        _names,
        _tensors,
        _makers,
        _order,
        _shapes,
        _storage,
        _stale,
    )
    for stage in stages:
        found = False
        for problem in stage(graph):
            found = True
            yield f"Graph {graph.name!r}: {problem}"
        if found:
            return


def _sizes(graph: Graph) -> Iterator[str]:
    for what, count, most in (
        ("nodes", len(graph.nodes), MAXIMUM_NODES),
        ("tensors", len(graph.tensors), MAXIMUM_TENSORS),
        ("outputs", len(graph.outputs), MAXIMUM_TENSORS),
    ):
        if count > most:
            yield f"it has {count} {what}; the limit is {most}."


def _names(graph: Graph) -> Iterator[str]:
    for what, names in (
        ("tensor", [tensor.name for tensor in graph.tensors]),
        ("node", [node.name for node in graph.nodes]),
        ("output", list(graph.outputs)),
    ):
        seen: set[str] = set()
        for name in names:
            if not 0 < len(name) <= MAXIMUM_NAME_CHARACTERS:
                shown = name[:40]
                yield f"the {what} name {shown!r} has {len(name)} characters; use 1 to {MAXIMUM_NAME_CHARACTERS}."
            if name in seen:
                yield f"two {what}s are called {name!r}; rename one of them."
            seen.add(name)


def _tensors(graph: Graph) -> Iterator[str]:
    for tensor in graph.tensors:
        if not table.is_shape(tensor.shape):
            limits = f"dimensions from 1 to {MAXIMUM_DIMENSION}"
            yield f"tensor {tensor.name!r} has shape {tensor.shape!r}; give it {limits}."
        elif tensor.elements > MAXIMUM_ELEMENTS:
            yield f"tensor {tensor.name!r} has {tensor.elements} elements; the limit is {MAXIMUM_ELEMENTS}."
        if tensor.resident and tensor.batched:
            yield f"tensor {tensor.name!r} is {tensor.role.value} and has a batch axis; a resident tensor has none."
        if tensor.role is Role.TRAINABLE and tensor.dtype is not DType.FLOAT32:
            kind = f"{tensor.role.value} and {tensor.dtype.value}"
            yield f"tensor {tensor.name!r} is {kind}; only float32 can be trained."
        yield from _stored(tensor)
        yield from _init(tensor)


def _stored(tensor: Tensor) -> Iterator[str]:
    if tensor.order is Order.SAMPLES:
        return
    axes, of_weights = len(ORDERED_AXES[tensor.order]), tensor.order in (Order.TAPS, Order.INPUTS)
    if len(tensor.full_shape(1)) != axes or tensor.batched == of_weights:
        whose = "a weight" if of_weights else "images"
        yield f"tensor {tensor.name!r} lies in the order of {tensor.order.value}; only {whose} of {axes} axes can."


def _init(tensor: Tensor) -> Iterator[str]:
    init = tensor.init
    if init is None:
        return
    if init.kind not in _INITS:
        yield f"tensor {tensor.name!r} starts as {init.kind!r}; choose {', '.join(_INITS)}."
    if not (math.isfinite(init.scale) and init.scale >= 0):
        yield f"tensor {tensor.name!r} starts with the scale {init.scale}; give it a finite number of at least 0."
    if (init.kind == "kept") != bool(init.source and init.ranking) or init.axis not in range(max(1, len(tensor.shape))):
        wanted = "only kept values have a source, a ranking and an axis of the tensor, and they have all three"
        yield f"tensor {tensor.name!r} starts as {init.kind} of {init.source!r} along axis {init.axis}; {wanted}."
    if not tensor.resident:
        yield f"tensor {tensor.name!r} is transient and has first values; only resident tensors do."


def _makers(graph: Graph) -> Iterator[str]:
    known = graph.by_name()
    makers: dict[str, str] = {}
    for node in graph.nodes:
        yield from _speaks_of(node, known)
        for name in node.outputs:
            if name in makers:
                yield f"tensor {name!r} is made twice, by {makers[name]!r} and {node.name!r}; rename one output."
            elif name in known and known[name].resident:
                yield f"node {node.name!r} makes {name!r}, which is {known[name].role.value}; it can only update it."
            makers[name] = node.name
    for tensor in graph.tensors:
        if not tensor.resident and tensor.name not in makers:
            yield f"tensor {tensor.name!r} is never made; add the node that makes it or drop the tensor."
    for name in graph.outputs:
        if name not in makers:
            yield f"output {name!r} is not made by any node; name a tensor that is."


def _speaks_of(node: Node, known: dict[str, Tensor]) -> Iterator[str]:
    names = node.reads + node.outputs
    if len(names) > MAXIMUM_NAMES_PER_NODE:
        yield f"node {node.name!r} speaks of {len(names)} tensors; the limit is {MAXIMUM_NAMES_PER_NODE}."
    for name in set(node.updates) & set(node.inputs):
        yield f"node {node.name!r} changes its own input {name!r}; give it a copy."
    for name in names:
        if name not in known:
            yield f"node {node.name!r} speaks of {name!r}, which is no tensor of the graph; declare it."


def _order(graph: Graph) -> Iterator[str]:
    """Find reads before the tensor is made (which every cycle has) and sections that do not fit together."""
    known = graph.by_name()
    made_in: dict[str, Section] = {}
    latest = Section.BEGIN
    for node in graph.nodes:
        if _SECTIONS.index(node.section) < _SECTIONS.index(latest):
            yield f"node {node.name!r} of section {node.section.value} comes after section {latest.value}; move it up."
            return
        latest = node.section
        for name in node.reads:
            if not known[name].resident:
                yield from _read(node, name, made_in.get(name))
        for name in node.outputs:
            made_in[name] = node.section
            if known[name].batched and node.section is not Section.BODY:
                problem = f"makes {name!r} with a batch axis in section {node.section.value}"
                yield f"node {node.name!r} {problem}; only the body has samples."
    for name in graph.outputs:
        if made_in[name] is not Section.BODY:
            yield f"output {name!r} is made in section {made_in[name].value}; only the body has outputs."


def _read(node: Node, name: str, made_in: Section | None) -> Iterator[str]:
    if made_in is None:
        yield f"node {node.name!r} reads {name!r} before it is made; put its maker first, and break any cycle."
    elif made_in is Section.BODY and node.section is Section.FINISH:
        yield f"node {node.name!r} reads {name!r} after the body, where it is gone; sum it up in the body."
    elif name in node.updates and not (made_in is Section.BEGIN and node.section is Section.BODY):
        yield f"node {node.name!r} updates {name!r} in place; only a tensor made before the body can be, in the body."


def _shapes(graph: Graph) -> Iterator[str]:
    known = graph.by_name()
    for node in graph.nodes:
        try:
            inferred = table.infer(node, known)
        except GraphError as error:
            yield str(error)
            continue
        for tensor in inferred:
            if known[tensor.name] != replace(tensor, order=known[tensor.name].order):
                wanted, is_now = _typed(tensor), _typed(known[tensor.name])
                yield f"tensor {tensor.name!r} is {is_now}, but node {node.name!r} ({node.op}) makes {wanted}."


def _storage(graph: Graph) -> Iterator[str]:
    known = graph.by_name()
    for node in graph.nodes:
        try:
            table.check_orders(node, known)
        except GraphError as error:
            yield str(error)


def _typed(tensor: Tensor) -> str:
    batch = "batched " if tensor.batched else ""
    return f"{batch}{tensor.dtype.value} {describe(tensor.shape)}"


def _stale(graph: Graph) -> Iterator[str]:
    """Find reads of a resident tensor after its update: within a step everybody must see the old value."""
    resident = {tensor.name: tensor for tensor in graph.resident()}
    updated: dict[str, str] = {}
    for node in graph.nodes:
        for name in node.reads:
            if name in updated:
                yield f"node {node.name!r} reads {name!r} after {updated[name]!r} changed it; move the update down."
        for name in node.updates:
            if name in resident:
                updated[name] = node.name
                if resident[name].role is Role.FROZEN:
                    yield f"node {node.name!r} updates {name!r}, which is frozen; make it trainable."
