"""From choices of the relaxation to an operation sequence: keep, recompute and page in as it says, fetch on demand."""

from collections.abc import Iterable, Mapping, Sequence

from hedgerow_plans.planning.optimal.relaxation import Relaxation, Slot
from hedgerow_plans.planning.optimal.timeline import Codes


class _Guided:
    def __init__(self, relaxation: Relaxation, choices: Sequence[bool]) -> None:
        self._relaxation, self._work, self._choices = relaxation, relaxation.work, choices
        self.codes: Codes = []
        self._live: set[int] = set()
        self._open: dict[int, int] = {}  # live, perhaps not beyond this stage: up to which step for sure
        self._fresh: set[int] = set()  # refreshed in the present stage

    def run(self) -> None:
        stage = -1
        for step in range(self._work.nodes):
            if self._relaxation.stage[step] != stage:
                stage, self._fresh = self._relaxation.stage[step], set()
                self._open = dict.fromkeys(self._live, step)
            if step + 1 == self._relaxation.borders[stage + 1]:
                self._refresh_for_later(step, stage)
            for tensor in self._work.reads[step]:
                self._need(tensor, step, 0)
            self.codes.append(step)
            self._add(self._work.makes[step])
            self._drop(step, stage)

    def _add(self, tensors: Iterable[int]) -> None:
        self._live.update(tensors)
        self._open.update(dict.fromkeys(tensors, 0))

    def _drop(self, step: int, stage: int) -> None:
        """Forget what is not needed after a step, looking only at what may have come to its end."""
        for tensor in [tensor for tensor, until in self._open.items() if until <= step]:
            if self._chosen(self._relaxation.stay, tensor, stage + 1):
                del self._open[tensor]
                continue
            self._open[tensor] = self._needed_until(tensor, step, stage)
            if self._open[tensor] <= step:
                del self._open[tensor]
                self._live.remove(tensor)

    def _refresh_for_later(self, step: int, stage: int) -> None:
        """Bring back what nobody asked for in this stage, but what shall be there when the next one begins."""
        for tensor in range(len(self._work.sizes)):
            if self._work.maker[tensor] < step and self._chosen(self._relaxation.stay, tensor, stage + 1):
                self._need(tensor, step, 0)

    def _chosen(self, table: Mapping[Slot, int], number: int, stage: int) -> bool:
        column = table.get((number, stage))
        return column is not None and self._choices[column]

    def _need(self, tensor: int, step: int, depth: int) -> None:
        """Bring a tensor back unless it is there."""
        if tensor in self._live:
            return
        work, node, stage = self._work, self._work.maker[tensor], self._relaxation.stage[step]
        allowed = step <= work.fences[node] and depth < 400
        if work.pages[tensor] is not None and (self._chosen(self._relaxation.fetch, tensor, stage) or not allowed):
            self.codes.append(~tensor)
            self._add([tensor])
            self._fresh.add(tensor)
            return
        if not allowed:
            raise ValueError("A tensor that cannot come back is missing.")
        for source in work.reads[node]:
            self._need(source, step, depth + 1)
        self.codes.append(node)
        self._add(work.makes[node])
        self._fresh.update(work.makes[node])

    def _needed_until(self, tensor: int, step: int, stage: int) -> int:
        """Return a step until which a tensor is needed in this stage; a past one if it is not needed any more."""
        relaxation = self._relaxation
        if not relaxation.modelled[tensor]:
            return relaxation.last[tensor]
        last_read = relaxation.last_reads.get((tensor, stage), -1)
        planned = any(self._choices[column] for column in relaxation.refreshes(tensor, stage))
        if last_read > step and (not planned or tensor in self._fresh):
            return last_read
        just_made = last_read > step and relaxation.work.maker[tensor] == step
        wanted = just_made or any(self._is_wanted(node, step, stage) for node in self._work.readers[tensor])
        return step + 1 if wanted else step

    def _is_wanted(self, node: int, step: int, stage: int) -> bool:
        """Whether a node that ran before is still to run again in this stage."""
        pending = node <= step and not self._fresh.issuperset(self._work.makes[node])
        return pending and self._chosen(self._relaxation.again, node, stage)


def follow(relaxation: Relaxation, choices: Sequence[bool]) -> Codes | None:
    """Return the sequence that carries out the choices; it may overflow where the relaxation did not look."""
    guided = _Guided(relaxation, choices)
    try:
        guided.run()
    except ValueError:
        return None
    return guided.codes
