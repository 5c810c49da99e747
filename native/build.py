"""Build the compiled backend with a C compiler: `python native/build.py [--test] [--sanitize] [--output FILE]`.

Kernels are compiled once for each instruction set of the machine they are for; a library chooses when it is loaded.
Standard library only, because packaging runs it before anything is installed.
"""

import argparse
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parent / "agent" / "hedgerow_agent" / "core" / "native" / "libhedgerow.so"
COMMON = ("-std=gnu11", "-O3", "-fPIC", "-fvisibility=hidden", "-ffp-contract=fast", "-fno-math-errno")
COMMON += ("-fno-trapping-math", "-Wall", "-Wextra", "-Wno-psabi")
SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
AVX2 = ("-march=x86-64-v3",)


@dataclass(frozen=True)
class Target:
    """How to compile for a machine."""

    compiler: tuple[str, ...]
    machine: str = platform.machine()
    flags: tuple[str, ...] = ()

    @property
    def has_avx2(self) -> bool:
        """Whether a second set of kernels is worth having."""
        return self.machine in ("x86_64", "AMD64")


def find_compiler() -> tuple[str, ...] | None:
    """Return the command that compiles C: $CC, or the first of the usual names."""
    if os.environ.get("CC"):
        return tuple(shlex.split(os.environ["CC"]))
    return next(((found,) for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


def compile_objects(target: Target, folder: Path) -> list[Path]:
    """Compile every unit and return the objects."""
    sets = [("baseline", ())] + ([("avx2", (*AVX2, '-DHEDGEROW_SET_NAME="avx2"'))] if target.has_avx2 else [])
    units: list[tuple[Path, str, tuple[str, ...]]] = [
        (HERE / "src" / "kernels" / "unit.c", f"kernels_{name}", (f"-DHEDGEROW_SET={name}", *flags))
        for name, flags in sets
    ]
    known = ("-DHEDGEROW_WITH_AVX2",) if target.has_avx2 else ()
    units += [(source, source.stem, known) for source in sorted((HERE / "src").glob("*.c"))]
    return [_compile(target, source, folder / f"{name}.o", flags) for source, name, flags in units]


def _compile(target: Target, source: Path, output: Path, flags: Sequence[str]) -> Path:
    include = f"-I{HERE / 'include'}"
    _run([*target.compiler, *COMMON, include, *target.flags, *flags, "-c", str(source), "-o", str(output)])
    return output


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"The compiler failed: {shlex.join(command)}\n{done.stderr}")
    sys.stderr.write(done.stderr)


def build_library(target: Target, output: Path) -> Path:
    """Link the shared library."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hedgerow-native-") as folder:
        objects = compile_objects(target, Path(folder))
        partly = output.with_suffix(".partly")
        _run([*target.compiler, *target.flags, "-shared", "-pthread", *map(str, objects), "-lm", "-o", str(partly)])
        partly.replace(output)  # whoever has the old one open keeps it
    return output


def build_test(target: Target, output: Path) -> Path:
    """Link the program that tests the kernels alone."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hedgerow-native-") as folder:
        objects = compile_objects(target, Path(folder))
        objects += [
            _compile(target, source, Path(folder) / f"test_{source.stem}.o", ())
            for source in sorted((HERE / "tests").glob("*.c"))
        ]
        _run([*target.compiler, *target.flags, "-pthread", *map(str, objects), "-lm", "-o", str(output)])
    return output


def main(words: Sequence[str]) -> int:
    """Build what was asked for and say where it is."""
    parser = argparse.ArgumentParser(prog="native/build.py", description="Build the compiled backend.")
    parser.add_argument("--output", type=Path, help="where the result goes")
    parser.add_argument("--test", action="store_true", help="build the kernels' test program instead of the library")
    parser.add_argument("--sanitize", action="store_true", help="with AddressSanitizer and UndefinedBehaviorSanitizer")
    arguments = parser.parse_args(words)
    compiler = find_compiler()
    if compiler is None:
        sys.stderr.write("There is no C compiler here; set CC, or go on with numpy.\n")
        return 1
    target = Target(compiler, flags=SANITIZERS if arguments.sanitize else ())
    if arguments.test:
        print(build_test(target, arguments.output or HERE.parent / "build" / "test-kernels"))
    else:
        print(build_library(target, arguments.output or LIBRARY))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
