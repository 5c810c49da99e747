"""What the operator's documents change: the assignment, a rollback request, its release, refusals."""

from dataclasses import replace

from hedgerow_agent.machine import going_back
from hedgerow_agent.machine.events import DesiredAccepted, DesiredRefused
from hedgerow_agent.machine.instructions import DropCheckpoints, Instruction, StopFetching
from hedgerow_agent.machine.state import MachineState, key_of
from hedgerow_agent.trainer.protocol import shortened
from hedgerow_plans.protocol.messages import Assignment, Phase, Refusal

Answer = tuple[MachineState, tuple[Instruction, ...]]


def accept(state: MachineState, event: DesiredAccepted) -> Answer:
    """Take over a document; the same one again changes nothing."""
    known_request = state.rollback.request_id if state.rollback else None
    state = replace(state, observed_sequence=event.sequence, observed_sha256=event.sha256, desired=event.desired)
    state, instructions = _take_assignment(state, event.desired.assignment)
    request = event.desired.rollback
    if request is not None and not request.released and request.request_id != known_request:
        state = going_back.ask(state, request)
    return state, instructions


def settle_release(state: MachineState) -> Answer:
    """Let a held device go once its rollback is over and released, in whichever order the two came."""
    request = state.desired.rollback if state.desired else None
    if request is None or not request.released:
        return state, ()
    return _release(state, request.request_id)


def refuse(state: MachineState, event: DesiredRefused) -> MachineState:
    """Count a document that is not obeyed, and remember why."""
    count = state.refusal.count + 1 if state.refusal else 1
    return replace(state, refusal=Refusal(count=count, reason=event.reason, message=shortened(event.message)))


def _take_assignment(state: MachineState, assignment: Assignment | None) -> Answer:
    """Start, keep or drop the assignment; what a job came to here is remembered while it is not assigned."""
    if assignment is None:
        fetching = state.volatile.program_asked and not state.volatile.program_ready
        state = state.in_phase(Phase.IDLE, "NoAssignment")
        state = state.with_volatile(program_asked=False, program_ready=False, inputs_asked=False, inputs_ready=False)
        return state, (StopFetching(),) if fetching else ()
    if key_of(assignment) != state.job:
        return _begin(state, assignment), ()
    if state.phase is Phase.IDLE:
        state = state.in_phase(
            state.ended or Phase.PREPARING, state.ended_reason or "AssignedAgain", state.ended_message
        )
    return state, ()


def _begin(state: MachineState, assignment: Assignment) -> MachineState:
    """Forget the last job, apart from what runs, and prepare for this one."""
    if state.going_back is not None:
        state = going_back.supersede(state, assignment.generation)
    state = replace(
        state.in_phase(Phase.PREPARING, "Assigned", "Fetching the program and looking for weights and data."),
        job=key_of(assignment),
        job_program_digest=assignment.program.digest,
        job_weights=assignment.weights,
        job_seed=assignment.seed,
        ended=None,
        ended_reason="",
        ended_message="",
        checkpoints=(),
        progress=None,
        going_back=None,
        crashes=0,
        footprint_bytes=None,
    )
    return state.with_volatile(
        program_asked=False, program_ready=False, inputs_asked=False, inputs_ready=False, swapping=None
    )


def _release(state: MachineState, request_id: str) -> Answer:
    """Let a held device train again from where it was put; what came after that point is gone for good."""
    job, asked = state.job, state.rollback.request_id if state.rollback else None
    if job is None or state.ended is not Phase.HELD or asked != request_id:
        return state, ()
    step = next((one.step for one in state.checkpoints if one.id == state.running_checkpoint), 0)
    kept = tuple(one for one in state.checkpoints if one.step <= step)
    state = replace(state, ended=None, ended_reason="", ended_message="", checkpoints=kept, crashes=0)
    if state.assignment is not None:
        state = state.in_phase(Phase.PREPARING, "Released", f"Training goes on from {state.running_name}.")
    # Looked at again, because the files after this step are removed before anything else happens.
    return state.with_volatile(inputs_asked=False, inputs_ready=False), (DropCheckpoints(job, step),)
