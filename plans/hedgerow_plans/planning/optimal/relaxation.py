"""The staged relaxation: a small mixed-integer model that every plan satisfies at no higher cost than its own.

Steps are cut into stages. Refreshes (recomputations, page-ins) between step t - 1 and step t belong to the stage of t.
Columns, for each stage in which they can matter: `stay` (a tensor is in memory when the stage begins), `again` (a node
runs again in the stage), `fetch` (a tensor is paged in), `through` (a tensor is there during the whole stage, from its
birth on), and `out` (a tensor is written to storage). The objective is the overhead over running every node once.

What it leaves out, and what its optimum is therefore a bound for all the same: the order of refreshes inside a stage,
more than one refresh of a kind in a stage, and refreshes whose purpose lies many generations away.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.optimal.stages import last_purposes

Terms = list[tuple[int, int]]
Slot = tuple[int, int]
"""A tensor or node, and a stage."""

_INNER_SHARE = 20
"""A recomputation is given a memory row of its own if it needs more than one part in this many of the budget."""

_NEGLIGIBLE_SHARE = 1000
"""The smallest tensors, together at most one part in this many of the budget, count as always there: no columns."""


@dataclass(frozen=True, slots=True)
class Row:
    """A sum of columns that must not be greater than `most`; integers, scaled only inside the solver."""

    terms: Terms
    most: int
    kind: str


@dataclass(slots=True)
class Model:
    """Columns with their costs, and rows."""

    costs: list[int] = field(default_factory=list)
    binary: list[bool] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def column(self, cost: int, *, binary: bool = True) -> int:
        """Add a column between 0 and 1."""
        self.costs.append(cost)
        self.binary.append(binary)
        return len(self.costs) - 1

    def at_most(self, terms: Terms, most: int, kind: str) -> None:
        """Add a row; a column may be named twice, but the solver must see it once."""
        merged: dict[int, int] = {}
        for column, factor in terms:
            merged[column] = merged.get(column, 0) + factor
        self.rows.append(Row(list(merged.items()), most, kind))


@dataclass(frozen=True, slots=True)
class _There:
    """A tensor that is in memory: its bytes, and what columns add or take off."""

    tensor: int
    bytes: int
    terms: Terms


class Relaxation:
    """The model of a workload, a budget and a row of stages."""

    def __init__(self, work: Workload, budget: int, deadline: int | None, borders: tuple[int, ...]) -> None:
        self.work, self.budget, self.borders = work, budget, borders
        self.model = Model()
        self.stage = [k for k in range(len(borders) - 1) for _ in range(borders[k], borders[k + 1])]
        self.last = last_purposes(work)
        self.last_reads: dict[Slot, int] = {  # of several in a stage, the last one stays
            (tensor, self.stage[node]): node for tensor, nodes in enumerate(work.readers) for node in nodes
        }
        self.stay: dict[Slot, int] = {}
        self.again: dict[Slot, int] = {}
        self.fetch: dict[Slot, int] = {}
        self.through: dict[Slot, int] = {}
        self.out: dict[int, int] = {}
        negligible = _negligible(work, budget)
        self.modelled = [
            last > maker + 1 and tensor not in negligible
            for tensor, (last, maker) in enumerate(zip(self.last, work.maker, strict=True))
        ]
        self._add_columns()
        self._add_rows()
        self._add_memory_rows()
        self._add_inner_rows()
        if deadline is not None:
            terms = [(column, work.times[node]) for (node, _), column in self.again.items() if work.times[node]]
            self.model.at_most(terms, deadline - work.base_time, "deadline")

    def stages_of(self, tensor: int) -> range:
        """Return the stages in which a tensor has columns."""
        if not self.modelled[tensor]:
            return range(0)
        return range(self.stage[self.work.maker[tensor]], self.stage[self.last[tensor]] + 1)

    def refreshes(self, tensor: int, stage: int) -> list[int]:
        """Return the columns that bring a tensor back in a stage."""
        slots = (self.again.get((self.work.maker[tensor], stage)), self.fetch.get((tensor, stage)))
        return [column for column in slots if column is not None]

    def _add_columns(self) -> None:
        work, model = self.work, self.model
        for tensor, pages in enumerate(work.pages):
            stages = self.stages_of(tensor)
            if not stages:
                continue
            if pages is not None:
                self.out[tensor] = model.column(pages[0])
            for stage in stages:
                if stage > stages[0]:
                    self.stay[tensor, stage] = model.column(0)
                if stage < stages[-1]:
                    self.through[tensor, stage] = model.column(0, binary=False)
                if pages is not None:
                    self.fetch[tensor, stage] = model.column(pages[1])
                self._add_again(work.maker[tensor], stage)

    def _add_again(self, node: int, stage: int) -> None:
        first_step = max(self.borders[stage], node + 1)
        if (node, stage) not in self.again and first_step <= min(self.work.fences[node], self.work.nodes - 1):
            self.again[node, stage] = self.model.column(self.work.costs[node])

    def _add_rows(self) -> None:
        for tensor in range(len(self.work.sizes)):
            stages = self.stages_of(tensor)
            read = {self.stage[node] for node in self.work.readers[tensor]}
            for stage in stages:
                self._add_tensor_rows(tensor, stage, is_read=stage in read)
        for (node, stage), column in self.again.items():
            for tensor in self.work.reads[node]:
                if (tensor, stage) in self.stay:  # otherwise it is made in this very stage, or not modelled
                    present = [(self.stay[tensor, stage], -1)] + [(c, -1) for c in self.refreshes(tensor, stage)]
                    self.model.at_most([(column, 1), *present], 0, "inputs")

    def _add_tensor_rows(self, tensor: int, stage: int, *, is_read: bool) -> None:
        add = self.model.at_most
        here, following = self.stay.get((tensor, stage)), self.stay.get((tensor, stage + 1))
        brought = [(column, -1) for column in self.refreshes(tensor, stage)]
        if here is not None and is_read:
            add([(here, -1), *brought], -1, "read")
        if following is not None:
            if here is not None:
                add([(following, 1), (here, -1), *brought], 0, "persistence")
            add([(self.through[tensor, stage], -1), (following, 1), *brought], 0, "through")
        if (tensor, stage) in self.fetch:
            add([(self.fetch[tensor, stage], 1), (self.out[tensor], -1)], 0, "storage")

    def _add_memory_rows(self) -> None:
        """At a step there are its own tensors, and what the stage's choices leave in memory beside them."""
        active: dict[int, None] = {}
        active_bytes = 0
        dying: dict[int, list[int]] = {}
        for step in range(self.work.nodes):
            if active_bytes + self.work.working_sets[step] > self.budget:
                self._add_memory_row(step, active)
            for tensor in self.work.makes[step]:
                if self.modelled[tensor] and self.work.sizes[tensor]:
                    active[tensor] = None
                    active_bytes += self.work.sizes[tensor]
                    dying.setdefault(self.last[tensor], []).append(tensor)
            for tensor in dying.get(step, ()):
                active.pop(tensor)
                active_bytes -= self.work.sizes[tensor]

    def _add_memory_row(self, step: int, active: Iterable[int]) -> None:
        own = {*self.work.reads[step], *self.work.makes[step]}
        fixed, terms = self._occupation(step, [tensor for tensor in active if tensor not in own])
        fixed += self.work.working_sets[step]
        if fixed + sum(size for _, size in terms if size > 0) > self.budget:
            self.model.at_most(terms, self.budget - fixed, f"memory at {step}")

    def _occupation(self, step: int, tensors: Iterable[int]) -> tuple[int, Terms]:
        """Return the bytes that are there unless a refresh says otherwise, and what the columns add or take off."""
        stage, is_end = self.stage[step], step + 1 in self.borders
        fixed, terms = 0, []
        for tensor in tensors:
            size = self.work.sizes[tensor]
            if self.last_reads.get((tensor, stage), -1) > step:
                fixed += size
                terms += [(column, -size) for column in self.refreshes(tensor, stage)]
            elif (tensor, stage + 1) in self.stay:
                column = self.stay[tensor, stage + 1] if is_end else self.through[tensor, stage]
                terms.append((column, size))
        return fixed, terms

    def _add_inner_rows(self) -> None:
        """Give recomputations room: each happens somewhere in its stage, beside what is there during all of it."""
        through: list[list[tuple[int, int]]] = [[] for _ in self.borders[1:]]
        for (tensor, stage), column in self.through.items():
            through[stage].append((tensor, column))
        beside = [self._throughout(stage, there) for stage, there in enumerate(through)]
        for (node, stage), column in self.again.items():
            needed = self.work.working_sets[node]
            if needed * _INNER_SHARE < self.budget:
                continue
            own = {*self.work.reads[node], *self.work.makes[node]}
            fixed = sum(there.bytes for there in beside[stage] if there.tensor not in own)
            terms = [term for there in beside[stage] if there.tensor not in own for term in there.terms]
            if fixed + sum(size for _, size in terms if size > 0) + needed > self.budget:
                self.model.at_most([*terms, (column, needed)], self.budget - fixed, "inner")

    def _throughout(self, stage: int, through: Iterable[tuple[int, int]]) -> list[_There]:
        """Return what was made before a stage and is in memory at each of its refreshes unless it is one of them.

        That is what stays beyond the stage, and what its last step reads: no refresh of the stage comes later.
        """
        work, begin, last_step = self.work, self.borders[stage], self.borders[stage + 1] - 1
        there: dict[int, _There] = {}
        for tensor, column in through:
            if work.maker[tensor] < begin:
                there[tensor] = _There(tensor, 0, [(column, work.sizes[tensor])])
        for tensor in work.reads[last_step]:
            if work.maker[tensor] < begin:
                taken_off = [(column, -work.sizes[tensor]) for column in self.refreshes(tensor, stage)]
                there[tensor] = _There(tensor, work.sizes[tensor], taken_off)
        return [item for item in there.values() if work.sizes[item.tensor]]

    def memory_rows(self) -> Iterator[tuple[int, int]]:
        """Yield (step, number of the row) of the memory rows."""
        for number, row in enumerate(self.model.rows):
            if row.kind.startswith("memory at "):
                yield int(row.kind.removeprefix("memory at ")), number


def _negligible(work: Workload, budget: int) -> set[int]:
    """Return the smallest tensors that together hardly matter; keeping them for nothing only lowers the bound."""
    left, chosen = budget // _NEGLIGIBLE_SHARE, set[int]()
    for tensor in sorted(range(len(work.sizes)), key=work.sizes.__getitem__):
        left -= work.sizes[tensor]
        if left < 0:
            break
        chosen.add(tensor)
    return chosen
