"""The chart's dashboards as data: every query they ask."""

import json
from pathlib import Path
from typing import Any

from support.repository import ROOT

FOLDER = ROOT / "helm/hedgerow/files/dashboards"
VARIABLES = {"$fleet": ".*", "$class": ".*"}


def load_dashboards() -> dict[str, dict[str, Any]]:
    """Return the dashboards by file name."""
    return {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def queries(folder: Path = FOLDER) -> list[str]:
    """Return every query of every panel, with the variables set to everything."""
    found = []
    for path in sorted(folder.glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            found += [_filled(target["expr"]) for target in panel["targets"]]
    return found


def _filled(query: str) -> str:
    for variable, value in VARIABLES.items():
        query = query.replace(variable, value)
    return query
