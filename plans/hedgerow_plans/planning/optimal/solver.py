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
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Effort:
    """When the solver stops without proof."""

    keep_going: Callable[[], bool]
    nodes: int = 2_000  # of the branch-and-bound tree: counted, so that runs repeat
    gap: float = 5e-5  # between bound and point, in parts of the cost of keep-all


@dataclass(frozen=True, slots=True)
class Solved:
    """A proven bound on the cost of every plan, and the choices of the best point found, if one was."""

    bound: int
    choices: list[bool] | None
    is_exact: bool  # the relaxation was solved to its end


def solve(
    relaxation: Relaxation, effort: Effort, start: Sequence[int] | None, tightened: Mapping[int, int] | None = None
) -> Solved:
    """Solve the relaxation, first without integrality; `start` is a point of a plan.

    `tightened` takes bytes off the memory rows of some steps: what comes out then guides, but bounds nothing.
    """
    base = relaxation.work.base_cost
    scale = _COST_SCALE / max(base, 1)
    matrix = _Matrix(relaxation, scale, tightened or {})
    linear = matrix.solver(effort, integral=False)
    linear.run()
    if linear.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return Solved(base, None, is_exact=False)
    objective = linear.getInfo().objective_function_value
    upper = None if start is None else sum(v * c for v, c in zip(start, relaxation.model.costs, strict=True)) * scale
    if upper is not None and start is not None and upper <= objective * (1 + 1e-9) + 1e-9:
        return Solved(_integer_bound(base, objective / scale), [value > 0 for value in start], is_exact=True)
    integral = matrix.solver(effort, integral=True)
    if upper is not None and start is not None:
        solution = linear.getSolution()
        _fix_by_reduced_cost(integral, relaxation.model, start, upper - objective, solution)
        warm = highspy.HighsSolution()
        warm.col_value = [float(value) for value in start]
        integral.setSolution(warm)
    integral.run()
    return _answer(integral, base, objective, scale)


def _answer(solver: highspy.Highs, base: int, linear: float, scale: float) -> Solved:
    info = solver.getInfo()
    optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    dual = info.mip_dual_bound
    best = max(linear, dual) if math.isfinite(dual) else linear
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    choices = [value > 0.5 for value in solver.getSolution().col_value] if found else None
    return Solved(_integer_bound(base, best / scale), choices, is_exact=optimal)


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
        self.binary = model.binary
        self.costs: Floats = np.array(model.costs, dtype=np.float64) * scale
        less = {number: tightened[step] for step, number in relaxation.memory_rows() if step in tightened}
        factors = np.array([_row_scale(relaxation, row.kind) for row in model.rows], dtype=np.float64)
        most = np.array([row.most - less.get(number, 0) for number, row in enumerate(model.rows)], dtype=np.float64)
        self.upper: Floats = most * factors
        lengths = [len(row.terms) for row in model.rows]
        self.start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        self.index = np.fromiter((column for row in model.rows for column, _ in row.terms), np.int32)
        values = np.fromiter((factor for row in model.rows for _, factor in row.terms), np.float64)
        self.value: Floats = values * np.repeat(factors, lengths)

    def solver(self, effort: Effort, *, integral: bool) -> highspy.Highs:
        """Return a solver that holds the model and stops when it is told to."""
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("random_seed", 0)
        solver.setOptionValue("mip_rel_gap", 0.0)
        solver.setOptionValue("mip_abs_gap", max(effort.gap * _COST_SCALE, 1e-6))
        solver.setOptionValue("mip_max_nodes", effort.nodes)
        _stop_when_told(solver, effort.keep_going)
        solver.passModel(self._lp(integral=integral))
        return solver

    def _lp(self, *, integral: bool) -> highspy.HighsLp:
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.costs), len(self.upper)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = self.costs, np.zeros_like(self.costs), np.ones_like(self.costs)
        lp.row_lower_, lp.row_upper_ = np.full_like(self.upper, -np.inf), self.upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = self.start, self.index, self.value
        if integral:
            kinds = highspy.HighsVarType
            lp.integrality_ = [kinds.kInteger if binary else kinds.kContinuous for binary in self.binary]
        return lp


def _row_scale(relaxation: Relaxation, kind: str) -> float:
    if kind == "deadline":
        return _BYTES_SCALE / max(relaxation.work.base_time, 1)
    return _BYTES_SCALE / relaxation.budget if kind == "inner" or kind.startswith("memory") else 1.0


def _stop_when_told(solver: highspy.Highs, keep_going: Callable[[], bool]) -> None:
    def ask(event: highspy.HighsCallbackEvent) -> None:
        if not keep_going():
            event.interrupt()

    solver.cbSimplexInterrupt.subscribe(ask)
    solver.cbMipInterrupt.subscribe(ask)
    solver.cbIpmInterrupt.subscribe(ask)
