"""Manifests and programs in files: which job is meant, for which class of devices."""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import yaml

from hedgerow_agent.files import read_bounded
from hedgerow_agent.local.problems import Problem
from hedgerow_plans import catalogue, codec
from hedgerow_plans.plan import Program
from hedgerow_plans.resources.common import Resource
from hedgerow_plans.resources.device_class import DeviceClass
from hedgerow_plans.resources.parsing import Unparsable, parse_resource
from hedgerow_plans.resources.training_job import TrainingJob

MANIFEST_LIMIT_BYTES = 1 << 20
R = TypeVar("R", bound=Resource)


@dataclass(frozen=True, slots=True)
class Manifests:
    """What a file of manifests holds: one job, and perhaps the class to plan it for."""

    job: TrainingJob
    device_class: DeviceClass | None


def is_program(file: Path) -> bool:
    """Whether a file is an encoded program rather than a manifest."""
    try:
        with file.open("rb") as stream:
            head = stream.read(4096)
    except OSError as error:
        raise Problem(f"{file} cannot be read: {error.strerror}. Give a TrainingJob or a program file.") from None
    return head.startswith(b'{"batchSize":')


def read_program(file: Path) -> tuple[bytes, Program]:
    """Return the bytes of a program file and what they mean; whether it verifies is seen when it is loaded."""
    content = read_bounded(file, codec.MOST_BYTES)
    if content is None:
        raise Problem(f"The program {file} cannot be read, or has more than {codec.MOST_BYTES} bytes.")
    try:
        return content, codec.decode(content)
    except codec.MalformedProgram as error:
        raise Problem(f"The program {file} cannot be used. {error}") from None


def read_manifests(file: Path) -> Manifests:
    """Return the job of a file, and a DeviceClass that stands beside it."""
    bodies = _documents(file)
    jobs = [body for body in bodies if body.get("kind") == "TrainingJob"]
    if len(jobs) != 1:
        raise Problem(f"{file} holds {len(jobs)} objects of kind TrainingJob; give it exactly one.")
    classes = [body for body in bodies if body.get("kind") == "DeviceClass"]
    return Manifests(_parsed(TrainingJob, jobs[0]), _parsed(DeviceClass, classes[0]) if classes else None)


def read_class(file: Path) -> DeviceClass:
    """Return the class in a file of its own."""
    classes = [body for body in _documents(file) if body.get("kind") == "DeviceClass"]
    if len(classes) != 1:
        raise Problem(f"{file} holds {len(classes)} objects of kind DeviceClass; give it exactly one.")
    return _parsed(DeviceClass, classes[0])


def catalogue_class(name: str) -> DeviceClass:
    """Return a class of the catalogue."""
    files = {file.name.removesuffix(".yaml"): file for file in resources.files(catalogue).iterdir()}
    if name not in files or not files[name].name.endswith(".yaml"):
        known = ", ".join(sorted(stem for stem, file in files.items() if file.name.endswith(".yaml")))
        raise Problem(f"There is no class {name!r} in the catalogue; known are {known}. Or write --class-file FILE.")
    return _parsed(DeviceClass, yaml.safe_load(files[name].read_text(encoding="utf-8")))


def _documents(file: Path) -> list[dict[str, Any]]:
    content = read_bounded(file, MANIFEST_LIMIT_BYTES)
    if content is None:
        raise Problem(f"{file} cannot be read, or has more than {MANIFEST_LIMIT_BYTES} bytes; give a manifest.")
    try:
        found = list(yaml.safe_load_all(content))
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise Problem(f"{file} is not YAML ({' '.join(str(error).split())[:200]}).") from None
    return [body for body in found if isinstance(body, dict)]


def _parsed(kind: type[R], body: dict[str, Any]) -> R:
    parsed = parse_resource(kind, body)
    if isinstance(parsed, Unparsable):
        raise Problem(parsed.message)
    return parsed
