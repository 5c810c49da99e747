"""Short words for stories about the device's machine: documents, lines of the trainer, and a device that lives them."""

from dataclasses import dataclass, field

from hedgerow_agent.machine import MachineState, handle
from hedgerow_agent.machine import events as happened
from hedgerow_agent.machine import instructions as do
from hedgerow_agent.machine.state import STORED, Adapter, JobKey
from hedgerow_agent.trainer import protocol
from hedgerow_plans.protocol.messages import (
    Assignment,
    CheckpointReport,
    Desired,
    Energy,
    EnergySource,
    Memory,
    ProgramReference,
    Progress,
    RollbackRequest,
    WeightsReference,
)

DIGEST = "d" * 64
JOB = JobKey("job-a", 1)


def assigned(generation: int = 1, job: str = "job-a", kept: int = 3) -> Assignment:
    return Assignment(
        job_uid=job,
        job_name="drift",
        generation=generation,
        program=ProgramReference(digest=DIGEST, parts=1, compressed_bytes=10, encoded_bytes=20),
        weights=WeightsReference(uri="file:base.safetensors", sha256="e" * 64),
        dataset="digits",
        epochs=1,
        seed=7,
        learning_rate="0.1",
        checkpoint_every_steps=10,
        checkpoints_kept=kept,
    )


def progress(step: int = 0, rung: int = 0) -> Progress:
    return Progress(
        step=step,
        total_steps=100,
        rung=rung,
        rungs=3,
        switches_down=0,
        switches_up=0,
        memory=Memory(planned_bytes=1000, budget_bytes=2000),
        energy=Energy(microjoules=step, source=EnergySource.MODELLED),
    )


def checkpoint(step: int) -> CheckpointReport:
    return CheckpointReport(
        id=f"step-{step:06d}", step=step, sha256=f"{step:064x}", size_bytes=1, accuracy=step % 100 / 100
    )


def ready() -> happened.TrainerSaid:
    return happened.TrainerSaid(protocol.Ready(footprint_bytes=500, progress=progress()))


def checkpointed(step: int) -> happened.TrainerSaid:
    return happened.TrainerSaid(protocol.Checkpointed(checkpoint=checkpoint(step), progress=progress(step)))


def at_step(step: int) -> happened.TrainerSaid:
    return happened.TrainerSaid(protocol.Progressed(progress=progress(step)))


@dataclass
class StoryDevice:
    """A device whose disk and trainer obey at once, so that a story only tells what matters."""

    state: MachineState = field(default_factory=MachineState)
    done: list[do.Instruction] = field(default_factory=list)  # by the newest event and what followed from it
    stored: bytes = b""
    active: Adapter | None = None
    sequence: int = 0
    bad_files: set[str] = field(default_factory=set)
    files: dict[str, CheckpointReport] = field(default_factory=dict)
    trainer_stops_at_once: bool = True

    def happens(self, *events: happened.Event) -> "StoryDevice":
        """Live through events, each with everything that follows from it."""
        for event in events:
            self.done = []
            waiting = [event]
            while waiting:
                self._notice(waiting[0])
                self.state, instructions = handle(self.state, waiting.pop(0))
                for instruction in instructions:
                    self.done.append(instruction)
                    waiting += self._obey(instruction)
        return self

    def wants(self, desired: Desired) -> "StoryDevice":
        self.sequence += 1
        return self.happens(happened.DesiredAccepted(self.sequence, f"{self.sequence:064x}", desired))

    def assigned(self, generation: int = 1, job: str = "job-a", kept: int = 3) -> "StoryDevice":
        return self.wants(self.state.desired.model_copy(update={"assignment": assigned(generation, job, kept)}))

    def asked_back(self, to: str, request_id: str = "r1", *, released: bool = False) -> "StoryDevice":
        request = RollbackRequest(to=to, request_id=request_id, released=released)
        return self.wants(self.state.desired.model_copy(update={"rollback": request}))

    def trained(self, *steps: int) -> "StoryDevice":
        """Be assigned, start training, and write checkpoints at these steps."""
        self.assigned().happens(ready())
        return self.happens(*(checkpointed(step) for step in steps))

    def loses_power(self) -> "StoryDevice":
        """Start again from what was stored, whatever was going on."""
        stored = STORED.validate_json(self.stored) if self.stored else None
        return self.happens(happened.Restarted(stored, self.active))

    def did(self, kind: type[do.Instruction]) -> list[do.Instruction]:
        """Return what was done of one kind because of the newest event."""
        return [one for one in self.done if isinstance(one, kind)]

    def _notice(self, event: happened.Event) -> None:
        if isinstance(event, happened.TrainerSaid) and isinstance(event.said, protocol.Checkpointed):
            self.files[event.said.checkpoint.id] = event.said.checkpoint

    def _obey(self, instruction: do.Instruction) -> list[happened.Event]:
        match instruction:
            case do.SaveState():
                self.stored = STORED.dump_json(self.state, exclude={"volatile"})
            case do.FetchProgram():
                return [happened.ProgramReady(instruction.reference.digest)]
            case do.LocateInputs():
                key = JobKey(instruction.assignment.job_uid, instruction.assignment.generation)
                good = [one for name, one in self.files.items() if name not in self.bad_files and key == JOB]
                return [happened.InputsReady(key, tuple(sorted(good, key=lambda one: one.step)))]
            case do.StopTrainer() if self.trainer_stops_at_once:
                return [happened.TrainerExited(0)]
            case do.SwapAdapter():
                if instruction.adapter.checkpoint in self.bad_files:
                    return [happened.AdapterUnavailable(instruction.adapter, "Its file was altered.")]
                self.active = instruction.adapter
                return [happened.AdapterSwapped(instruction.adapter)]
            case do.DropCheckpoints():
                self.files = {name: one for name, one in self.files.items() if one.step <= instruction.after_step}
            case do.RemoveCheckpoints():
                for name in instruction.checkpoints:
                    del self.files[name]
        return []
