"""Where the relaxation cuts time into stages: right after the peaks of memory, few of them.

A stage that ends right after a peak makes the memory row of that peak exact, which is why few stages suffice; more of
them make the relaxation larger and weaker.
"""

from collections.abc import Iterable

from hedgerow_plans.planning.abstract.workload import Workload, profile

_GENERATIONS = 3
"""A tensor matters until its last read, or the last read of what is made from it this many generations on."""


def last_reads(work: Workload) -> list[int]:
    """Return, by tensor, the last node that reads it, or its maker."""
    return [readers[-1] if readers else maker for readers, maker in zip(work.readers, work.maker, strict=True)]


def last_purposes(work: Workload, generations: int = _GENERATIONS) -> list[int]:
    """Return, by tensor, the last node for which it can matter that the tensor is there."""
    own = last_reads(work)
    last = own
    for _ in range(generations):
        last = [
            max([own[tensor], *(last[child] for node in work.readers[tensor] for child in work.makes[node])])
            for tensor in range(len(own))
        ]
    return last


def peaks(work: Workload, budget: int, last: list[int], prominence: float) -> list[int]:
    """Return the ends of stages: after every peak of the keep-all profile that stands out and may overflow."""
    height, reach = work.keep_all_profile, profile(work, last)
    rise = prominence * budget
    ends: list[int] = []
    low, top, at = 0.0, -1.0, -1
    for step, here in enumerate(height):
        if at < 0:
            low = min(low, here)
            if here >= low + rise and reach[step] > budget:
                at, top = step, here
        elif here > top:
            at, top = step, here
        if at >= 0 and here <= top - rise:
            ends.append(at + 1)
            at, low = -1, here
    return [*ends, at + 1] if at >= 0 else ends


def stage_ends(work: Workload, ends: Iterable[int]) -> tuple[int, ...]:
    """Return the borders of all stages, from 0 through the number of nodes."""
    return tuple(sorted({0, work.nodes, *ends}))
