"""Which versions are read, and which are good enough."""

import pytest

from provision.golang import MODULES
from provision.programs import BUNDLES, PROGRAMS, GoBundle
from provision.versions import Accepted, go_directive, parse_version


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("v1.34.4", (1, 34, 4)),
        ("1.32.4-dispatcher", (1, 32, 4)),
        ("go1.26", (1, 26, 0)),
        ("2.42.0+ds", (2, 42, 0)),
        ("3.22.0+gabc1.2.3", (3, 22, 0)),
        ("v0.0.0-master+$Format:%H$", (0, 0, 0)),
        ("devel", None),
        ("", None),
    ],
)
def test_a_version_is_read_from_what_programs_print(text: str, numbers: tuple[int, int, int] | None) -> None:
    assert parse_version(text) == numbers


@pytest.mark.parametrize(
    ("version", "objection"),
    [
        ("1.32.0", None),
        ("1.32.4-dispatcher", None),
        ("1.40.1", None),
        ("1.31.9", "its version 1.31.9 is older than 1.32.0"),
        ("2.0.0", "its version 2.0.0 is not below 2.0.0"),
        ("0.0.0-master+$Format", "its version 0.0.0-master+$Format is older than 1.32.0"),
        ("devel", "its version 'devel' cannot be read"),
    ],
)
def test_a_version_outside_the_accepted_range_is_objected_to(version: str, objection: str | None) -> None:
    assert Accepted((1, 32, 0), (2, 0, 0)).objection(version) == objection


def test_the_go_line_of_a_module_says_which_go_it_needs() -> None:
    assert go_directive("module x\n\ngo 1.24.0\n\nrequire y v1.2.3\n") == (1, 24, 0)
    with pytest.raises(ValueError, match="no line"):
        go_directive("module x\n")


@pytest.mark.parametrize("module", sorted(path.name for path in MODULES.iterdir() if path.is_dir()))
def test_every_module_builds_with_go_1_26(module: str) -> None:
    assert go_directive((MODULES / module / "go.mod").read_text()) <= (1, 26, 99)


@pytest.mark.parametrize("bundle", [b for b in BUNDLES.values() if isinstance(b, GoBundle)], ids=lambda b: b.name)
def test_the_version_in_the_table_is_the_one_the_module_pins(bundle: GoBundle) -> None:
    required = (MODULES / bundle.module / "go.mod").read_text().split("\nreplace (")[0]
    pinned = [line.split() for line in required.splitlines() if bundle.package.startswith(_path_of(line))]

    assert f"v{bundle.version}" in [words[-1] for words in pinned if words]


def _path_of(line: str) -> str:
    words = line.removeprefix("require").split()
    return words[0] if len(words) == 2 else "no module"


def test_what_we_would_build_is_accepted_by_our_own_rule() -> None:
    for program in PROGRAMS.values():
        bundle = BUNDLES[program.bundle]
        if isinstance(bundle, GoBundle) and program.accepted is not None:
            assert program.accepted.objection(bundle.version) is None, program.name
