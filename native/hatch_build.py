"""Puts the compiled backend into wheels: a plain shared library, so that one wheel a platform serves every Python.

By itself a build takes the system's compiler; without one the wheel has numpy alone and says so. With
HEDGEROW_WHEEL_MACHINE set to a machine's name the library is built for that machine by PyPI's `ziglang`, or not at all.
"""

import os
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))
from build import LIBRARY, NO_COMPILER, CompilerFailed, build_library
from toolchain import MACHINES, OLDEST_GLIBC, Target, cross_target, host_target, is_zig

VARIABLE = "HEDGEROW_WHEEL_MACHINE"
ZIGLANG = "ziglang>=0.14"


class NativeLibrary(BuildHookInterface):  # type: ignore[type-arg]  # its parameter is a configuration we do not read
    """Builds the library and names the platform that the wheel is for."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what the build needs besides hatchling: a compiler, where somebody asks for a machine by name."""
        return [ZIGLANG] if os.environ.get(VARIABLE) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the library for the wheel, or into the source tree for an editable one."""
        named = os.environ.get(VARIABLE)
        target = _named_target(named) if named else host_target()
        if target is None:
            self.app.display_warning(NO_COMPILER)
            return
        try:
            built = self._build(target, version)
        except CompilerFailed as failed:
            if named:
                raise
            self.app.display_warning(f"{failed}\nThe compiled backend was not built; training goes on in numpy.")
            return
        self.app.display_info(f"{built.name} for {target.machine}: {built.stat().st_size} bytes")
        if version != "editable":
            build_data["force_include"][str(built)] = "hedgerow_agent/core/native/libhedgerow.so"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform(target)}"

    def _build(self, target: Target, version: str) -> Path:
        if version == "editable":
            return build_library(target, LIBRARY)
        self._folder = tempfile.TemporaryDirectory(prefix="hedgerow-wheel-")
        return build_library(target, Path(self._folder.name) / LIBRARY.name)

    def finalize(self, *_: Any) -> None:
        """Forget what was built beside the wheel."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def _named_target(name: str) -> Target:
    if name not in MACHINES:
        raise SystemExit(f"{VARIABLE} is {name!r}: wheels are built for {', '.join(MACHINES)}.")
    target = cross_target(name)
    if target is None:
        raise SystemExit(f"{VARIABLE} is {name!r}, and ziglang, which builds for it, is not installed.")
    return target


def _platform(target: Target) -> str:
    if is_zig(target):
        return f"manylinux_{OLDEST_GLIBC.replace('.', '_')}_{target.machine}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
