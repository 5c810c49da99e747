"""A model of the zoo in a line: size, and what training it on a small batch holds, by method.

Training bytes are the exact keep-all peak of a step of plain SGD: everything resident, nothing recomputed or paged.
They compare models and methods; what a device needs is for a plan to say.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hedgerow_plans.accounting.memory import MemoryAccount, account
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.methods.adapted import MethodError
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.models import zoo
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd

BATCH_SIZE = 8
"""Samples of a step; TinyTL's tables have the same, and norms that learn from the batch need more than one."""


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """Figures of a model as it is by default."""

    name: str
    parameters: int  # as its publication counts
    macs: int
    activation_bytes: int | None  # saved for the backward pass when everything trains
    training_bytes: Mapping[str, int | None]  # by method; None where the method does not apply


def summarise(name: str, methods: Mapping[str, Method]) -> ModelSummary:
    """Return the figures of a model of the zoo; the first method is the one that trains everything."""
    size = zoo.published_size(name)
    graph, loss = zoo.build(name), zoo.entry(name).loss
    accounts = {label: _training(graph, method, loss) for label, method in methods.items()}
    first = next(iter(accounts.values()), None)
    return ModelSummary(
        name,
        size.parameters,
        size.macs,
        None if first is None else first.saved_bytes,
        {label: None if item is None else item.keep_all_peak_bytes for label, item in accounts.items()},
    )


def _training(graph: Graph, method: Method, loss: str) -> MemoryAccount | None:
    try:
        adapted = method.apply(graph)
    except MethodError:
        return None
    return account(differentiate(adapted.graph, Sgd(), BATCH_SIZE, loss).direct, BATCH_SIZE)
