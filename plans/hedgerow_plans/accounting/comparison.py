"""Published tables beside ours: each figure is computed from our own graphs by the authors' rule.

Nothing is tuned to a figure: the graphs are the zoo's, the rewrites are the methods', and the rules are those of
`tinytl` and `tte`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hedgerow_plans.accounting import published
from hedgerow_plans.accounting.published import TinyTlMethod
from hedgerow_plans.accounting.tinytl import profile
from hedgerow_plans.accounting.tte import last_layers, partial_backward
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.graph.resizing import resized
from hedgerow_plans.methods.lite_residual import LiteResidual
from hedgerow_plans.methods.selection import Full, Last, NormLast
from hedgerow_plans.models import zoo

_MEGABYTE = 1_000_000
_TINYTL_NETWORK = "proxylessnas-mobile"
_TINYTL_SIDE = 224
"""The images that the network and the kernels of its lite residuals are made for, whatever they are trained on."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One published figure and ours."""

    name: str
    unit: str
    published: float
    ours: float
    source: str


def tinytl() -> tuple[Comparison, ...]:
    """Return training memory by method and image side, and the sizes of the models."""
    graphs = _tinytl_graphs()
    rows = [_tinytl_training(method, graphs[method.name]) for method in published.TINYTL_METHODS]
    sizes = [_tinytl_size(method, graphs[method.name]) for method in published.TINYTL_METHODS]
    return (*(row for method_rows in rows for row in method_rows), *sizes)


def _tinytl_graphs() -> dict[str, Graph]:
    """Return the network under each method; all have the lite residuals in it, as the authors measured them."""
    base = zoo.build(_TINYTL_NETWORK, published.TINYTL_CLASSES, (3, _TINYTL_SIDE, _TINYTL_SIDE))
    both = LiteResidual().apply(base).graph
    return {
        "FT-Full": Full().apply(both).graph,
        "FT-Norm+Last": NormLast().apply(both).graph,
        "FT-Last": Last().apply(both).graph,
        "TinyTL-B": LiteResidual(residuals=False).apply(both).graph,
        "TinyTL-L": LiteResidual(biases=False).apply(base).graph,
        "TinyTL-L+B": both,
    }


def _tinytl_training(method: TinyTlMethod, graph: Graph) -> Iterator[Comparison]:
    for side, megabytes in method.training_megabytes.items():
        total = profile(resized(graph, (3, side, side))).total_bytes(published.TINYTL_BATCH)
        printed = side not in method.recomputed_sides
        source = published.TINYTL_SOURCE if printed else published.TINYTL_PROFILER_SOURCE
        yield Comparison(f"{method.name}@{side}", "MB", megabytes, total / _MEGABYTE, source)


def _tinytl_size(method: TinyTlMethod, graph: Graph) -> Comparison:
    ours = profile(graph).parameter_bytes / _MEGABYTE
    return Comparison(f"{method.name} model size", "MB", method.model_megabytes, ours, published.TINYTL_PROFILER_SOURCE)


def tte() -> tuple[Comparison, ...]:
    """Return the sparse-update schemes of TTE, and the one that trains the last layers in full."""
    return (*_schemes(), _last_layers())


def _schemes() -> Iterator[Comparison]:
    for model, schemes in published.TTE_SCHEMES.items():
        graph = zoo.build(model, input_shape=(3, published.TTE_SIDE, published.TTE_SIDE))
        for scheme in schemes:
            ours = partial_backward(graph, scheme.update).total_kib
            name = f"{model} scheme {scheme.kilobytes}kb"
            yield Comparison(name, "KiB", scheme.kilobytes, ours, published.TTE_SOURCE)


def _last_layers() -> Comparison:
    model, count, kilobytes = published.TTE_LAST_LAYERS
    graph = zoo.build(model, input_shape=(3, published.TTE_SIDE, published.TTE_SIDE))
    ours = partial_backward(graph, last_layers(graph, count)).total_kib
    return Comparison(f"{model} last {count} layers", "KiB", kilobytes, ours, published.TTE_LAST_LAYERS_SOURCE)
