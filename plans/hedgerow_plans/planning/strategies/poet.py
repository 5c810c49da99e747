"""POET (Patil et al. 2022): recomputation and paging together, for the least energy, as its own MILP defines them.

Stage t computes node t for the first time. In each stage every node may be computed again, paged in or paged out, and
kept in memory or in storage for the next stage. Memory is followed node by node through every stage, with frees decided
by the model. That makes 5 T^2 + T E binaries, so it is for small graphs only; `MOST_NODES` says how small.

Costs and bytes are scaled before they go to the solver: as they are, energies lie below its tolerances. Only this
module imports the solver, and nothing on a device imports this module.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from hedgerow_plans.graph.ir import round_up
from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.body import body_of
from hedgerow_plans.planning.lowering import lower
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Sequence as Operations
from hedgerow_plans.planning.sequence import straight
from hedgerow_plans.planning.strategies.limits import Limits, first_that_fits

NAME = "poet"
MOST_NODES = 40

_COST_SCALE = 1e4
_BYTES_SCALE = 1e3
Term = tuple[int, float]


@dataclass(frozen=True, slots=True)
class Solved:
    """Operation codes of the best solution found, and whether nothing cheaper exists in POET's model."""

    codes: list[int]
    is_optimal: bool


_LAYOUT_ATTEMPTS = 3
"""How often the model is solved for less because the layout could not pack what it found."""


def plan(problem: Problem, limits: Limits, _known: Sequence[Operations] | None = None) -> Plan | Infeasible:
    """Plan with POET's model; what it cannot plan, keep-all may."""
    body = body_of(problem)
    room = body.room(limits.budget_bytes)
    for _ in range(_LAYOUT_ATTEMPTS if body.work.nodes <= MOST_NODES else 0):
        solved = schedule(body.work, room, None, limits.keep_going) if room >= body.work.floor_bytes else None
        if solved is None:
            break
        found = lower(problem, body.sequence(solved.codes), NAME, limits.keep_going)
        if found.promise.peak_bytes <= limits.budget_bytes:
            return found
        room -= round_up(found.promise.peak_bytes - limits.budget_bytes)
    return first_that_fits(problem, [straight(problem)], NAME, limits)


def schedule(
    work: Workload,
    capacity_bytes: int,
    deadline: int | None = None,
    keep_going: Callable[[], bool] = lambda: True,
) -> Solved | None:
    """Solve POET's model; None if it is infeasible, or if time was up before anything was found."""
    if work.nodes > MOST_NODES:
        raise ValueError(f"POET's model is for at most {MOST_NODES} nodes; this graph has {work.nodes}.")
    model = _Model(work, capacity_bytes, deadline)
    values, is_optimal = model.solve(keep_going)
    return None if values is None else Solved(model.codes(values), is_optimal)


class _Model:
    """Columns and rows; every family of variables is a function from stage and node to its column."""

    def __init__(self, work: Workload, capacity_bytes: int, deadline: int | None) -> None:
        self._work, self._capacity, self._deadline = work, capacity_bytes, deadline
        self._nodes = work.nodes
        # several outputs of a node are kept and freed together; only a single one is paged, as in POET
        self._output = [made[0] if len(made) == 1 else None for made in work.makes]
        self._bytes = [sum(work.sizes[tensor] for tensor in made) for made in work.makes]
        self._readers = [sorted({at for tensor in made for at in work.readers[tensor]}) for made in work.makes]
        self._edges = [(node, reader) for node in range(self._nodes) for reader in self._readers[node]]
        self._upper: list[float] = []
        self._lower: list[float] = []
        self._binary: list[bool] = []
        self._costs: list[float] = []
        self._rows: list[tuple[float, float, list[Term]]] = []
        self._make_columns()
        self._make_rows()

    def _make_columns(self) -> None:
        work, stages = self._work, range(self._nodes)
        scale = _COST_SCALE / max(work.base_cost, 1)
        self._compute = [
            [self._column(i <= t and self._may(t, i), work.costs[i] * scale) for i in stages] for t in stages
        ]
        for node in stages:
            self._lower[self._compute[node][node]] = 1.0
        self._ram = [[self._column(i < t) for i in stages] for t in range(self._nodes + 1)]
        self._stored = [[self._column(i < t) for i in stages] for t in range(self._nodes + 1)]
        pages = [None if tensor is None else work.pages[tensor] for tensor in self._output]
        self._in = [
            [self._column(i <= t and bool(p), (p or (0, 0))[1] * scale) for i, p in enumerate(pages)] for t in stages
        ]
        self._out = [
            [self._column(i <= t and bool(p), (p or (0, 0))[0] * scale) for i, p in enumerate(pages)] for t in stages
        ]
        self._free = [[self._column(open_=True) for _ in self._edges] for _ in stages]
        top = self._capacity / max(self._capacity, 1) * _BYTES_SCALE
        self._used = [[self._column(open_=True, upper=top, binary=False) for _ in stages] for _ in stages]

    def _may(self, stage: int, node: int) -> bool:
        return stage == node or stage <= self._work.fences[node] != node

    def _column(self, open_: bool, cost: float = 0.0, upper: float = 1.0, *, binary: bool = True) -> int:
        self._lower.append(0.0)
        self._upper.append(upper if open_ else 0.0)
        self._binary.append(binary)
        self._costs.append(cost)
        return len(self._costs) - 1

    def _at_most(self, limit: float, *terms: Term) -> None:
        self._rows.append((-np.inf, limit, list(terms)))

    def _equal(self, value: float, terms: Iterable[Term]) -> None:
        self._rows.append((value, value, list(terms)))

    def _make_rows(self) -> None:
        for stage in range(self._nodes):
            for before, after in self._edges:
                terms = [(self._compute[stage][after], 1.0), (self._compute[stage][before], -1.0)]
                self._at_most(0.0, *terms, (self._ram[stage][before], -1.0))
            for node in range(stage + 1):
                self._keep(stage, node)
            for number, (node, reader) in enumerate(self._edges):
                self._hazards(stage, number, node, reader)
            self._memory(stage)
        if self._deadline is not None:
            scale = _BYTES_SCALE / max(self._work.base_time, 1)
            terms = [(column, self._work.times[i] * scale) for row in self._compute for i, column in enumerate(row)]
            self._at_most(self._deadline * scale, *terms)

    def _keep(self, stage: int, node: int) -> None:
        """Keep in memory only what is there, was computed or paged in; in storage only what was written."""
        ram, stored = self._ram[stage][node], self._stored[stage][node]
        come = [(column, -1.0) for column in (ram, self._compute[stage][node], self._in[stage][node])]
        self._at_most(0.0, (self._ram[stage + 1][node], 1.0), *come)
        self._at_most(0.0, (self._stored[stage + 1][node], 1.0), (stored, -1.0), (self._out[stage][node], -1.0))
        self._at_most(0.0, (self._in[stage][node], 1.0), (stored, -1.0))
        self._at_most(0.0, (self._out[stage][node], 1.0), (ram, -1.0))

    def _hazards(self, stage: int, number: int, node: int, reader: int) -> None:
        """Free an input after a reader exactly if that reader runs, nobody later does, and it is not kept."""
        later = [self._compute[stage][other] for other in self._readers[node] if other > reader]
        terms = [(self._compute[stage][reader], -1.0), (self._ram[stage + 1][node], 1.0), *((at, 1.0) for at in later)]
        free, most = self._free[stage][number], 2.0 + len(later)
        self._rows.append((0.0, np.inf, [*terms, (free, 1.0)]))  # 1 - free <= 1 + terms
        self._at_most(most - 1.0, *terms, (free, most))  # 1 + terms <= most (1 - free)

    def _memory(self, stage: int) -> None:
        scale = _BYTES_SCALE / max(self._capacity, 1)
        sizes = [size * scale for size in self._bytes]
        used, compute = self._used[stage], self._compute[stage]
        kept = [(self._ram[stage][node], -sizes[node]) for node in range(self._nodes)]
        self._equal(0.0, [(used[0], 1.0), (compute[0], -sizes[0]), *kept])
        for node in range(self._nodes):
            scratch = self._work.scratch[node] * scale
            if scratch:
                self._at_most(_BYTES_SCALE, (used[node], 1.0), (compute[node], scratch))
            if node + 1 < self._nodes:
                freed = [
                    (self._free[stage][number], sizes[before])
                    for number, (before, reader) in enumerate(self._edges)
                    if reader == node
                ]
                self._equal(
                    0.0, [(used[node + 1], 1.0), (used[node], -1.0), (compute[node + 1], -sizes[node + 1]), *freed]
                )

    def solve(self, keep_going: Callable[[], bool]) -> tuple[Sequence[float] | None, bool]:
        """Return the values of the best solution, if there is one, and whether it is proven best."""
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("random_seed", 0)
        solver.setOptionValue("mip_rel_gap", 0.0)
        solver.cbMipInterrupt.subscribe(lambda event: None if keep_going() else event.interrupt())
        solver.passModel(self._program())
        solver.run()
        found = solver.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        is_optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return (list(solver.getSolution().col_value) if found else None), is_optimal

    def _program(self) -> highspy.HighsLp:
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(self._costs), len(self._rows)
        program.col_cost_ = np.array(self._costs)
        program.col_lower_, program.col_upper_ = np.array(self._lower), np.array(self._upper)
        program.row_lower_ = np.array([low for low, _, _ in self._rows])
        program.row_upper_ = np.array([high for _, high, _ in self._rows])
        lengths = [len(terms) for _, _, terms in self._rows]
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        program.a_matrix_.index_ = np.array([column for _, _, terms in self._rows for column, _ in terms], np.int32)
        program.a_matrix_.value_ = np.array([value for _, _, terms in self._rows for _, value in terms])
        kinds = highspy.HighsVarType
        program.integrality_ = [kinds.kInteger if binary else kinds.kContinuous for binary in self._binary]
        return program

    def codes(self, values: Sequence[float]) -> list[int]:
        """Return the operations of a solution: each stage's computations, then what it pages in for the next."""
        codes: list[int] = []
        for stage in range(self._nodes):
            codes += [node for node in range(self._nodes) if values[self._compute[stage][node]] > 0.5]
            tensors = [self._output[node] for node in range(self._nodes) if values[self._in[stage][node]] > 0.5]
            codes += [~tensor for tensor in tensors if tensor is not None]
        return codes
