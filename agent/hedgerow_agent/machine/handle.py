"""One event in, one state and its instructions out: react to the event, then settle what should be going on.

Reacting only notes facts. Settling is level-triggered: it looks at the state alone, so that a restart, a redelivery or
a lost answer needs no path of its own.
"""

from dataclasses import replace

from hedgerow_agent.machine import documents, going_back, training
from hedgerow_agent.machine.events import (
    AdapterSwapped,
    AdapterUnavailable,
    BudgetChanged,
    Connected,
    DesiredAccepted,
    DesiredRefused,
    Disconnected,
    Event,
    InputsImpossible,
    InputsMissing,
    InputsReady,
    ProgramDamaged,
    ProgramReady,
    Restarted,
    StorageFailed,
    StorageWorks,
    Tick,
    TrainerExited,
    TrainerSaid,
)
from hedgerow_agent.machine.instructions import (
    DropCheckpoints,
    DropProgress,
    ForgetOtherJobs,
    Instruction,
    PublishReported,
    PublishTelemetry,
    RemoveCheckpoints,
    SaveState,
)
from hedgerow_agent.machine.state import ACTIVE, MachineState, Volatile
from hedgerow_agent.machine.twin import twin_without_counters
from hedgerow_agent.trainer.protocol import shortened
from hedgerow_plans.protocol.messages import Phase

Answer = tuple[MachineState, tuple[Instruction, ...]]

_BEFORE_SAVING = (DropProgress, DropCheckpoints)
_AFTER_PUBLISHING = (PublishTelemetry, RemoveCheckpoints, ForgetOtherJobs)


def handle(state: MachineState, event: Event) -> Answer:
    """Return the next state and what is to be done, in the order in which it is to be done."""
    noted, reactions = _react(state, event)
    settled, consequences = settle(noted)
    return settled, _in_order(state, settled, event, (*reactions, *consequences))


def settle(state: MachineState) -> Answer:
    """Return what follows from the state alone: going back comes first, then the assignment."""
    first: tuple[Instruction, ...] = ()
    if state.going_back is not None:
        state, first = going_back.settle(state)
    if state.going_back is not None:
        return state, first
    state, released = documents.settle_release(state)
    state, then = training.settle(state)
    return state, (*first, *released, *then)


def _react(state: MachineState, event: Event) -> Answer:  # noqa: C901, PLR0911, PLR0912 - one line per event
    match event:
        case Restarted():
            return _restart(event), ()
        case Connected():
            return state.with_volatile(epoch=event.epoch, connected=True), ()
        case Disconnected():
            return state.with_volatile(connected=False), ()
        case DesiredAccepted():
            return documents.accept(state, event)
        case DesiredRefused():
            return documents.refuse(state, event), ()
        case ProgramReady() | ProgramDamaged():
            return training.note_program(state, event), ()
        case InputsReady() | InputsMissing() | InputsImpossible():
            return training.note_inputs(state, event), ()
        case TrainerSaid():
            return training.note_said(state, event.said)
        case TrainerExited():
            return training.note_exit(state, event.code), ()
        case AdapterSwapped():
            return _note_swap(state, event)
        case AdapterUnavailable():
            return _note_unavailable(state, event), ()
        case BudgetChanged():
            limits = {
                "cgroup_limit_bytes": event.cgroup_limit_bytes,
                "agent_footprint_bytes": event.agent_footprint_bytes,
            }
            return state.with_volatile(**limits), ()
        case StorageFailed():
            return state.with_volatile(storage_error=shortened(event.message)), ()
        case StorageWorks():
            return state.with_volatile(storage_error=""), ()
        case Tick():
            return _look_again(state)


def _look_again(state: MachineState) -> Answer:
    """Try once more what was missing or refused."""
    state = training.look_again(state)
    if not state.volatile.storage_error:
        return state, ()
    return state.with_volatile(swapping=None), (SaveState(),)


def _restart(event: Restarted) -> MachineState:
    """Take up what was stored; what the pointer on disk names is what really runs, whatever the state says."""
    state = replace(event.stored or MachineState(), volatile=Volatile(), running=event.active)
    if state.phase in ACTIVE:
        return state.in_phase(Phase.PREPARING, "Restarted", "The agent started again and takes up its assignment.")
    return state


def _note_swap(state: MachineState, event: AdapterSwapped) -> Answer:
    """Note what runs now: the end of going back, or a new checkpoint put to use."""
    if state.going_back is not None and state.volatile.swapping == event.adapter:
        return going_back.conclude(state, event.adapter)
    state = replace(state, running=event.adapter)
    return training.prune(state)


def _note_unavailable(state: MachineState, event: AdapterUnavailable) -> MachineState:
    """Forget a checkpoint that cannot be loaded; going back tries the next one."""
    if event.adapter.job == state.job:
        good = tuple(one for one in state.checkpoints if one.id != event.adapter.checkpoint)
        state = replace(state, checkpoints=good)
    if state.going_back is not None and state.volatile.swapping == event.adapter:
        return going_back.skip(state, event.message)
    return state


def _in_order(
    before: MachineState, after: MachineState, event: Event, wanted: tuple[Instruction, ...]
) -> tuple[Instruction, ...]:
    """Put saving and publishing where they belong; both happen only when there is something new."""
    changed = _durable(before) != _durable(after)
    news = isinstance(event, Connected) or twin_without_counters(before) != twin_without_counters(after)
    early = [one for one in wanted if isinstance(one, _BEFORE_SAVING)]
    late = [one for one in wanted if isinstance(one, _AFTER_PUBLISHING)]
    middle = [one for one in wanted if not isinstance(one, (SaveState, *_BEFORE_SAVING, *_AFTER_PUBLISHING))]
    saving: list[Instruction] = [SaveState()] if changed or SaveState() in wanted else []
    publishing: list[Instruction] = [PublishReported()] if news else []
    return (*early, *saving, *middle, *publishing, *late)


def _durable(state: MachineState) -> tuple[MachineState, object]:
    """Return what is worth writing: not the volatile part, nor counters that move with every batch."""
    return replace(state, volatile=Volatile(), progress=None), twin_without_counters(state).progress
