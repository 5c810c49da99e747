"""Build the compiled backend: `python native/build.py [--machine NAME] [--test] [--sanitize] [--output FILE]`.

Kernels are compiled once for each instruction set of the machine they are for; a library chooses when it is loaded.
What was built before from the same sources, by the same compiler with the same flags, is taken from the cache. Standard
library only, because packaging runs it before anything is installed.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from toolchain import MACHINES, Target, cross_target, host_target

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parent / "agent" / "hedgerow_agent" / "core" / "native" / "libhedgerow.so"
COMMON = (
    *("-std=gnu11", "-O3", "-fPIC", "-fvisibility=hidden", "-ffp-contract=fast", "-fno-math-errno"),
    *("-fno-trapping-math", "-Wall", "-Wextra", "-Wno-psabi", "-Wno-unknown-pragmas"),
)
SHARED = ("-shared", "-s", "-pthread", "-Wl,-soname,libhedgerow.so")
"""With a name of its own, so that a program linked with it asks for that name, not for the folder it lay in then."""
SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
NO_COMPILER = "There is no C compiler here (nor PyPI's ziglang), so that training goes on in numpy; set CC to name one."


class CompilerFailed(Exception):  # noqa: N818 - reads as what it says
    """The compiler did not take what it was given; the text is what it said."""


def build_library(target: Target, output: Path) -> Path:
    """Link the shared library."""
    return _kept(target, output, "library", lambda partly: _link_library(target, partly))


def build_test(target: Target, output: Path, library: Path | None = None) -> Path:
    """Link the program that tests the kernels alone, or one that tests the kernels of a library."""
    what = "test" if library is None else f"test-of-{hashlib.sha256(library.read_bytes()).hexdigest()[:20]}"
    return _kept(target, output, what, lambda partly: _link_test(target, partly, library))


def _kept(target: Target, output: Path, what: str, make: Callable[[Path], object]) -> Path:
    """Put what the cache has at its place, making it first where need be; whoever has an old one open keeps it."""
    cache = _cache()
    kept = output if cache is None else cache / f"{what}-{_key(target, what)}"
    if cache is None or not kept.exists():
        _in_one_step(kept, make)
    if not output.exists() or output.read_bytes() != kept.read_bytes():
        _in_one_step(output, lambda partly: shutil.copy2(kept, partly))
    return output


def _in_one_step(final: Path, make: Callable[[Path], object]) -> None:
    final.parent.mkdir(parents=True, exist_ok=True)
    partly = final.with_name(f".{final.name}.{os.getpid()}")
    make(partly)
    partly.replace(final)


def _cache() -> Path | None:
    """Return where builds are kept: with everything else of ours in a checkout; None elsewhere, unless told where."""
    if named := os.environ.get("HEDGEROW_CACHE"):
        return Path(named) / "native"
    if not (HERE.parent / ".git").exists():
        return None
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hedgerow" / "native"


def _key(target: Target, what: str) -> str:
    digest = hashlib.sha256(repr((what, replace(target, compiler=target.identity()), COMMON, SHARED)).encode())
    folders = ("include", "src", *([] if what == "library" else ["tests"]))
    for source in sorted(path for folder in folders for path in (HERE / folder).rglob("*.[ch]")):
        digest.update(str(source.relative_to(HERE)).encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:20]


def _link_library(target: Target, output: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="hedgerow-native-") as folder:
        objects = _compile_objects(target, Path(folder))
        _run(target, [*SHARED, *map(str, objects), "-lm", "-o", str(output)])


def _link_test(target: Target, output: Path, library: Path | None) -> Path:
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hedgerow-native-") as folder:
        kernels = [library] if library else _compile_objects(target, Path(folder))
        tests = [
            _compile(target, source, Path(folder) / f"test_{source.stem}.o", target.baseline)
            for source in sorted((HERE / "tests").glob("*.c"))
        ]
        _run(target, ["-pthread", *map(str, (*tests, *kernels)), "-lm", "-o", str(output)])
    return output


def _compile_objects(target: Target, folder: Path) -> list[Path]:
    """Compile every unit and return the objects."""
    unit = HERE / "src" / "kernels" / "unit.c"
    objects = [_compile(target, unit, folder / "kernels_baseline.o", ("-DHEDGEROW_SET=baseline", *target.baseline))]
    known: tuple[str, ...] = ()
    if target.richer is not None:
        name, flags = target.richer
        named = (f"-DHEDGEROW_SET={name}", f'-DHEDGEROW_SET_NAME="{name}"')
        objects.append(_compile(target, unit, folder / f"kernels_{name}.o", (*named, *flags)))
        known = (f"-DHEDGEROW_WITH_{name.upper()}",)
    flags = (*target.baseline, *known)
    sources = sorted((HERE / "src").glob("*.c"))
    return objects + [_compile(target, source, folder / f"{source.stem}.o", flags) for source in sources]


def _compile(target: Target, source: Path, output: Path, flags: Sequence[str]) -> Path:
    _run(target, [*COMMON, f"-I{HERE / 'include'}", *flags, "-c", str(source), "-o", str(output)])
    return output


def _run(target: Target, arguments: Sequence[str]) -> None:
    command = [*target.compiler, *arguments, *target.flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompilerFailed(f"The compiler failed: {' '.join(command)}\n{done.stderr}")
    sys.stderr.write(done.stderr)


def main(words: Sequence[str]) -> int:
    """Build what was asked for and say where it is."""
    parser = argparse.ArgumentParser(prog="native/build.py", description="Build the compiled backend.")
    parser.add_argument("--machine", choices=sorted(MACHINES), help="another machine's, with ziglang")
    parser.add_argument("--output", type=Path, help="where the result goes")
    parser.add_argument("--test", action="store_true", help="build the kernels' test program instead of the library")
    parser.add_argument("--library", type=Path, metavar="FILE", help="with --test: the library whose kernels it tests")
    parser.add_argument("--sanitize", action="store_true", help="with AddressSanitizer and UndefinedBehaviorSanitizer")
    options = parser.parse_args(words)
    target = cross_target(options.machine) if options.machine else host_target()
    if target is None:
        if not options.machine and not options.test:
            (options.output or LIBRARY).unlink(missing_ok=True)  # an old one would not be that of these sources
        sys.stderr.write(f"{NO_COMPILER}\n")
        return 1
    try:
        print(_build(target.with_flags(SANITIZERS) if options.sanitize else target, options))
    except CompilerFailed as failed:
        sys.stderr.write(f"{failed}\n")
        return 1
    return 0


def _build(target: Target, options: argparse.Namespace) -> str:
    if options.test:
        return str(build_test(target, options.output or HERE.parent / "build" / "test-kernels", options.library))
    built = build_library(target, options.output or LIBRARY)
    return f"{built} ({built.stat().st_size} bytes, for {target.machine}, by {target.version()})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
