"""The relaxation in the solver's form: scaled numbers, and rows about memory that join when they are violated."""

from collections.abc import Mapping, Sequence

import highspy
import numpy as np
import numpy.typing as npt

from hedgerow_plans.planning.optimal.relaxation import Relaxation
from hedgerow_plans.planning.optimal.repair import KeepGoing

_BYTES_SCALE = 1e3
_MOST_NODES = 2_000
"""Of the branch-and-bound tree: counted, so that runs repeat."""

_MOST_ROWS_AT_ONCE = 12
_BESIDE = 3
"""Rows of neighbouring steps say almost the same: one of them joins at a time."""

_VIOLATED = 1e-6
Floats = npt.NDArray[np.float64]


class Matrix:
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
