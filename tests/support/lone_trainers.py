"""A trainer without an agent around it: files on a disk, and the message that starts it."""

import hashlib
from pathlib import Path

from hedgerow_agent.trainer.protocol import Start
from hedgerow_plans import codec
from hedgerow_plans.plan import Program
from support.devices import Device, base_weights


def lone_start(folder: Path, program: Program) -> Start:
    """Write what a job needs into a folder and return how an agent would ask for one epoch of it."""
    device = Device(folder / "device", "alone", 1883)
    device.write_files()
    encoded = codec.encode(program)
    (folder / "program.json").write_bytes(encoded)
    return Start(
        job_uid="job",
        generation=1,
        program_file=str(folder / "program.json"),
        program_digest=codec.digest(encoded),
        weights_file=str(device.folder / "models" / "base.safetensors"),
        weights_sha256=hashlib.sha256(base_weights()).hexdigest(),
        dataset_file=str(device.folder / "digits.npz"),
        folder=str(folder / "job"),
        epochs=1,
        seed=7,
        learning_rate="0.02",
        checkpoint_every_steps=20,
    )
