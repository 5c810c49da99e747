"""Working on an assignment: program, inputs, the trainer's life, its checkpoints and its crashes."""

from dataclasses import replace

from hedgerow_agent.budgets import BudgetInForce, combine
from hedgerow_agent.machine import going_back
from hedgerow_agent.machine.events import (
    InputsImpossible,
    InputsMissing,
    InputsReady,
    ProgramDamaged,
    ProgramReady,
)
from hedgerow_agent.machine.instructions import (
    FetchProgram,
    ForgetOtherJobs,
    Instruction,
    LocateInputs,
    PublishTelemetry,
    RemoveCheckpoints,
    StartTrainer,
    StopTrainer,
    SwapAdapter,
    TellTrainer,
)
from hedgerow_agent.machine.state import ACTIVE, CRASH_LIMIT, MachineState, Trainer, key_of
from hedgerow_agent.trainer import protocol
from hedgerow_plans.protocol.messages import Assignment, Phase, Progress, RollbackResult

Answer = tuple[MachineState, tuple[Instruction, ...]]


def budget_of(state: MachineState) -> BudgetInForce:
    """Return the budget in force for the arena."""
    footprint = state.volatile.agent_footprint_bytes + (state.footprint_bytes or 0)
    desired = state.desired
    return combine(desired.allowance_bytes, desired.override_bytes, state.volatile.cgroup_limit_bytes, footprint)


def settle(state: MachineState) -> Answer:
    """Bring the trainer to where the assignment wants it."""
    assignment = state.assignment if state.phase in ACTIVE else None
    known = state.volatile
    if known.trainer is Trainer.STOPPING:
        return state, ()
    if known.trainer is Trainer.RUNNING:
        if assignment is None or known.trainer_job != key_of(assignment):
            return state.with_volatile(trainer=Trainer.STOPPING), (StopTrainer(),)
        return _tell_budget(state)
    return (state, ()) if assignment is None else _prepare(state, assignment)


def _tell_budget(state: MachineState) -> Answer:
    """Tell the trainer its budget: first when it is ready, because only then is its footprint known."""
    budget = budget_of(state).bytes
    if not state.volatile.trainer_ready or state.volatile.told_budget == (budget,):
        return state, ()
    return state.with_volatile(told_budget=(budget,)), (TellTrainer(budget),)


def _prepare(state: MachineState, assignment: Assignment) -> Answer:
    """Ask for what is missing; start the trainer when nothing is."""
    known = state.volatile
    if known.program_ready and known.inputs_ready:
        newest = state.checkpoints[-1].id if state.checkpoints else None
        state = state.with_volatile(trainer=Trainer.RUNNING, trainer_job=state.job, trainer_error="")
        return state, (StartTrainer(assignment, newest),)
    asking: list[Instruction] = []
    if not known.program_asked:
        asking.append(FetchProgram(assignment.program))
    if not known.inputs_asked:
        asking.append(LocateInputs(assignment))
    return state.with_volatile(program_asked=True, inputs_asked=True), tuple(asking)


def note_program(state: MachineState, event: ProgramReady | ProgramDamaged) -> MachineState:
    """Note that the program came, or that its parts make no program."""
    if event.digest != state.job_program_digest or state.volatile.program_ready:
        return state
    if isinstance(event, ProgramReady):
        return state.with_volatile(program_ready=True)
    return _waiting(state.with_volatile(program_damaged=True), "ProgramDamaged", event.message)


def note_inputs(state: MachineState, event: InputsReady | InputsMissing | InputsImpossible) -> MachineState:
    """Note what was found on the device for the job; the checkpoints on disk are the ones there are."""
    if event.job != state.job or state.phase not in ACTIVE:
        return state
    if isinstance(event, InputsReady):
        return replace(state, checkpoints=event.checkpoints).with_volatile(inputs_ready=True)
    if isinstance(event, InputsMissing):
        return _waiting(state, event.reason, event.message)
    return state.ended_in(Phase.REJECTED, event.reason, protocol.shortened(event.message))


def look_again(state: MachineState) -> MachineState:
    """Let missing inputs be looked for again, and a program that came damaged be fetched again."""
    if state.phase not in ACTIVE:
        return state
    known = state.volatile
    return state.with_volatile(
        inputs_asked=known.inputs_asked and known.inputs_ready,
        program_asked=known.program_asked and not known.program_damaged,
        program_damaged=False,
    )


def note_said(state: MachineState, said: protocol.Said) -> Answer:  # noqa: PLR0911 - one line per message
    """Note a line of the trainer; one that is being stopped has nothing to say any more."""
    if state.volatile.trainer is not Trainer.RUNNING:
        return state, ()
    match said:
        case protocol.Ready():
            return _note_ready(state, said)
        case protocol.Progressed():
            return _training(state, said.progress), ()
        case protocol.Checkpointed():
            return _note_checkpoint(state, said)
        case protocol.Paused():
            return _note_paused(state, said), ()
        case protocol.Stalled():
            stalled = state.in_phase(Phase.PAUSED, "StorageFull", said.message)
            return replace(stalled, progress=said.progress), ()
        case protocol.Error():
            return state.with_volatile(trainer_error=said.message), ()
    return _note_end(state, said), ()


def note_exit(state: MachineState, code: int) -> MachineState:
    """Note that the trainer is gone; unless it was to go, that is a crash."""
    expected = state.volatile.trainer is Trainer.STOPPING
    last_words = state.volatile.trainer_error
    state = state.with_volatile(trainer=Trainer.ABSENT, trainer_job=None, trainer_error="")
    state = state.with_volatile(trainer_ready=False, told_budget=None)
    if expected or state.phase not in ACTIVE:
        return state
    state = replace(state, crashes=state.crashes + 1)
    why = f"The trainer ended with {_describe_exit(code)}" + (f": {last_words}" if last_words else ".")
    if state.crashes >= CRASH_LIMIT:
        generation = state.job.generation if state.job else 0
        return going_back.recover(state, "CrashLoop", f"{state.crashes} crashes on generation {generation}. {why}")
    return _waiting(state, "TrainerCrashed", f"{why} Crash {state.crashes} of {CRASH_LIMIT}; it is started again.")


def prune(state: MachineState) -> Answer:
    """Forget checkpoints beyond the number to keep, but never what runs or what was gone back to."""
    running = state.running
    if state.assignment is None or running is None or running.job != state.job or running.checkpoint is None:
        return state, ()
    precious = {running.checkpoint}
    if state.rollback is not None and state.rollback.result in (
        RollbackResult.COMPLETE,
        RollbackResult.NO_STATE_CHANGE,
    ):
        precious.add(state.rollback.running)
    newest = {one.id for one in state.checkpoints[-state.assignment.checkpoints_kept :]}
    kept = tuple(one for one in state.checkpoints if one.id in newest | precious)
    dropped = tuple(one.id for one in state.checkpoints if one not in kept)
    removing: tuple[Instruction, ...] = (RemoveCheckpoints(running.job, dropped),) if dropped else ()
    return replace(state, checkpoints=kept), (*removing, ForgetOtherJobs(running))


def _note_ready(state: MachineState, said: protocol.Ready) -> Answer:
    state = replace(_training(state, said.progress), footprint_bytes=said.footprint_bytes)
    state = state.with_volatile(trainer_ready=True)
    base = state.adapter(None)
    runs_a_delta = state.running is not None and state.running.checkpoint is not None
    if runs_a_delta or state.running == base or base is None:
        return state, ()
    return state, (SwapAdapter(base),)


def _note_checkpoint(state: MachineState, said: protocol.Checkpointed) -> Answer:
    others = tuple(one for one in state.checkpoints if one.id != said.checkpoint.id)
    in_order = tuple(sorted((*others, said.checkpoint), key=lambda one: one.step))
    state = replace(
        _training(state, said.progress), checkpoints=in_order, checkpoints_written=state.checkpoints_written + 1
    )
    adapter = state.adapter(said.checkpoint.id)
    return state, (PublishTelemetry(),) if adapter is None else (SwapAdapter(adapter), PublishTelemetry())


def _note_paused(state: MachineState, said: protocol.Paused) -> MachineState:
    message = (
        f"Nothing fits: the smallest rung needs {said.needed_bytes} bytes and the budget in force is "
        f"{budget_of(state)}. Training goes on by itself when the budget grows."
    )
    return replace(state.in_phase(Phase.PAUSED, "NothingFits", message), progress=said.progress)


def _note_end(state: MachineState, said: protocol.Complete | protocol.Rejected | protocol.Failed) -> MachineState:
    """Note that the trainer is through; it goes by itself now, and going is no crash."""
    state = state.with_volatile(trainer=Trainer.STOPPING)
    if isinstance(said, protocol.Complete):
        done = f"All {said.progress.total_steps} steps are done."
        return replace(state.ended_in(Phase.COMPLETED, "Completed", done), progress=said.progress)
    if isinstance(said, protocol.Rejected):
        return state.ended_in(Phase.REJECTED, said.reason, said.message)
    return going_back.recover(state, said.reason, said.message)


def _training(state: MachineState, progress: Progress) -> MachineState:
    if state.phase is not Phase.TRAINING:
        state = state.in_phase(Phase.TRAINING, "Training")
    return replace(state, progress=progress)


def _waiting(state: MachineState, reason: str, message: str) -> MachineState:
    return state.in_phase(Phase.PREPARING, reason, protocol.shortened(message))


def _describe_exit(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
