"""Parameters and gradients of ours in the order in which torch's networks declare theirs."""

from collections.abc import Iterator, Mapping

import numpy as np

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph import running_statistics
from hedgerow_plans.graph.ir import Graph

_QUERY, _PARTS = ".attention.self.query.", ("query", "key", "value")


def by_position(graph: Graph, values: Mapping[str, Array]) -> list[Array]:
    """Return what belongs to the parameters of a forward graph, without running statistics, in torch's order."""
    statistics = running_statistics.names(graph)
    names = [tensor.name for tensor in graph.resident() if tensor.name not in statistics]
    return [np.concatenate([values[name] for name in group]) for group in _groups(names)]


def _groups(names: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield names one by one, but those of queries, keys and values together: torch has one matrix for all three."""
    for name in names:
        if _QUERY in name:
            yield tuple(name.replace(".query.", f".{part}.") for part in _PARTS)
        elif not any(f".attention.self.{part}." in name for part in _PARTS):
            yield (name,)
