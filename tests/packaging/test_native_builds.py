"""The compiled backend as it is built: clean under sanitizers, and right on processors that are not this one."""

import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from build import SANITIZERS, build_test
from hedgerow_agent.core.native.library import load
from hedgerow_agent.core.native.opening import Unavailable
from provision.find import locate
from provision.sysroots import locate_sysroot
from support.recorded_kernels import record_networks
from support.repository import ROOT
from support.sampling import THOROUGH
from toolchain import MACHINES, Target, cross_target, host_target

EMULATORS = {"x86_64": "qemu-x86_64", "aarch64": "qemu-aarch64", "armv7l": "qemu-arm"}
PROCESSORS = [
    ("x86_64", "core2duo", ["sse2"]),
    ("x86_64", "Nehalem", ["sse2"]),
    ("x86_64", "IvyBridge", ["sse2"]),  # what was sold in 2013: AVX, and no AVX2
    ("x86_64", "Haswell", ["avx2", "sse2"]),
    ("aarch64", "cortex-a53", ["neon"]),
    ("armv7l", "cortex-a7", ["neon", "generic"]),
]
EMULATED = [one for one in PROCESSORS if THOROUGH or one[1] in {"IvyBridge", "cortex-a53", "cortex-a7"}]
"""One of each machine in `make test`: an emulated processor takes half a minute."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, str(ROOT / "hack/wheels"), "--output", str(folder)], check=True, timeout=900)
    return folder


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the kernels did in five networks on this machine, for other machines to do again."""
    mine = load()
    assert not isinstance(mine, Unavailable), mine.reason
    output = tmp_path_factory.mktemp("recorded") / "cases.bin"
    names = record_networks(mine, output)
    assert len(names) >= len(mine.operators) * 3 // 4, sorted(set(mine.operators) - names)
    return output


def library_of(wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract("hedgerow_agent/core/native/libhedgerow.so", folder))


def zig_for(machine: str) -> Target:
    target = cross_target(machine)
    assert target is not None, "ziglang is in the lock"
    return target


@pytest.mark.install
def test_there_is_a_wheel_for_each_machine_and_none_is_for_one_python(wheels: Path) -> None:
    tags = sorted(path.stem.split("-", 2)[2] for path in wheels.glob("*.whl"))

    assert tags == sorted(f"py3-none-manylinux_2_17_{machine}" for machine in MACHINES)


@pytest.mark.install
@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_a_library_knows_nothing_of_python(wheels: Path, tmp_path: Path, machine: str) -> None:
    content = library_of(next(wheels.glob(f"*_{machine}.whl")), tmp_path).read_bytes()
    sys.stdout.write(f"FIGURE library for {machine}: {len(content)} bytes\n")

    assert content[:4] == b"\x7fELF"
    assert b"hedgerow_open\0" in content
    assert b"libpython" not in content
    assert b"Py_" not in content


@pytest.mark.install
@pytest.mark.emulator
@pytest.mark.parametrize("emulated", EMULATED, ids=lambda one: f"{one[0]}-{one[1]}")
def test_the_library_of_a_wheel_passes_the_kernels_tests_on_an_emulated_processor(
    wheels: Path, cases: Path, tmp_path: Path, emulated: tuple[str, str, list[str]]
) -> None:
    machine, processor, sets = emulated
    library = library_of(next(wheels.glob(f"*_{machine}.whl")), tmp_path)
    program = build_test(zig_for(machine), tmp_path / "test-kernels", library)
    root = Path("/") if machine == platform.machine() else locate_sysroot(MACHINES[machine].zig)
    command = [str(locate(EMULATORS[machine]).path), "-cpu", processor, "-L", str(root)]

    done = subprocess.run(
        [*command, "-E", f"LD_LIBRARY_PATH={library.parent}", str(program), str(cases)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.removeprefix("instruction set ") for line in lines if "instruction set" in line] == sets
    met, _, all_of_them, *_ = lines[-1].split()
    assert int(met) > 0
    assert met == all_of_them, done.stdout


@pytest.mark.install
def test_a_program_kept_for_later_asks_for_the_library_by_its_name_and_not_by_where_it_was(
    wheels: Path, tmp_path: Path
) -> None:
    wheel = next(wheels.glob(f"*_{platform.machine()}.whl"))
    first, second = (library_of(wheel, tmp_path / name) for name in ("first", "second"))
    zig = zig_for(platform.machine())
    build_test(zig, first.parent / "test-kernels", first)
    program = build_test(zig, second.parent / "test-kernels", second)
    shutil.rmtree(tmp_path / "first")

    done = subprocess.run(
        [str(program), "no-such-file"],
        env={"LD_LIBRARY_PATH": str(second.parent)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert str(tmp_path).encode() not in program.read_bytes()
    assert "instruction set" in done.stdout, done.stdout + done.stderr


@pytest.mark.install
def test_the_kernels_tests_run_clean_under_the_sanitizers(cases: Path, tmp_path: Path) -> None:
    mine = host_target()
    assert mine is not None
    gcc = (str(locate("gcc").path),)
    plain = mine if mine.compiler == gcc else Target(gcc, mine.machine)
    program = build_test(plain.with_flags(SANITIZERS), tmp_path / "test-kernels")

    done = subprocess.run([str(program), str(cases)], capture_output=True, text=True, timeout=500, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "expectations met" in done.stdout


@pytest.mark.install
def test_the_sanitizers_would_say_something(tmp_path: Path) -> None:
    (tmp_path / "crooked.c").write_text("int main(int n, char **v) { int a[4] = {0}; (void)v; return a[n + 3]; }\n")
    program = tmp_path / "crooked"
    subprocess.run([locate("gcc").path, *SANITIZERS, tmp_path / "crooked.c", "-o", program], check=True)

    done = subprocess.run([program], capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert "out of bounds" in done.stderr
