"""Carries out what the machine asks for: files, program parts, the trainer. What became of it comes back as events."""

import os
from collections.abc import Callable

from hedgerow_agent import inputs
from hedgerow_agent.config import AgentConfig
from hedgerow_agent.fetching import ProgramFetch
from hedgerow_agent.machine import instructions as do
from hedgerow_agent.machine.events import (
    AdapterSwapped,
    AdapterUnavailable,
    Event,
    InputsImpossible,
    InputsMissing,
    InputsReady,
    ProgramDamaged,
    ProgramReady,
)
from hedgerow_agent.machine.state import key_of
from hedgerow_agent.runner import TrainerProcess
from hedgerow_agent.session import Session
from hedgerow_agent.store import Store
from hedgerow_agent.trainer.protocol import Budget, Start
from hedgerow_plans.protocol.messages import Assignment, ProgramReference
from hedgerow_plans.protocol.refusals import Refused
from hedgerow_plans.protocol.topics import program_topic


class Performer:
    """The hands of one device."""

    def __init__(self, config: AgentConfig, store: Store, session: Session, deliver: Callable[[Event], None]) -> None:
        self._config, self._store, self._session, self._deliver = config, store, session, deliver
        self._fetch: ProgramFetch | None = None
        self._trainer: TrainerProcess | None = None

    def perform(self, instruction: do.Instruction) -> list[Event]:  # noqa: C901 - one line per instruction
        """Carry out one instruction and return what is known at once."""
        match instruction:
            case do.FetchProgram():
                return self._fetch_program(instruction.reference)
            case do.LocateInputs():
                return [self._locate(instruction.assignment)]
            case do.SwapAdapter():
                problem = self._store.swap_adapter(instruction.adapter)
                done, failed = AdapterSwapped(instruction.adapter), AdapterUnavailable(instruction.adapter, problem)
                return [failed if problem else done]
            case do.StopFetching():
                self._stop_fetching()
            case do.StartTrainer():
                self._trainer = TrainerProcess(self._describe_start(instruction), self._deliver)
            case do.TellTrainer() if self._trainer is not None:
                self._trainer.tell(Budget(budget_bytes=instruction.budget_bytes))
            case do.StopTrainer() if self._trainer is not None:
                self._trainer.stop(self._config.timing.stop_seconds)
            case do.DropProgress():
                self._store.checkpoints(instruction.job).drop_progress(instruction.after_step)
            case do.DropCheckpoints():
                self._store.checkpoints(instruction.job).drop_after(instruction.after_step)
            case do.RemoveCheckpoints():
                folder = self._store.checkpoints(instruction.job)
                for checkpoint in instruction.checkpoints:
                    folder.discard(checkpoint)
            case do.ForgetOtherJobs():
                self._store.forget_others(instruction.running.job, instruction.running.program_digest)
        return []

    def take_part(self, digest: str, part: int, content: bytes) -> list[Event]:
        """Take one part of the program that is being fetched."""
        if self._fetch is None:
            return []
        result = self._fetch.add(digest, part, content)
        if result is None:
            return []
        if isinstance(result, Refused):
            return [ProgramDamaged(digest, result.message)]
        try:
            self._store.save_program(result)
        except OSError as error:
            return [ProgramDamaged(digest, f"The program cannot be stored: {error}. It is fetched again.")]
        self._stop_fetching()
        return [ProgramReady(digest)]

    def close(self) -> None:
        """End the trainer."""
        if self._trainer is not None:
            self._trainer.close(self._config.timing.stop_seconds)

    def _fetch_program(self, reference: ProgramReference) -> list[Event]:
        limit = self._config.limits.program_bytes
        self._stop_fetching()
        if self._store.has_program(reference.digest):
            return [ProgramReady(reference.digest)]
        if reference.encoded_bytes > limit:
            message = f"The program has {reference.encoded_bytes} bytes, and this device takes at most {limit}."
            return [ProgramDamaged(reference.digest, message)]
        self._fetch = ProgramFetch(reference, limit)
        digest, fleet = reference.digest, self._config.fleet
        self._session.want(program_topic(fleet, digest, part) for part in range(reference.parts))
        return []

    def _stop_fetching(self) -> None:
        self._fetch = None
        self._session.want(())

    def _locate(self, assignment: Assignment) -> InputsReady | InputsMissing | InputsImpossible:
        job = key_of(assignment)
        for found in (
            inputs.find_dataset(self._config.datasets, assignment.dataset),
            inputs.find_weights(self._config.models.folder, assignment.weights),
            inputs.find_backend(assignment.backend, os.environ),
        ):
            if isinstance(found, inputs.Never):
                return InputsImpossible(job, found.reason, found.message)
            if isinstance(found, inputs.NotYet):
                return InputsMissing(job, found.reason, found.message)
        return InputsReady(job, self._store.checkpoints(job).good())

    def _describe_start(self, instruction: do.StartTrainer) -> Start:
        assignment, limits = instruction.assignment, self._config.limits
        weights = inputs.find_weights(self._config.models.folder, assignment.weights)
        weights_file = weights.file if isinstance(weights, inputs.Found) else self._config.models.folder / "gone"
        return Start(
            job_uid=assignment.job_uid,
            generation=assignment.generation,
            program_file=str(self._store.program_file(assignment.program.digest)),
            program_digest=assignment.program.digest,
            weights_file=str(weights_file),
            weights_sha256=assignment.weights.sha256,
            dataset_file=str(self._config.datasets[assignment.dataset]),
            folder=str(self._store.checkpoints(key_of(assignment)).path),
            epochs=assignment.epochs,
            seed=assignment.seed,
            learning_rate=assignment.learning_rate,
            schedule=assignment.schedule,
            backend=assignment.backend,
            augment=assignment.augmentation,
            checkpoint_every_steps=assignment.checkpoint_every_steps,
            from_checkpoint=instruction.from_checkpoint,
            hysteresis_batches=limits.hysteresis_batches,
            measured_steps=limits.measured_steps,
            progress_seconds=self._config.timing.progress_seconds,
            rest_between_steps_seconds=limits.rest_between_steps_seconds,
        )
