"""What decides the outcome of a run, so that no other run is gone on with."""

import hashlib
import os
from argparse import Namespace
from pathlib import Path

from hedgerow_agent.local.record import DATA, DATA_STAMP, PROGRAM, WEIGHTS, Record
from hedgerow_agent.local.wanted import Wanted
from hedgerow_plans import codec
from hedgerow_plans.protocol.messages import RateSchedule


def record_of(wanted: Wanted, options: Namespace) -> Record:
    """Return the record of a run that is wanted."""
    program = wanted.program
    facts = {
        "model": program.model,
        "method": program.method,
        "batch size": str(program.batch_size),
        "class": program.device_class,
        PROGRAM: codec.digest(wanted.encoded),
        WEIGHTS: wanted.weights.sha256,
        "seed": str(wanted.seed),
        "epochs": str(wanted.epochs),
        "learning rate": wanted.learning_rate,
        "schedule": _schedule(wanted.schedule),
        "augmentation": " ".join(wanted.augmentation) or "none",
        DATA: os.fsencode(options.data.resolve()).decode(errors="backslashreplace"),
        DATA_STAMP: _stamp(options.data),
        "stream": "no",
    }
    if options.stream:
        window = options.window or 1
        facts |= {"epochs": "one", DATA_STAMP: "grows", "stream": f"window {window} hop {options.hop or window}"}
    return Record(facts=facts, request=wanted.request)


def _schedule(schedule: RateSchedule | None) -> str:
    if schedule is None or schedule.kind == "constant":
        return "constant"
    return schedule.model_dump_json(exclude_defaults=True)


def _stamp(data: Path) -> str:
    """Return a digest of sizes and times: reading everything could take longer than training."""
    digest = hashlib.sha256()
    for file in _files(data):
        status = file.stat()
        digest.update(os.fsencode(f"{file.name} {status.st_size} {status.st_mtime_ns}\n"))
    return digest.hexdigest()


def _files(data: Path) -> list[Path]:
    if data.is_dir():
        return sorted(file for file in data.iterdir() if file.suffix in {".npz", ".npy", ".csv"})
    if data.suffix == ".npy":
        pair = [data.with_name(f"{data.stem[:-1]}{letter}.npy") for letter in "xy"]
        return [file for file in pair if file.exists()]
    return [data]
