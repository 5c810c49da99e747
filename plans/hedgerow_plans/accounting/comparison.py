"""Published tables beside ours: each figure is computed from our own graphs by the authors' rule.

Nothing is tuned to a figure: the graphs are the zoo's, the rewrites are the methods', and the rules are those of
`tinytl` and `tte`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hedgerow_plans.accounting import published
from hedgerow_plans.accounting.tte import last_layers, partial_backward
from hedgerow_plans.models import zoo

TTE_TOLERANCE = 1.0
"""A label in whole kilobytes drops the fraction."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One published figure and ours."""

    name: str
    unit: str
    published: float
    ours: float
    source: str


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
    return Comparison(f"{model} last {count} layers", "KiB", kilobytes, ours, published.TTE_SOURCE)
