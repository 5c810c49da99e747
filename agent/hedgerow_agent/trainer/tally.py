"""What a job has come to so far: the figures that progress reports carry and that survive a restart."""

from collections import deque
from statistics import median
from typing import TypedDict

from hedgerow_agent.checkpoints import ResumeHeader
from hedgerow_agent.trainer.energy import PICOJOULES_PER_MICROJOULE, EnergyMeter
from hedgerow_plans.plan import Program
from hedgerow_plans.protocol.messages import Energy, EnergySource, Memory, Progress, Quality, RungPeak

_MOST_RUNGS_NAMED = 64
_RUNS_OF_A_MEASURED_STEP = 2
_STEPS_TIMED = 101


class CarriedOver(TypedDict):
    """The figures that go on after a restart, as the resume file spells them."""

    accuracy_before: float | None
    accuracy_now: float | None
    measured_peaks: dict[int, int]
    energy_picojoules: int
    energy_source: EnergySource
    switches_down: int
    switches_up: int
    rungs_used: tuple[int, ...]


class Tally:
    """Counts steps, energy, switches and measured peaks."""

    def __init__(self, program: Program, meter: EnergyMeter, before: ResumeHeader | None) -> None:
        self._rungs = program.rungs
        self._meter = meter
        self._energy_before = before.energy_picojoules if before and before.energy_source is meter.source else 0
        self.accuracy_before = before.accuracy_before if before else None
        self.accuracy_now = before.accuracy_now if before else None
        self.accuracy_after: float | None = None
        self.step = before.step if before else 0
        self.total_steps = 0
        self.budget_bytes: int | None = None
        self._switches_down = before.switches_down if before else 0
        self._switches_up = before.switches_up if before else 0
        self._rungs_used = before.rungs_used if before else ()
        self.validation: Quality | None = None
        self.test: Quality | None = None
        self._step_microseconds: deque[int] = deque(maxlen=_STEPS_TIMED)
        self._loss: float | None = None
        self._rung = len(program.rungs) - 1
        self._measured_peaks = dict(before.measured_peaks) if before else {}
        self._measured_counts: dict[int, int] = {}  # in this process alone: a new one measures again

    def start_on(self, rung: int) -> None:
        """Note the first rung of this run; a restart is not a switch."""
        self._rung = rung
        self._use(rung)

    def switched_to(self, rung: int) -> None:
        """Note a switch; a larger number is less memory."""
        if rung > self._rung:
            self._switches_down += 1
        else:
            self._switches_up += 1
        self.start_on(rung)

    def step_done(self, rung: int, loss: float, measured_peak_bytes: int | None) -> None:
        """Note one optimiser step."""
        self.step += 1
        self._loss = loss
        runs = 1
        if measured_peak_bytes is not None:
            runs = _RUNS_OF_A_MEASURED_STEP
            self._measured_counts[rung] = self.measured_count(rung) + 1
            self._measured_peaks[rung] = max(measured_peak_bytes, self._measured_peaks.get(rung, 0))
        self._meter.executed(self._rungs[rung].promise.step_picojoules, runs)

    def step_took(self, seconds: float) -> None:
        """Note how long a step took that was not measured; a measured one runs twice."""
        self._step_microseconds.append(int(seconds * 1e6))

    def measured_count(self, rung: int) -> int:
        """Return how many steps were measured on a rung."""
        return self._measured_counts.get(rung, 0)

    def carried_over(self) -> CarriedOver:
        """Return what the resume file keeps of this."""
        return CarriedOver(
            accuracy_before=self.accuracy_before,
            accuracy_now=self.accuracy_now,
            measured_peaks=self._measured_peaks,
            energy_picojoules=self._picojoules(),
            energy_source=self._meter.source,
            switches_down=self._switches_down,
            switches_up=self._switches_up,
            rungs_used=self._rungs_used,
        )

    def progress(self) -> Progress:
        """Return the report of the moment."""
        largest = self._rungs[0].promise.peak_bytes
        memory = Memory(
            planned_bytes=self._rungs[self._rung].promise.peak_bytes,
            measured_bytes=self._measured_peaks.get(self._rung),
            budget_bytes=largest if self.budget_bytes is None else self.budget_bytes,
        )
        return Progress(
            step=self.step,
            total_steps=self.total_steps,
            loss=self._loss,
            rung=self._rung,
            rungs=len(self._rungs),
            switches_down=self._switches_down,
            switches_up=self._switches_up,
            rungs_used=self._rungs_used[:_MOST_RUNGS_NAMED],
            peaks=self._peaks(),
            accuracy_before=self.accuracy_before,
            accuracy_now=self.accuracy_now,
            accuracy_after=self.accuracy_after,
            validation=self.validation,
            test=self.test,
            step_microseconds=int(median(self._step_microseconds)) if self._step_microseconds else None,
            memory=memory,
            energy=Energy(microjoules=self._picojoules() // PICOJOULES_PER_MICROJOULE, source=self._meter.source),
        )

    def _peaks(self) -> tuple[RungPeak, ...]:
        measured = sorted(self._measured_peaks.items())[:_MOST_RUNGS_NAMED]
        return tuple(
            RungPeak(rung=rung, planned_bytes=self._rungs[rung].promise.peak_bytes, measured_bytes=peak_bytes)
            for rung, peak_bytes in measured
        )

    def _picojoules(self) -> int:
        return self._energy_before + self._meter.picojoules()

    def _use(self, rung: int) -> None:
        if rung not in self._rungs_used:
            self._rungs_used = tuple(sorted((*self._rungs_used, rung)))
