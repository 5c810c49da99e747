"""crds/ is what the models say, and what the models say is something an API server can take."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from pydantic import Field

from hedgerow_plans.resources.common import Part
from hedgerow_plans.resources.crd import custom_resource_definition, structural_schema
from hedgerow_plans.resources.kinds import KINDS, Kind
from support.manifests import ROOT


def check(root: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(root / "hack" / "crds"), "--check"], capture_output=True, text=True, check=False
    )


@pytest.fixture
def copied_root(tmp_path: Path) -> Path:
    (tmp_path / "hack").mkdir()
    shutil.copy(ROOT / "hack" / "crds", tmp_path / "hack" / "crds")
    for folder in ("crds", "helm/hedgerow/files/crds"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def test_the_committed_files_equal_what_the_models_generate() -> None:
    assert (check(ROOT).returncode, check(ROOT).stderr) == (0, "")


def test_a_changed_file_a_missing_file_and_a_file_too_many_are_all_noticed(copied_root: Path) -> None:
    crds = copied_root / "crds"
    (crds / "devices.yaml").write_text((crds / "devices.yaml").read_text().replace("maxLength: 128", "maxLength: 129"))
    (crds / "trainingjobs.yaml").unlink()
    (crds / "gadgets.yaml").write_text("kind: Gadget\n")

    checked = check(copied_root)

    assert checked.returncode == 1
    assert "crds/devices.yaml, crds/gadgets.yaml, crds/trainingjobs.yaml" in checked.stderr


def test_writing_again_repairs_the_folder_and_keeps_its_readme(copied_root: Path) -> None:
    (copied_root / "crds" / "devices.yaml").write_text("")
    (copied_root / "crds" / "gadgets.yaml").write_text("kind: Gadget\n")

    subprocess.run([sys.executable, str(copied_root / "hack" / "crds")], check=True)

    assert check(copied_root).returncode == 0
    assert (copied_root / "crds" / "README.md").exists()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_is_described_and_bounded(kind: Kind) -> None:
    version = custom_resource_definition(kind)["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    for path, field in walk("spec", schema["properties"]["spec"]):
        assert field.get("description") or path.endswith("]"), f"{kind.name}.{path} has no description"
        assert is_bounded(field), f"{kind.name}.{path} has no bound: {field}"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_column_and_selectable_field_reads_a_field_that_exists(kind: Kind) -> None:
    version = custom_resource_definition(kind)["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    known = {f".{path}" for part in ("spec", "status") for path, _ in walk(part, schema["properties"][part])}
    paths = [column["jsonPath"] for column in version["additionalPrinterColumns"]]
    paths += [field["jsonPath"] for field in version.get("selectableFields", [])]
    for path in paths:
        plain = path.replace("[?(@.type=='Succeeded')]", "[]")
        assert plain in known | {".metadata.creationTimestamp"}, f"{kind.name} has no {path}"


def test_short_names_are_free_and_different() -> None:
    short = [name for kind in KINDS for name in kind.short_names]
    taken = {"po", "svc", "deploy", "ds", "cm", "ns", "no", "ep", "ev", "sa", "pv", "pvc", "pc", "crd", "sc", "pdb"}
    assert len(set(short)) == len(short)
    assert not taken & set(short)


def test_the_files_are_readable_yaml_of_one_document_each() -> None:
    for kind in KINDS:
        document = yaml.safe_load((ROOT / "crds" / f"{kind.plural}.yaml").read_text())
        assert document["metadata"]["name"] == f"{kind.plural}.hedgerow.dev"


def test_a_model_that_no_structural_schema_can_hold_is_an_error_and_not_a_surprise() -> None:
    class Union(Part):
        either: int | str = Field(description="One of two.")

    class Constant(Part):
        fixed: Literal["x"] = Field(description="Always the same.")

    with pytest.raises(ValueError, match=r"has no unions: 'One of two\.'"):
        structural_schema(Union)
    with pytest.raises(ValueError, match=r"has no const: 'Always the same\.'"):
        structural_schema(Constant)


def walk(path: str, schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(f"{path}.{name}", child)
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            yield from walk(f"{path}[]", schema[inner])


def is_bounded(field: dict[str, Any]) -> bool:
    match field.get("type"):
        case "string":
            return "enum" in field or "maxLength" in field
        case "integer":
            return "minimum" in field and "maximum" in field
        case "array":
            return "maxItems" in field
        case "object":
            return "additionalProperties" not in field or "maxProperties" in field
        case "boolean":
            return True
    return bool(field.get("x-kubernetes-int-or-string")) and "maxLength" in field
