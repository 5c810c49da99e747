"""Whether every class of the selected devices has a program, and if not, what to change."""

from collections.abc import Sequence

from hedgerow_operator.decide.claims import OpenJob
from hedgerow_operator.decide.selection import describe
from hedgerow_operator.decide.standing import Member, Stand, unsupported
from hedgerow_operator.decide.wording import listed, plural
from hedgerow_operator.world import Impossible, Job, ProgramState, Ready, World
from hedgerow_plans.resources.conditions import ConditionStatus
from hedgerow_plans.resources.reasons import PlannedReason

Verdict = tuple[ConditionStatus, PlannedReason, str]


def unknown_model(job: Job, world: World) -> str | None:
    """Return what to write instead of a model that the zoo does not have."""
    if job.spec is None or job.spec.model.zoo in world.models:
        return None
    known = ", ".join(sorted(world.models))
    return f"The zoo has no model {job.spec.model.zoo!r}; set spec.model.zoo to one of: {known}."


def wanted_classes(members: Sequence[Member]) -> list[str]:
    """Return the classes for which a program is needed: those of approved devices with an agent that can run it."""
    return sorted(
        {m.device.spec.device_class for m in members if m.device.spec.approved and m.stand is not Stand.UNSUPPORTED}
    )


def judge_planned(entry: OpenJob, members: Sequence[Member], world: World) -> Verdict:
    """Return the `Planned` condition."""
    job = entry.job
    if problem := unknown_model(job, world):
        return ConditionStatus.FALSE, PlannedReason.UNKNOWN_MODEL, problem
    if not members:
        return ConditionStatus.UNKNOWN, PlannedReason.NO_DEVICE_MATCHES, _no_match(entry, world)
    if not any(member.device.spec.approved for member in members):
        return ConditionStatus.UNKNOWN, PlannedReason.NO_DEVICE_APPROVED, _none_approved(members)
    classes = wanted_classes(members)
    if not classes:
        return ConditionStatus.FALSE, PlannedReason.UNSUPPORTED_AGENT, _unsupported(members)
    return _judge_programs({name: world.programs.get((job.uid, name)) for name in classes}, members)


def _judge_programs(programs: dict[str, ProgramState | None], members: Sequence[Member]) -> Verdict:
    impossible = {name: state for name, state in programs.items() if isinstance(state, Impossible)}
    if impossible:
        text = " ".join(state.message for _, state in sorted(impossible.items())[:3])
        return ConditionStatus.FALSE, impossible[min(impossible)].reason, text
    ready = [state.plan for state in programs.values() if isinstance(state, Ready)]
    if len(ready) < len(programs):
        missing = [name for name, state in programs.items() if not isinstance(state, Ready)]
        text = f"{len(ready)} of {plural(len(programs), 'program')} ready; planning for {listed(missing)}."
        return ConditionStatus.UNKNOWN, PlannedReason.PLANNING_PROGRAMS, text
    text = f"{plural(len(ready), 'program')} for {plural(len(programs), 'device class')}: {listed(ready)}."
    if any(member.stand is Stand.UNSUPPORTED for member in members):
        text += " " + _unsupported(members)
    return ConditionStatus.TRUE, PlannedReason.PROGRAMS_READY, text


def _no_match(entry: OpenJob, world: World) -> str:
    return (
        f"None of {plural(len(world.devices), 'device')} in {world.fleet} has the labels that "
        f"spec.devices.selector asks for ({describe(entry.spec.devices.selector)}); "
        "label devices, or change the selector."
    )


def _none_approved(members: Sequence[Member]) -> str:
    names = [member.device.name for member in members]
    return (
        f"None of {plural(len(names), 'matching device')} is approved: {listed(names)}; "
        f"approve one with `kubectl hedgerow approve device/{min(names)}`."
    )


def _unsupported(members: Sequence[Member]) -> str:
    reasons = {m.device.name: unsupported(m.device) for m in members if m.stand is Stand.UNSUPPORTED}
    first = min(reasons)
    return (
        f"No work for {plural(len(reasons), 'device')} with another agent: {listed(reasons)}; "
        f"{first}: {reasons[first]}; "
        "install an agent of the operator's version."
    )
