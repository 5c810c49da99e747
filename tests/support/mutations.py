"""Plans that differ from a right one in a single step or offset."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from hedgerow_plans.plan import Compute, Plan, Recompute, Step


def variants(plan: Plan, change: Callable[[tuple[Step, ...], int], tuple[Step, ...]]) -> Iterator[tuple[Plan, Step]]:
    """Yield the plan once for each of its steps, with a section changed at that step."""
    for index, step in enumerate(plan.begin):
        yield replace(plan, begin=change(plan.begin, index)), step
    for index, step in enumerate(plan.body):
        yield replace(plan, body=change(plan.body, index)), step
    for index, step in enumerate(plan.finish):
        yield replace(plan, finish=change(plan.finish, index)), step


def without(plan: Plan, kinds: type | tuple[type, ...]) -> Iterator[tuple[Plan, Step]]:
    """Yield the plan once for each step of these kinds, without that step."""
    for mutant, step in variants(plan, lambda steps, at: (*steps[:at], *steps[at + 1 :])):
        if isinstance(step, kinds):
            yield mutant, step


def repeated(plan: Plan, kinds: type | tuple[type, ...]) -> Iterator[Plan]:
    """Yield the plan once for each step of these kinds, with that step twice."""
    for mutant, step in variants(plan, lambda steps, at: (*steps[: at + 1], *steps[at:])):
        if isinstance(step, kinds):
            yield mutant


def with_offsets(plan: Plan, change: Callable[[int], int]) -> Iterator[Plan]:
    """Yield the plan once for each offset of the body, with that offset changed."""
    for index, step in enumerate(plan.body):
        if isinstance(step, Compute | Recompute):
            for at, offset in enumerate(step.offsets):
                offsets = (*step.offsets[:at], change(offset), *step.offsets[at + 1 :])
                body = (*plan.body[:index], replace(step, offsets=offsets), *plan.body[index + 1 :])
                yield replace(plan, body=body)
