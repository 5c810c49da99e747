"""Sample manifests: good ones, and bad ones that say in their first lines how they are refused."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hedgerow_plans.resources.common import Resource
from hedgerow_plans.resources.kinds import KINDS

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "tests" / "data" / "manifests"
MODELS: dict[str, type[Resource]] = {kind.name: kind.model for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Manifest:
    """One file."""

    path: Path
    body: dict[str, Any]

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def model(self) -> type[Resource]:
        return MODELS[self.body["kind"]]

    def golden(self, who: str) -> str:
        """Return what `who` answers to a bad manifest, from its first lines."""
        prefix = f"# {who}: "
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return next(line.removeprefix(prefix) for line in lines if line.startswith(prefix))


def manifests(folder: str) -> list[Manifest]:
    """Return the manifests of a folder, sorted by name."""
    paths = sorted((MANIFESTS / folder).glob("*.yaml"))
    return [Manifest(path, yaml.safe_load(path.read_text(encoding="utf-8"))) for path in paths]


def manifest(folder: str, name: str) -> Manifest:
    """Return one manifest."""
    return next(found for found in manifests(folder) if found.name == name)
