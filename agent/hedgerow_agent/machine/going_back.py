"""Going back to an earlier adapter: because somebody asked, or because training could not go on.

The trainer is stopped first. Then candidates are tried, best first; a file that is missing or altered is skipped, never
loaded. Asked to go back, the device keeps what it runs when no candidate serves, says `Unable`, and goes on.
"""

from dataclasses import replace

from hedgerow_agent.machine.instructions import DropProgress, Instruction, StopTrainer, SwapAdapter
from hedgerow_agent.machine.state import ACTIVE, BASE, Adapter, GoingBack, MachineState, Purpose, Trainer
from hedgerow_agent.trainer.protocol import shortened
from hedgerow_plans.protocol.messages import Phase, RollbackReport, RollbackRequest, RollbackResult, RollbackTarget

Answer = tuple[MachineState, tuple[Instruction, ...]]


def ask(state: MachineState, request: RollbackRequest) -> MachineState:
    """Note a request to go back; one that cannot be met is answered at once and disturbs nothing."""
    candidates, impossible = candidates_for(state, request.to)
    if impossible:
        return _report(state, request.request_id, RollbackResult.UNABLE, impossible)
    state = _report(state, request.request_id, RollbackResult.PENDING, f"Going back to {request.to}.")
    return _begin(state, Purpose.REQUEST, candidates, hold=state.phase in ACTIVE)


def recover(state: MachineState, reason: str, message: str) -> MachineState:
    """Give up on this generation: back to the newest good checkpoint, or the base model, and stay there."""
    newest_first = tuple(one.id for one in reversed(state.checkpoints))
    state = state.ended_in(Phase.FAILED, reason, shortened(message))
    return _begin(state, Purpose.RECOVERY, (*newest_first, None), hold=True)


def supersede(state: MachineState, generation: int) -> MachineState:
    """Answer a request that is overtaken by new work: it will not be carried out any more."""
    if state.rollback is None or state.rollback.result is not RollbackResult.PENDING:
        return state
    message = f"Training generation {generation} was assigned before the device had gone back."
    return _report(state, state.rollback.request_id, RollbackResult.UNABLE, message)


def _begin(state: MachineState, purpose: Purpose, candidates: tuple[str | None, ...], *, hold: bool) -> MachineState:
    step = state.progress.step if state.progress else 0
    plan = GoingBack(purpose, candidates, hold, state.running_name, step)
    return replace(state, going_back=plan).with_volatile(swapping=None)


def candidates_for(state: MachineState, to: str) -> tuple[tuple[str | None, ...], str]:
    """Return what to try, best first, and why nothing can be tried if so."""
    ids = [one.id for one in state.checkpoints]
    have = f"this device has {', '.join(ids)}" if ids else "this device has no checkpoint of this job"
    if to == RollbackTarget.BASE:
        return (None,), ""
    if to == RollbackTarget.LAST:
        return tuple(reversed(ids)), "" if ids else f"There is no last checkpoint to go back to: {have}."
    if to == RollbackTarget.PREVIOUS:
        now = state.running_checkpoint
        before = ids[: ids.index(now)] if now in ids else []
        impossible = f"There is no good checkpoint before {state.running_name}, which runs now: {have}. Try base."
        return tuple(reversed(before)), "" if before else impossible
    return (to,), "" if to in ids else f"The checkpoint {to!r} cannot be gone back to: {have}."


def settle(state: MachineState) -> Answer:
    """Stop the trainer, then try the next candidate."""
    if state.volatile.trainer is Trainer.RUNNING:
        return state.with_volatile(trainer=Trainer.STOPPING), (StopTrainer(),)
    if state.volatile.trainer is Trainer.STOPPING or state.volatile.swapping is not None or state.going_back is None:
        return state, ()
    if not state.going_back.candidates:
        return _give_up(state), ()
    adapter = state.adapter(state.going_back.candidates[0])
    if adapter is None:  # no job was ever assigned, so the base model is all there is
        return _nothing_to_swap(state), ()
    return state.with_volatile(swapping=adapter), (SwapAdapter(adapter),)


def skip(state: MachineState, message: str) -> MachineState:
    """Pass over a candidate that cannot be loaded."""
    if state.going_back is None:
        return state
    rest = replace(state.going_back, candidates=state.going_back.candidates[1:])
    state = replace(state, going_back=rest).with_volatile(swapping=None)
    if state.rollback is not None and rest.purpose is Purpose.REQUEST:
        return replace(state, rollback=state.rollback.model_copy(update={"message": shortened(message)}))
    return state


def conclude(state: MachineState, adapter: Adapter) -> Answer:
    """Note that the device runs the adapter now, and hold it there."""
    if state.going_back is None or state.job is None:
        return state, ()
    plan = state.going_back
    step = next((one.step for one in state.checkpoints if one.id == adapter.checkpoint), 0)
    dropped = plan.hold and plan.from_step > step
    after = replace(_rewound(state, step), running=adapter, going_back=None).with_volatile(swapping=None)
    moved = after.running_name != plan.from_running
    if plan.purpose is Purpose.RECOVERY:
        state = _recovered(after, moved)
    else:
        state = _rolled_back(after, plan.from_running, moved=moved or dropped, hold=plan.hold)
    return state, (DropProgress(after.job or adapter.job, step),)


def _rolled_back(state: MachineState, before: str, *, moved: bool, hold: bool) -> MachineState:
    """Report how a request ended; a device that moved, or that would have gone on training, is held."""
    result = RollbackResult.COMPLETE if moved else RollbackResult.NO_STATE_CHANGE
    running = state.running_name
    said = f"Went back from {before} to {running}." if moved else f"The device already ran {running}."
    if state.rollback is not None:
        state = _report(state, state.rollback.request_id, result, said)
    state = replace(state, rollbacks=state.rollbacks + moved)
    if not (hold or moved):
        return state
    message = f"{said} It trains again when it is released, or for a new generation of the job."
    held = state.ended_in(Phase.HELD, "RolledBack", message)
    return held if held.assignment is not None else held.in_phase(Phase.IDLE, "NoAssignment")


def _recovered(state: MachineState, moved: bool) -> MachineState:
    message = shortened(f"{state.ended_message} The device runs {state.running_name}.")
    state = replace(state, rollbacks=state.rollbacks + moved, ended_message=message)
    return replace(state, message=message) if state.phase is Phase.FAILED else state


def _rewound(state: MachineState, step: int) -> MachineState:
    """Let the progress say where the device really is."""
    if state.progress is None or state.progress.step == step:
        return state
    accuracy = next((one.accuracy for one in state.checkpoints if one.step == step), None)
    # What completed training came to stays on record; `accuracy_now` and `running` say what the device has now.
    update = {"step": step, "loss": None, "accuracy_now": accuracy}
    return replace(state, progress=state.progress.model_copy(update=update))


def _give_up(state: MachineState) -> MachineState:
    """No candidate served: keep what runs, say so, and go on with the assignment."""
    state = replace(state, going_back=None)
    if state.rollback is not None:
        why = f"{state.rollback.message} The device keeps {state.running_name}."
        state = _report(state, state.rollback.request_id, RollbackResult.UNABLE, why)
    if state.phase in ACTIVE:
        return state.in_phase(Phase.PREPARING, "RollbackUnable", "Going back was not possible; training goes on.")
    return state


def _nothing_to_swap(state: MachineState) -> MachineState:
    state = replace(state, going_back=None)
    if state.rollback is None:
        return state
    return _report(
        state, state.rollback.request_id, RollbackResult.NO_STATE_CHANGE, "The device already ran the base model."
    )


def _report(state: MachineState, request_id: str, result: RollbackResult, message: str) -> MachineState:
    report = RollbackReport(
        request_id=request_id, result=result, running=state.running_name or BASE, message=shortened(message)
    )
    return replace(state, rollback=report)
