"""What makes training graphs fast where memory allows it, chosen once per program and the same on every rung.

Nodes are rewritten so that less is computed (`rewriting`), tensors get the order in which they lie in memory
(`ordering`), convolutions the way they are computed (`convolutions`), and some of their gradients go straight into the
weight (`updates`). Names, roles and results stay as they are,
apart from rounding. A program for a microcontroller's budget is left alone: it would pay for speed with scratch.
"""

from collections.abc import Collection
from dataclasses import replace

from hedgerow_plans.training.graphs import TrainingGraphs
from hedgerow_plans.tuning.ordering import Choice, choose, ordered
from hedgerow_plans.tuning.rewriting import rewritten
from hedgerow_plans.tuning.updates import straight_into_weights

__all__ = ["LEAST_BUDGET_BYTES", "tuned"]

LEAST_BUDGET_BYTES = 16 * 1024 * 1024
"""Below this, every graph stays as differentiating made it."""

_SCRATCH_SHARE = 8
"""No convolution is computed a way whose scratch takes more than one part in so many of the budget."""


def tuned(graphs: TrainingGraphs, budget_bytes: int, batch_size: int, outside: Collection[str] = ()) -> TrainingGraphs:
    """Return the graphs as they are run with a budget; `outside` names parameters that lie where they are."""
    if budget_bytes < LEAST_BUDGET_BYTES:
        return graphs
    direct, evaluate = rewritten(graphs.direct), rewritten(graphs.evaluate)
    in_pieces = None if graphs.in_pieces is None else rewritten(graphs.in_pieces)
    all_graphs = tuple(graph for graph in (direct, in_pieces, evaluate) if graph is not None)
    choice: Choice | None = choose(all_graphs, batch_size, budget_bytes // _SCRATCH_SHARE, outside)
    if choice is None:
        return replace(graphs, direct=direct, in_pieces=in_pieces, evaluate=evaluate)
    return replace(
        graphs,
        direct=straight_into_weights(ordered(direct, choice), batch_size),
        in_pieces=None if in_pieces is None else ordered(in_pieces, choice),
        evaluate=ordered(evaluate, choice),
    )
