"""HiGHS, asked for the relaxation's optimum: floating point lives here and in `matrix`, and nowhere else.

Everything that comes out is an integer or a choice; a bound is rounded so that the solver's tolerances cannot lift it
above the truth. One thread and a fixed seed: the same model gives the same answer.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import highspy
import numpy as np
import numpy.typing as npt

from hedgerow_plans.planning.optimal.matrix import Matrix
from hedgerow_plans.planning.optimal.relaxation import Model, Relaxation
from hedgerow_plans.planning.optimal.repair import KeepGoing

_SAFETY = 1e-7
_COST_SCALE = 1e4
_PART = 0.1
"""Of a column in the linear program that counts as chosen: whatever is made again then finds what it reads."""

_ATTEMPTS = 6
"""How often rows that were violated join before the choices are taken as they are."""

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
        self._matrix = Matrix(relaxation, self._scale, tightened)
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
        _fix_by_reduced_cost(solver, self._model, slack, self._linear.getSolution())
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


def _fix_by_reduced_cost(solver: highspy.Highs, model: Model, slack: float, solution: highspy.HighsSolution) -> None:
    """Fix columns whose other value costs more than the slack."""
    reduced, values = np.array(solution.col_dual), np.array(solution.col_value)
    at_bound = np.where(reduced > 0, values < 1e-7, values > 1 - 1e-7)
    fixed = np.nonzero((np.abs(reduced) > slack + 1e-6) & at_bound & np.array(model.binary))[0].astype(np.int32)
    ends = np.where(reduced[fixed] > 0, 0.0, 1.0)
    solver.changeColsBounds(len(fixed), fixed, ends, ends)
