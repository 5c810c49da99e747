"""The rung a job runs on: down at once when the budget asks for it, up with patience, and waiting where none fits."""

from hedgerow_agent.core.executor import Executor
from hedgerow_agent.trainer import protocol
from hedgerow_agent.trainer.conversation import Talk
from hedgerow_agent.trainer.rung import choose_rung, roomiest_fit
from hedgerow_agent.trainer.tally import Tally
from hedgerow_plans.plan import Program


class Switching:
    """Follows the newest budget at batch ends."""

    def __init__(self, program: Program, patience_batches: int, talk: Talk, tally: Tally) -> None:
        self._peaks = tuple(plan.promise.peak_bytes for plan in program.rungs)
        self._patience_batches = patience_batches
        self._talk, self._tally = talk, tally
        self._batches_since_fit = 0

    def follow(self, executor: Executor) -> None:
        """Switch to the rung that the budget asks for; wait while there is none."""
        budget = self._talk.budget_bytes
        best = roomiest_fit(self._peaks, budget)
        could_go_up = best is not None and best < executor.rung
        self._batches_since_fit = self._batches_since_fit + 1 if could_go_up else 0
        chosen = choose_rung(self._peaks, budget, executor.rung, self._batches_since_fit, self._patience_batches)
        if chosen is None:
            # Give back what can be given back, then wait.
            self._switch(executor, len(self._peaks) - 1)
            chosen = self.await_fit()
        self._switch(executor, chosen)

    def await_fit(self) -> int:
        """Return a rung that fits, after waiting for a budget that allows one if need be."""
        waited = False
        while (rung := roomiest_fit(self._peaks, self._talk.budget_bytes)) is None:
            budget = self._tally.budget_bytes = self._talk.budget_bytes
            needed, progress = self._peaks[-1], self._tally.progress()
            self._talk.say(protocol.Paused(needed_bytes=needed, budget_bytes=budget or 0, progress=progress))
            self._talk.await_budget()
            waited = True
        if waited:
            self._talk.say_progress()
        return rung

    def _switch(self, executor: Executor, rung: int) -> None:
        if rung == executor.rung:
            return
        executor.switch(rung)
        self._batches_since_fit = 0
        self._tally.switched_to(rung)
        self._talk.say_progress()
