"""When a job's training is a new one: its generation changes with what is trained, not with every edit.

Kubernetes counts up a job's generation for any change of its specification. Suspending a job or asking it to roll back
must not make devices train again from the start, so the generation that devices see is the one in which the training
itself last changed. A request to roll back belongs to the generation in which it was first seen.
"""

import dataclasses

from hedgerow_operator.world import Job, JobMemory, ProgramState, Ready
from hedgerow_plans.resources.training_job import TrainingJobSpec, training_digest


def remembered(job: Job, spec: TrainingJobSpec) -> JobMemory:
    """Return what is to be remembered of a job now: the same as before unless something new was asked for."""
    memory = _generation(job, spec)
    request_id = spec.rollback.request.request_id if spec.rollback and spec.rollback.request else None
    if request_id is None or request_id == memory.rollback_request_id:
        return memory
    return dataclasses.replace(memory, rollback_request_id=request_id, rollback_generation=memory.generation)


def _generation(job: Job, spec: TrainingJobSpec) -> JobMemory:
    digest, memory = training_digest(spec), job.memory
    if memory is None and job.status.training_digest == digest:  # the annotation was removed; the status still knows
        return JobMemory(job.status.training_generation, digest)
    if memory is None:
        return JobMemory(max(job.generation, 1), digest)
    if memory.training_digest == digest:
        return memory
    generation = max(job.generation, memory.generation + 1)
    return dataclasses.replace(memory, generation=generation, training_digest=digest, programs=(), digests=())


def with_programs(memory: JobMemory, programs: dict[str, ProgramState]) -> JobMemory:
    """Settle which program each class follows, so that editing a class does not change a training that runs.

    Its digest too: whoever may write ExecutionPlans must not be able to put another program under the name.
    """
    ready = {name: program for name, program in programs.items() if isinstance(program, Ready)}
    settled = dict(memory.programs) | {name: program.plan for name, program in ready.items()}
    digests = dict(memory.digests) | {name: program.reference.digest for name, program in ready.items()}
    return dataclasses.replace(memory, programs=tuple(sorted(settled.items())), digests=tuple(sorted(digests.items())))
