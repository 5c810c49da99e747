"""Everything a job needs, read and checked before an arena is built: program, weights, data.

What does not fit raises `Unfit` with a reason and a sentence; trying again would not help.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from hedgerow_agent.core.data import Batches, Dataset, load_dataset, split
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.samples import sample_shape
from hedgerow_agent.files import read_bounded, sha256_of
from hedgerow_agent.trainer.protocol import DataRead, Start
from hedgerow_agent.weights import Array, UnreadableTensors, map_tensors
from hedgerow_plans import codec
from hedgerow_plans.plan import KERNEL_TABLE, Program
from hedgerow_plans.verify import verify_program


class Unfit(Exception):  # noqa: N818 - reads as what it says of the job
    """This device cannot do this job."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def load_program(file: Path, digest: str) -> Program:
    """Return a program that was decoded, belongs to this agent, and verifies."""
    encoded = read_bounded(file, codec.MOST_BYTES) or b""
    if codec.digest(encoded) != digest:
        raise Unfit("ProgramDamaged", f"The program in {file} is not the one with the digest {digest}.")
    try:
        program = codec.decode(encoded)
    except codec.MalformedProgram as error:
        raise Unfit("ProgramMalformed", str(error)) from None
    if program.kernel_table != KERNEL_TABLE:
        raise Unfit(
            "KernelTableUnsupported",
            f"The program was planned for kernel table {program.kernel_table}, and this agent has {KERNEL_TABLE}.",
        )
    violations = verify_program(program)
    if violations:
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        raise Unfit("PlanViolation", f"The program does not verify: {violations[0]}{more}")
    return program


NO_WEIGHTS_SHA256 = hashlib.sha256().hexdigest()
"""What stands for the weights of a model that starts from its seed."""


def load_weights(file: Path | None, sha256: str) -> Mapping[str, Array]:
    """Return the base model's tensors, mapped from the file; none without one."""
    if file is None:
        return {}
    found = sha256_of(file)
    if found != sha256:
        raise Unfit("WeightsDiffer", f"The weights {file} have the sha256 {found}, and the job wants {sha256}.")
    try:
        return map_tensors(file)
    except UnreadableTensors as error:
        raise Unfit("WeightsUnreadable", str(error)) from None


def load_data(path: Path, program: Program, folder: Path) -> Dataset:
    """Return the device's own data, a file or a folder; copies that it needs go into `folder` and vanish."""
    try:
        return load_dataset(path, sample_shape(program), folder)
    except BadInput as error:
        raise Unfit("DatasetUnusable", str(error)) from None


def total_steps(program: Program, dataset: Dataset, start: Start) -> int:
    """Return the steps of the whole job, before there is an arena to run them in."""
    rows = split(len(dataset.x), start.seed).train
    return Batches(rows, program.batch_size, start.seed).per_epoch * start.epochs


def data_read(dataset: Dataset) -> DataRead:
    """Return what reading the dataset took; nothing is held, as it stays in storage and orders of rows are computed."""
    reading = dataset.reading
    return DataRead(samples=len(dataset.x), at_once_bytes=reading.at_once_bytes, copied_bytes=reading.copied_bytes)
