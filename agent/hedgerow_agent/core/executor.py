"""Runs a program: one arena, one plan at a time, one call per optimiser step.

A plan is compiled once into flat lists of bound calls (`compilation`), kept and replayed. Switching to another rung
takes its lists and leaves what survives a step where it is. The executor knows nothing about epochs, files of data or
checkpoints.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hedgerow_agent.core.arena import GUARD_BYTES, PATTERNS, Arena
from hedgerow_agent.core.bindings import Bindings
from hedgerow_agent.core.compilation import Backend, Compiled, NumpyBackend, Workplace, compile_plan
from hedgerow_agent.core.errors import BadInput, CoreError, GuardZoneChanged, NonFiniteLoss
from hedgerow_agent.core.evaluation import Evaluation, Scores
from hedgerow_agent.core.kernels.call import Array, Augment, Bound, RowNumbers, Rows, Runtime
from hedgerow_agent.core.paging import PageFile
from hedgerow_agent.core.residents import Residents
from hedgerow_agent.core.rows import Order, count_of, in_turn, piece_of
from hedgerow_agent.core.samples import SampleShape, Targets, sample_shape
from hedgerow_plans.graph.ir import round_up
from hedgerow_plans.plan import Plan, Program

_ROWS_AHEAD = 1024
"""Rows of an order that are taken and looked at together, unless a micro-batch has more."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one optimiser step showed: mean loss before the update, and the highest byte used if it was measured."""

    loss: float
    measured_peak_bytes: int | None = None


class Executor:
    """Trains and evaluates one program in one arena."""

    def __init__(
        self,
        program: Program,
        parameters: Mapping[str, Array],
        seed: int,
        rung: int = 0,
        paging_folder: Path | None = None,
        *,
        backend: Backend | None = None,
    ) -> None:
        self.program = program
        self.steps_taken = 0
        self.augment: Augment | None = None  # what is done to samples in training
        self.samples: SampleShape = sample_shape(program)
        plans = (*program.rungs, program.evaluation)
        self._arena = Arena(max(program.resident_bytes, *(plan.promise.peak_bytes for plan in plans)))
        self._residents = Residents(program, self._arena, parameters, seed)
        self._runtime = Runtime(seed=seed)
        self._folder = paging_folder
        self._pages = PageFile(paging_folder)
        self.backend = backend or NumpyBackend()
        self._workplace = Workplace(
            self._arena, self._residents.views, self._runtime, self._pages, backend=self.backend
        )
        self._evaluation = self._compile(program.evaluation)
        self._bindings = Bindings(lambda number: self._compile(self._plan(number)), self._arena.capacity_bytes)
        self.rung = rung
        self._bindings.take(rung)

    @property
    def _training(self) -> Compiled:
        # Taken anew each time: while it is held here, what binds another rung could not give it up.
        return self._bindings.take(self.rung)

    @property
    def plan(self) -> Plan:
        """The plan of the rung in use."""
        return self._training.plan

    @property
    def _classifies(self) -> bool:
        return self.samples.targets is Targets.LABELS

    def prepare(self) -> None:
        """Compile rungs now, as many as may be kept, so that switching to them binds nothing."""
        self._bindings.fill(range(len(self.program.rungs)), self.rung)

    def switch(self, rung: int) -> None:
        """Go on with another rung; parameters and optimiser state stay, memory above its peak goes back."""
        compiled = self._bindings.take(rung)
        self.rung = rung
        self._arena.give_back_above(compiled.plan.promise.peak_bytes)

    def step(self, x: Array, y: Array, learning_rate: float, rows: RowNumbers | None = None) -> StepResult:
        """Take one optimiser step on a batch: all of x and y, or the rows given of them."""
        self._feed(x, y, learning_rate, self.augment)
        loss = self._replay(self._batch_rows(x, rows))
        self.steps_taken += 1
        return StepResult(loss)

    def measure(self, x: Array, y: Array, learning_rate: float, rows: RowNumbers | None = None) -> StepResult:
        """Take one step, twice from the same state over two patterns, and find the highest byte it writes."""
        self._feed(x, y, learning_rate, self.augment)
        batch = self._batch_rows(x, rows)
        losses, highest = [], 0
        with self._residents.remembered(self._folder) as put_back:
            for pattern in PATTERNS:
                put_back()
                loss, reached = self._replay_over(pattern, batch)
                losses.append(loss)
                highest = max(highest, reached)
        promised = self.plan.promise.peak_bytes
        if highest > round_up(promised):
            raise GuardZoneChanged(promised, highest)
        self.steps_taken += 1
        return StepResult(losses[-1], highest)

    def evaluate(self, x: Array, y: Array, rows: Order | None = None) -> Evaluation:
        """Return accuracy and F1 (of classes only) and mean loss over all samples, or the rows given of them."""
        self._feed(x, y, 0.0)
        scores = Scores(self.samples.classes if self._classifies else None)
        for part, logits, losses in self._forward(slice(0, len(x)) if rows is None else rows):
            scores.add(logits, losses, y[part])
        return scores.result()

    def predict(self, x: Array) -> npt.NDArray[np.float32]:
        """Return the logits of samples, one row each."""
        self._feed(x, self.samples.no_targets(len(x)), 0.0)
        result = np.empty((len(x), *self.samples.output), np.float32)
        for part, logits, _ in self._forward(slice(0, len(x))):
            result[part] = logits
        return result

    def delta(self) -> dict[str, Array]:
        """Return copies of the trained tensors."""
        return self._residents.copy(self.program.delta)

    def load_delta(self, values: Mapping[str, Array]) -> None:
        """Replace the trained tensors, all or none."""
        self._residents.replace(values, self.program.delta)

    def resident_state(self) -> bytes:
        """Return the bytes that survive a step: parameters and optimiser state."""
        return self._arena.read(self.program.resident_bytes)

    def resident_view(self) -> memoryview:
        """Return the same bytes where they lie; they change with the next step."""
        return self._arena.view(0, (self.program.resident_bytes,), "uint8").data.toreadonly()

    def load_resident_state(self, content: bytes) -> None:
        """Put back what `resident_state` of the same program returned."""
        if len(content) != self.program.resident_bytes:
            raise BadInput(
                f"The resume state has {len(content)} bytes and the program keeps {self.program.resident_bytes}; "
                "it belongs to another program."
            )
        self._arena.write(content)

    def close(self) -> None:
        """Give memory and storage back."""
        self._pages.close()
        self._arena.close()

    def _plan(self, rung: int) -> Plan:
        if not 0 <= rung < len(self.program.rungs):
            raise BadInput(f"There is no rung {rung}; the program has 0 to {len(self.program.rungs) - 1}.")
        return self.program.rungs[rung]

    def _compile(self, plan: Plan) -> Compiled:
        return compile_plan(plan, self.program.graph(plan.graph), self._workplace)

    def _feed(self, x: Array, y: Array, learning_rate: float, augment: Augment | None = None) -> None:
        self.samples.check_arrays(x, y)
        self._runtime.fields = {"x": x, "y": y}
        self._runtime.learning_rate = learning_rate
        self._runtime.step = self.steps_taken
        self._runtime.augment = augment

    def _batch_rows(self, x: Array, rows: RowNumbers | None) -> Rows:
        chosen: Rows = slice(0, len(x)) if rows is None else rows
        if count_of(chosen) != self.program.batch_size:
            raise BadInput(f"A step got {count_of(chosen)} samples; the program's batch is {self.program.batch_size}.")
        self._check(chosen)
        return chosen

    def _check(self, rows: Rows) -> None:
        self.samples.check_rows(self._runtime.fields["x"], self._runtime.fields["y"], rows)

    def _replay(self, rows: Rows) -> float:
        """Run the training plan once and return the mean loss."""
        compiled, size = self._training, self.plan.micro_batch
        total = 0.0
        # What overflows is judged by the loss, not by numpy's warnings.
        with np.errstate(all="ignore"):
            _run(compiled.begin)
            for number in range(compiled.plan.micro_batches):
                self._runtime.rows = piece_of(rows, number * size, size)
                _run(compiled.body)
                total += float(compiled.losses.sum(dtype=np.float64))
                if not math.isfinite(total):
                    raise NonFiniteLoss(self.steps_taken + 1, total)
            _run(compiled.finish)
        return total / self.program.batch_size

    def _replay_over(self, pattern: int, rows: Rows) -> tuple[float, int]:
        """Run the training plan over a pattern and return the loss and the end of the highest byte it changed."""
        first, end = self.program.resident_bytes, round_up(self.plan.promise.peak_bytes) + GUARD_BYTES
        self._arena.fill(first, end, pattern)
        loss = self._replay(rows)
        return loss, self._arena.highest_changed(first, end, pattern)

    def _forward(self, rows: slice | Order) -> Iterator[tuple[Rows, Array, Array]]:
        """Run the evaluation plan over samples; yield row numbers, logits and losses, valid until the next turn."""
        compiled, size = self._evaluation, self._evaluation.plan.micro_batch
        if compiled.logits is None:
            raise CoreError("The evaluation plan frees the logits before its end; plan the program again.")
        for taken in in_turn(rows, max(1, _ROWS_AHEAD // size) * size):
            self._check(taken)
            for part in in_turn(taken, size):
                self._runtime.rows = part
                with np.errstate(all="ignore"):
                    _run(compiled.body)
                count = count_of(part)
                yield part, compiled.logits[:count], compiled.losses[:count]


def _run(calls: tuple[Bound, ...]) -> None:
    for call in calls:
        call()
