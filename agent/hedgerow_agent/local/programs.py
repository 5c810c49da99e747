"""Which program a job is run by: one that is named, one that was planned before, or a new one."""

from argparse import Namespace
from pathlib import Path

from hedgerow_agent.local.manifests import Manifests, catalogue_class, read_class, read_program
from hedgerow_agent.local.planning import Kept, Planned, board, plan, quantity
from hedgerow_agent.local.problems import Problem
from hedgerow_agent.local.runs import RunFolder
from hedgerow_plans import asked
from hedgerow_plans.plan import Program
from hedgerow_plans.resources.device_class import DeviceClass
from hedgerow_plans.resources.training_job import TrainingJob


def program_of(options: Namespace, manifests: Manifests, folder: Path) -> tuple[Planned, int | None]:
    """Return the program of a job, and the bytes that may be used now; None for those of its first rung."""
    if options.program is not None:
        encoded, program = read_program(options.program)
        _check(options.program, program, manifests.job)
        return Planned(encoded, program, None), budget_of(options)
    target = board(_class(options) or manifests.device_class, options.budget)
    kept: Kept = (lambda _request: None) if options.fresh else RunFolder(folder).planned
    return plan(manifests.job.spec, target, kept), target.spec.allowance_bytes


def budget_of(options: Namespace) -> int | None:
    """Return the bytes of --budget beside a program."""
    return quantity(options.budget) if options.budget else None


def _class(options: Namespace) -> DeviceClass | None:
    if options.class_file is not None:
        return read_class(options.class_file)
    return catalogue_class(options.device_class) if options.device_class else None


def _check(file: Path, program: Program, job: TrainingJob) -> None:
    """Raise a sentence about a program that is not the job's."""
    spec = job.spec
    has = (program.model, program.method, program.batch_size)
    wants = (spec.model.zoo, asked.method(spec.method).name, spec.training.batch_size)
    if has != wants:
        raise Problem(
            f"The program {file} trains {_words(*has)}, and the job {job.metadata.name} wants {_words(*wants)}; leave "
            "--program out to plan one, or change the job."
        )


def _words(model: str, method: str, batch_size: int) -> str:
    return f"{model} by {method} in batches of {batch_size}"
