"""HiGHS, asked for the relaxation's optimum: floating point and scaling live here and nowhere else.

Everything that comes out is an integer or a choice; a bound is rounded so that the solver's tolerances cannot lift it
above the truth. One thread and a fixed seed: the same model gives the same answer.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import highspy
import numpy as np
import numpy.typing as npt

from hedgerow_plans.planning.optimal.relaxation import Model, Relaxation

_SAFETY = 1e-7
_COST_SCALE = 1e4
_BYTES_SCALE = 1e3
_PART = 0.1
"""Of a column in the linear program that counts as chosen: whatever is made again then finds what it reads."""

_MOST_NODES = 2_000
"""Of the branch-and-bound tree: counted, so that runs repeat."""

_ATTEMPTS = 6
_MOST_ROWS_AT_ONCE = 12
_BESIDE = 3
_VIOLATED = 1e-6
Floats = npt.NDArray[np.float64]
KeepGoing = Callable[[], bool]
OnPoint = Callable[[Sequence[bool]], None]


@dataclass(frozen=True, slots=True)
class Solved:
    """A proven bound on the cost of every plan, and the choices of the best point found, if one was."""

    bound: int
    choices: list[bool] | None


class Problem:
    """The relaxation as the solver sees it: first without integrality, then with it.

    Rows about memory are many and long, and few of them matter: they join when a solution violates them. A bound from
    fewer rows is a bound all the same. `tightened` takes bytes off the memory rows of some steps: what comes out then
    guides, but bounds nothing.
    """

    def __init__(self, relaxation: Relaxation, keep_going: KeepGoing, tightened: Mapping[int, int]) -> None:
        self._model, self._keep_going, self._base = relaxation.model, keep_going, relaxation.work.base_cost
        self._scale = _COST_SCALE / max(self._base, 1)
        self._matrix = _Matrix(relaxation, self._scale, tightened)
        self._linear = self._matrix.solver(keep_going, integral=False)
        self._linear_cost = self._least_cost = 0.0

    def without_integrality(self) -> Solved:
        """Solve the linear program; its choices are all that it takes even a part of."""
        while True:
            self._linear.run()
            if self._linear.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                return Solved(self._bound(), None)
            self._linear_cost = self._least_cost = self._linear.getInfo().objective_function_value
            values = np.array(self._linear.getSolution().col_value)
            rows = self._matrix.join(values)
            if not rows:
                return Solved(self._bound(), (values > _PART).tolist())
            self._matrix.add_to(self._linear, rows)

    def with_integrality(self, start: Sequence[int] | None, gap: float, on_point: OnPoint) -> Solved:
        """Solve the relaxation itself, after the linear program.

        `start` is a point of a plan, `gap` how far bound and point may end apart, in parts of the cost of keep-all;
        `on_point` gets the choices of every better point on the way.
        """
        if start is not None and self._cost(start) <= self._linear_cost * (1 + 1e-9) + 1e-9:
            return Solved(self._bound(), [value > 0 for value in start])
        choices = None
        for _ in range(_ATTEMPTS):
            solver = self._matrix.solver(self._keep_going, integral=True)
            solver.setOptionValue("mip_abs_gap", max(gap * _COST_SCALE, 1e-6))
            solver.cbMipImprovingSolution.subscribe(lambda event: on_point(_choices(event.data_out.mip_solution)))
            if start is not None:
                self._begin_at(solver, start)
            solver.run()
            info = solver.getInfo()
            if math.isfinite(info.mip_dual_bound):
                self._least_cost = max(self._least_cost, info.mip_dual_bound)
            if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
                break
            values = np.array(solver.getSolution().col_value)
            choices = _choices(values)
            if not self._matrix.join(values) or not self._keep_going():
                break
        return Solved(self._bound(), choices)

    def _begin_at(self, solver: highspy.Highs, start: Sequence[int]) -> None:
        slack = self._cost(start) - self._linear_cost
        _fix_by_reduced_cost(solver, self._model, start, slack, self._linear.getSolution())
        warm = highspy.HighsSolution()
        warm.col_value = [float(value) for value in start]
        solver.setSolution(warm)

    def _cost(self, values: Sequence[int]) -> float:
        return float(np.dot(values, self._matrix.costs))

    def _bound(self) -> int:
        return _integer_bound(self._base, self._least_cost / self._scale)


def _choices(values: npt.ArrayLike) -> list[bool]:
    chosen: list[bool] = (np.asarray(values) > 0.5).tolist()
    return chosen


def _integer_bound(base: int, overhead: float) -> int:
    return max(base, math.ceil((base + overhead) * (1 - _SAFETY)))


def _fix_by_reduced_cost(
    solver: highspy.Highs, model: Model, start: Sequence[int], slack: float, solution: highspy.HighsSolution
) -> None:
    """Fix columns whose other value costs more than the plan at hand."""
    reduced, values = np.array(solution.col_dual), np.array(solution.col_value)
    for column in np.nonzero(np.abs(reduced) > slack + 1e-6)[0].tolist():
        value = start[column]
        at_bound = values[column] < 1e-7 if reduced[column] > 0 else values[column] > 1 - 1e-7
        if model.binary[column] and at_bound and value == (0 if reduced[column] > 0 else 1):
            solver.changeColBounds(column, float(value), float(value))


class _Matrix:
    """The model in the solver's form, scaled so that keep-all costs 1e4 and the budget is 1e3."""

    def __init__(self, relaxation: Relaxation, scale: float, tightened: Mapping[int, int]) -> None:
        model = relaxation.model
        self._binary = model.binary
        self.costs: Floats = np.array(model.costs, dtype=np.float64) * scale
        less = {number: tightened[step] for step, number in relaxation.memory_rows() if step in tightened}
        factors = np.array([_row_scale(relaxation, row.kind) for row in model.rows], dtype=np.float64)
        most = np.array([row.most - less.get(number, 0) for number, row in enumerate(model.rows)], dtype=np.float64)
        self._most: Floats = most * factors
        self._lengths = np.array([len(row.terms) for row in model.rows])
        self._starts = np.concatenate([[0], np.cumsum(self._lengths)])
        self._index = np.fromiter((column for row in model.rows for column, _ in row.terms), np.int32)
        values = np.fromiter((factor for row in model.rows for _, factor in row.terms), np.float64)
        self._value: Floats = values * np.repeat(factors, self._lengths)
        self._absent = np.array([_is_about_memory(row.kind) for row in model.rows], dtype=bool)

    def solver(self, keep_going: KeepGoing, *, integral: bool) -> highspy.Highs:
        """Return a solver that holds the rows so far and stops when it is told to."""
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("random_seed", 0)
        solver.setOptionValue("mip_rel_gap", 0.0)
        solver.setOptionValue("mip_max_nodes", _MOST_NODES)
        _stop_when_told(solver, keep_going)
        solver.passModel(self._columns(integral=integral))
        self.add_to(solver, np.nonzero(~self._absent)[0].tolist())
        return solver

    def join(self, values: Floats) -> list[int]:
        """Let rows join that a solution violates, the worst first and none beside another; return them."""
        rows = np.repeat(np.arange(len(self._lengths)), self._lengths)
        excess = np.bincount(rows, self._value * values[self._index], len(self._lengths)) - self._most
        excess[~self._absent] = 0.0
        chosen: list[int] = []
        while len(chosen) < _MOST_ROWS_AT_ONCE and excess.max(initial=0.0) > _VIOLATED:
            worst = int(excess.argmax())
            chosen.append(worst)
            excess[max(0, worst - _BESIDE) : worst + _BESIDE + 1] = 0.0
        self._absent[chosen] = False
        return chosen

    def add_to(self, solver: highspy.Highs, rows: Sequence[int]) -> None:
        """Give rows to a solver."""
        terms = np.concatenate([np.arange(0), *(np.arange(self._starts[row], self._starts[row + 1]) for row in rows)])
        starts = np.concatenate([[0], np.cumsum(self._lengths[rows])])[:-1].astype(np.int32)
        least, most = np.full(len(rows), -np.inf), self._most[rows]
        solver.addRows(len(rows), least, most, len(terms), starts, self._index[terms], self._value[terms])

    def _columns(self, *, integral: bool) -> highspy.HighsLp:
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.costs), 0
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = self.costs, np.zeros_like(self.costs), np.ones_like(self.costs)
        if integral:
            kinds = highspy.HighsVarType
            lp.integrality_ = [kinds.kInteger if binary else kinds.kContinuous for binary in self._binary]
        return lp


def _row_scale(relaxation: Relaxation, kind: str) -> float:
    if kind == "deadline":
        return _BYTES_SCALE / max(relaxation.work.base_time, 1)
    return _BYTES_SCALE / relaxation.budget if _is_about_memory(kind) else 1.0


def _is_about_memory(kind: str) -> bool:
    return kind == "inner" or kind.startswith("memory")


def _stop_when_told(solver: highspy.Highs, keep_going: KeepGoing) -> None:
    def ask(event: highspy.HighsCallbackEvent) -> None:
        if not keep_going():
            event.interrupt()

    solver.cbSimplexInterrupt.subscribe(ask)
    solver.cbMipInterrupt.subscribe(ask)
    solver.cbIpmInterrupt.subscribe(ask)
