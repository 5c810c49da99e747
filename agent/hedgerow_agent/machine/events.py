"""What can happen to a device."""

from dataclasses import dataclass

from hedgerow_agent.machine.state import Adapter, JobKey, MachineState
from hedgerow_agent.trainer.protocol import Said
from hedgerow_plans.protocol.messages import CheckpointReport, Desired


@dataclass(frozen=True, slots=True)
class Restarted:
    """The agent has just started: with what it stored, if anything, and with what it really runs."""

    stored: MachineState | None
    active: Adapter | None


@dataclass(frozen=True, slots=True)
class Connected:
    """The broker accepted the connection of this epoch."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection is gone; work goes on."""


@dataclass(frozen=True, slots=True)
class DesiredAccepted:
    """A signed document that is newer than the last one, or the same one again."""

    sequence: int
    sha256: str  # of the envelope, so that its redelivery is known as such
    desired: Desired


@dataclass(frozen=True, slots=True)
class DesiredRefused:
    """A document that is not to be obeyed."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ProgramReady:
    """The program with this digest is in the store."""

    digest: str


@dataclass(frozen=True, slots=True)
class ProgramDamaged:
    """The parts that came do not make the program; others may still come."""

    digest: str
    message: str


@dataclass(frozen=True, slots=True)
class InputsReady:
    """Weights and data are there, and these checkpoints of the job are good."""

    job: JobKey
    checkpoints: tuple[CheckpointReport, ...]


@dataclass(frozen=True, slots=True)
class InputsMissing:
    """Weights or data are not there yet; they are looked for again."""

    job: JobKey
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class InputsImpossible:
    """This device can never have what the job needs."""

    job: JobKey
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class TrainerSaid:
    """A line from the trainer."""

    said: Said


@dataclass(frozen=True, slots=True)
class TrainerExited:
    """The trainer is gone; negative codes are signals."""

    code: int


@dataclass(frozen=True, slots=True)
class AdapterSwapped:
    """The pointer to what the device runs names this adapter now."""

    adapter: Adapter


@dataclass(frozen=True, slots=True)
class AdapterUnavailable:
    """The adapter's file is missing or not what was written; the device keeps what it runs."""

    adapter: Adapter
    message: str


@dataclass(frozen=True, slots=True)
class BudgetChanged:
    """What the machine itself allows has changed."""

    cgroup_limit_bytes: int | None
    agent_footprint_bytes: int


@dataclass(frozen=True, slots=True)
class StorageFailed:
    """The disk refused a write, most likely because it is full; it is tried again."""

    message: str


@dataclass(frozen=True, slots=True)
class StorageWorks:
    """The disk takes writes again."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Some seconds have passed: look again for what was missing."""


Event = (
    Restarted
    | Connected
    | Disconnected
    | DesiredAccepted
    | DesiredRefused
    | ProgramReady
    | ProgramDamaged
    | InputsReady
    | InputsMissing
    | InputsImpossible
    | TrainerSaid
    | TrainerExited
    | AdapterSwapped
    | AdapterUnavailable
    | BudgetChanged
    | StorageFailed
    | StorageWorks
    | Tick
)
