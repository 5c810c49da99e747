"""First plans: those that are known already, greedy repair, running on demand, and noise where nothing fits yet."""

import random
from collections.abc import Iterable, Sequence

from hedgerow_plans.planning.optimal.demand import on_demand
from hedgerow_plans.planning.optimal.incumbent import Incumbent
from hedgerow_plans.planning.optimal.repair import Taste, careful_repair, repair
from hedgerow_plans.planning.optimal.timeline import Timeline

_PATIENCES = (0.5, 1.0)


def first_plans(plans: Incumbent, known: Iterable[Sequence[int]] = ()) -> None:
    """Offer first plans."""
    for codes in known:
        plans.offer_filled(Timeline(plans.work, codes))
    _on_demand(plans, _PATIENCES[0])
    plans.offer_repaired(_keep_all(plans), careful=False)
    if not plans.is_done():
        _on_demand(plans, _PATIENCES[1])
    if plans.best is None:
        plans.offer_repaired(_keep_all(plans), careful=True)
    if plans.best is None:
        _insist(plans)


def _keep_all(plans: Incumbent) -> Timeline:
    return Timeline(plans.work, range(plans.work.nodes))


def _on_demand(plans: Incumbent, patience: float) -> None:
    demanded = on_demand(plans.work, plans.budget, patience, plans.options.keep_going)
    if demanded is not None:
        plans.offer_filled(Timeline(plans.work, demanded))


def _insist(plans: Incumbent) -> None:
    """Nothing fits yet: repair with noise until something does."""
    source, keep_going = random.Random(plans.options.seed), plans.options.keep_going
    for attempt in range(12):
        if plans.best is not None or not keep_going():
            return
        line = _keep_all(plans)
        if attempt % 2:
            fits = careful_repair(line, plans.budget, keep_going, source)
        else:
            fits = repair(line, plans.budget, keep_going, Taste(noise=source))
        if fits:
            plans.offer_filled(line)
