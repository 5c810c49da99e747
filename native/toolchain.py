"""Which compiler builds for which machine: the system's for this one, PyPI's `ziglang` otherwise.

Zig brings headers and stubs of every glibc; what it links for 2.17 runs on every Linux since 2014.
"""

import importlib.metadata
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace

OLDEST_GLIBC = "2.17"


@dataclass(frozen=True)
class Machine:
    """What zig calls a machine, and the processors that its two tables of kernels are for."""

    zig: str
    baseline: str
    richer: str | None = None  # None: there is nothing that only some of them have


MACHINES = {
    "x86_64": Machine("x86_64-linux-gnu", "x86_64", "x86_64_v3"),
    "aarch64": Machine("aarch64-linux-gnu", "generic"),
    "armv7l": Machine("arm-linux-gnueabihf", "generic+v7a+vfp3d16-neon", "generic+v7a+neon"),
}
"""What wheels are built for, by the names that Python's platform tags use."""

RICHER_SET = {"x86_64": "avx2", "armv7l": "neon"}
GCC_FLAGS = {"x86_64": ("-march=x86-64-v3",), "armv7l": ("-mfpu=neon",)}
"""The instruction set of the second table, and what a system compiler is told for it."""


@dataclass(frozen=True)
class Target:
    """How to compile for a machine."""

    compiler: tuple[str, ...]
    machine: str
    flags: tuple[str, ...] = ()
    baseline: tuple[str, ...] = ()
    richer: tuple[str, tuple[str, ...]] | None = None  # a second table's name and flags

    def with_flags(self, flags: tuple[str, ...]) -> "Target":
        """Return the same with more flags."""
        return replace(self, flags=(*self.flags, *flags))

    def version(self) -> str:
        """Return the compiler's own words for itself."""
        asked = [*self.compiler, "--version"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        return done.stdout.partition("\n")[0].strip() or shlex.join(self.compiler)

    def identity(self) -> tuple[str, ...]:
        """Return what decides what the compiler makes: for ziglang not where it is installed, but which one it is."""
        if is_zig(self):
            return ("ziglang", importlib.metadata.version("ziglang"))
        return (*self.compiler, self.version())


def host_target() -> Target | None:
    """Return how to compile for this machine: by $CC, by one of the usual names, by ziglang; None without any."""
    machine = platform.machine()
    compiler = _system_compiler()
    if compiler is None:
        return cross_target(machine) if machine in MACHINES else None
    richer = (RICHER_SET[machine], GCC_FLAGS[machine]) if machine in RICHER_SET else None
    return Target(compiler, machine, richer=richer)


def _system_compiler() -> tuple[str, ...] | None:
    if os.environ.get("CC"):
        return tuple(shlex.split(os.environ["CC"]))
    return next(((found,) for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


def cross_target(name: str) -> Target | None:
    """Return how to compile for a machine with ziglang; None where that is not installed."""
    if importlib.util.find_spec("ziglang") is None:
        return None
    machine = MACHINES[name]
    zig = (sys.executable, "-m", "ziglang", "cc")
    richer = None if machine.richer is None else (RICHER_SET[name], (f"-mcpu={machine.richer}",))
    flags = ("-target", f"{machine.zig}.{OLDEST_GLIBC}")
    return Target(zig, name, flags, (f"-mcpu={machine.baseline}",), richer)


def is_zig(target: Target) -> bool:
    """Tell whether a target's library runs on every Linux since 2014."""
    return "ziglang" in target.compiler
