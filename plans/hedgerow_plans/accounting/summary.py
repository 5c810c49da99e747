"""A model of the zoo in a line: size, and what training it one sample at a time holds, by method.

Training bytes are the exact keep-all peak of a step of plain SGD with a batch of one: everything resident, nothing
recomputed or paged. They compare models and methods; what a device needs is for a plan to say.
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
    graph = zoo.build(name)
    accounts = {label: _training(graph, method) for label, method in methods.items()}
    first = next(iter(accounts.values()), None)
    return ModelSummary(
        name,
        size.parameters,
        size.macs,
        None if first is None else first.saved_bytes,
        {label: None if item is None else item.keep_all_peak_bytes for label, item in accounts.items()},
    )


def _training(graph: Graph, method: Method) -> MemoryAccount | None:
    try:
        return account(differentiate(method.apply(graph).graph, Sgd(), 1).direct, 1)
    except MethodError:
        return None
