"""The zoo: forward graphs by the name a TrainingJob gives them.

Every model reads samples into `x` and ends in a tensor called `logits`. By default a model has the samples and classes
of its publication; a job may ask for others. Dropout is left out everywhere, so that what is planned is what is run.
"""

from dataclasses import replace

from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models import counting
from hedgerow_plans.models.entries import ENTRIES, Entry, Setting

__all__ = ["Entry", "Setting", "UnknownModelError", "build", "entries", "entry", "names", "published_size"]


class UnknownModelError(GraphError):
    """The zoo has no model of that name."""


def names() -> tuple[str, ...]:
    """Return what `build` knows, sorted."""
    return tuple(sorted(ENTRIES))


def entries() -> tuple[Entry, ...]:
    """Return all entries, sorted by name."""
    return tuple(ENTRIES[name] for name in names())


def entry(name: str) -> Entry:
    """Return what is known of a model without building it."""
    if name not in ENTRIES:
        raise UnknownModelError(f"There is no model {name!r} in the zoo; known are {', '.join(names())}.")
    return ENTRIES[name]


def build(
    name: str, classes: int | None = None, input_shape: tuple[int, ...] | None = None, **settings: Setting
) -> Graph:
    """Return a model for samples of a shape and a number of classes, its own ones unless given."""
    model = entry(name)
    wanted = model.classes if classes is None else classes
    if wanted < 2 and model.classifies:
        raise GraphError(f"Model {name!r} cannot tell {wanted} classes apart; give it at least 2.")
    unknown = sorted(set(settings) - set(model.settings))
    if unknown:
        known = ", ".join(model.settings) or "none"
        raise GraphError(f"Model {name!r} has no setting {unknown[0]!r}; known are {known}.")
    graph = model.builder(wanted, input_shape or model.input_shape, **settings)
    return replace(graph, name=name)


def published_size(name: str) -> counting.Size:
    """Return the size of a model by default, counted as its publication does: some leave out the last layer."""
    graph = build(name)
    whole = counting.size(graph)
    return whole if entry(name).head_counts else whole - counting.head_size(graph)
