"""Finding what a job needs on this device: the base model, the data by its configured name, the backend asked for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hedgerow_agent.backends import BackendMissing, choose
from hedgerow_agent.files import sha256_of
from hedgerow_plans.protocol.messages import BackendName, WeightsReference

_FILE_URI = re.compile(r"^file:(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*\.safetensors)$")


@dataclass(frozen=True, slots=True)
class Found:
    """A file of this device."""

    file: Path


@dataclass(frozen=True, slots=True)
class NotYet:
    """Not there, or not right; it may come."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Never:
    """Only another configuration or another job can change this."""

    reason: str
    message: str


def find_weights(models_folder: Path, reference: WeightsReference) -> Found | NotYet | Never:
    """Return the base model's file if it is the one the job means; names cannot leave the folder."""
    named = _FILE_URI.match(reference.uri)
    if named is None:
        return Never(
            "WeightsUnsupported",
            f"The weights {reference.uri!r} cannot be had here: this agent takes file:NAME.safetensors from its models "
            "folder.",
        )
    file = models_folder / named["name"]
    digest = sha256_of(file)
    if digest is None:
        return NotYet("WeightsMissing", f"The weights {file} are not there; copy them to this device.")
    if digest != reference.sha256:
        return NotYet(
            "WeightsDiffer", f"The weights {file} have the sha256 {digest}, and the job wants {reference.sha256}."
        )
    return Found(file)


def find_dataset(datasets: Mapping[str, Path], name: str) -> Found | NotYet | Never:
    """Return the file or folder of a dataset that the configuration names."""
    if name not in datasets:
        known = ", ".join(sorted(datasets)) or "none"
        return Never("DatasetUnknown", f"This device has no dataset {name!r} (it has {known}); name it in [datasets].")
    file = datasets[name]
    if not file.exists():
        return NotYet("DatasetMissing", f"The dataset {name!r} should be in {file}, which is not there.")
    return Found(file)


def find_backend(asked: BackendName | None, environ: Mapping[str, str]) -> NotYet | None:
    """Return what keeps this device from computing as the job asks; a library may still be installed."""
    try:
        choose(asked, environ)
    except BackendMissing as missing:
        return NotYet("BackendMissing", str(missing))
    return None
