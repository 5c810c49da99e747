"""The independent check of plans for bare problems: a replay that shares nothing with the planners.

It says what is wrong with a plan in sentences, or what the plan costs and needs. Only the problem's own rules are known
here: inputs live when read, the budget kept, every node computed in order, page-ins after page-outs, the deadline met.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hedgerow_plans.bare import BareProblem, Step


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a plan that is right costs and needs."""

    cost: int
    time: int
    peak_bytes: int


class WrongPlan(Exception):
    """The plan cannot be executed, or not within its limits; the message is a sentence."""


class _Replay:
    def __init__(self, problem: BareProblem) -> None:
        self.problem = problem
        self.live: set[int] = set()
        self.stored: set[int] = set()
        self.frontier = self.cost = self.time = self.bytes = self.peak = 0

    def follow(self, number: int, step: Step) -> None:
        """Do one step."""
        kind, node = step
        if not 0 <= node < len(self.problem.bytes):
            raise WrongPlan(f"Step {number} speaks of node {node}, which does not exist.")
        actions = {"compute": self._compute, "free": self._free, "page_out": self._out, "page_in": self._in}
        if kind not in actions:
            raise WrongPlan(f"Step {number} is a {kind!r}, which is no step.")
        actions[kind](number, node)

    def _compute(self, number: int, node: int) -> None:
        missing = [source for source in self.problem.inputs[node] if source not in self.live]
        if missing:
            raise WrongPlan(f"Step {number} computes node {node} while its input {missing[0]} is not live.")
        if node > self.frontier:
            raise WrongPlan(f"Step {number} computes node {node} before node {self.frontier}.")
        self.frontier += node == self.frontier
        self.cost += self.problem.cost[node]
        self.time += self.problem.time[node]
        self._hold(number, node)

    def _free(self, number: int, node: int) -> None:
        if node not in self.live:
            raise WrongPlan(f"Step {number} frees node {node}, which is not live.")
        self.live.remove(node)
        self.bytes -= self.problem.bytes[node]

    def _out(self, number: int, node: int) -> None:
        pages = self.problem.pages[node]
        if node not in self.live or pages is None:
            raise WrongPlan(f"Step {number} pages node {node} out, which is not live or cannot be paged.")
        self.stored.add(node)
        self.cost += pages[0]

    def _in(self, number: int, node: int) -> None:
        pages = self.problem.pages[node]
        if node not in self.stored or pages is None:
            raise WrongPlan(f"Step {number} pages node {node} in, which was not paged out before.")
        self.cost += pages[1]
        self._hold(number, node)

    def _hold(self, number: int, node: int) -> None:
        if node in self.live:
            raise WrongPlan(f"Step {number} makes node {node}, which is live already.")
        self.live.add(node)
        self.bytes += self.problem.bytes[node]
        self.peak = max(self.peak, self.bytes)


def verify_bare(
    problem: BareProblem, steps: Iterable[Step], *, budget_bytes: int, deadline: int | None = None
) -> Replayed:
    """Replay a plan; raise WrongPlan at the first thing that is not right."""
    replay = _Replay(problem)
    for number, step in enumerate(steps):
        replay.follow(number, step)
        if replay.bytes > budget_bytes:
            raise WrongPlan(f"Step {number} needs {replay.bytes} bytes, more than the budget of {budget_bytes}.")
    if replay.frontier < len(problem.bytes):
        raise WrongPlan(f"Node {replay.frontier} is never computed.")
    if replay.live:
        raise WrongPlan(f"Node {min(replay.live)} is never freed.")
    if deadline is not None and replay.time > deadline:
        raise WrongPlan(f"The plan takes {replay.time}, longer than the deadline of {deadline}.")
    return Replayed(replay.cost, replay.time, replay.peak)
