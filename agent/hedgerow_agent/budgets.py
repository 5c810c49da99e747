"""The budget in force: the least of what everything that limits this device allows.

`combine` is the pure decision. `read_cgroup_limit` is the thin reader of cgroup v1 or v2 files below a root folder that
callers may choose, so that either version can be tried against a folder of its files.
"""

from dataclasses import dataclass
from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")
NO_LIMIT_BYTES = 1 << 60
"""cgroup v1 says "no limit" with a number just below 2**63, rounded to pages."""


@dataclass(frozen=True, slots=True)
class BudgetInForce:
    """How many bytes the arena may have, and who says so."""

    bytes: int | None  # None: only the program's rungs limit
    source: str

    def __str__(self) -> str:
        return "no limit" if self.bytes is None else f"{self.bytes} bytes ({self.source})"


def combine(
    allowance_bytes: int | None, override_bytes: int | None, cgroup_limit_bytes: int | None, footprint_bytes: int
) -> BudgetInForce:
    """Return the least of the limits; the processes' own footprint comes off the cgroup's limit alone."""
    room_bytes = None if cgroup_limit_bytes is None else max(0, cgroup_limit_bytes - footprint_bytes)
    candidates = (
        (allowance_bytes, "allowance of the device class"),
        (override_bytes, "override for this device"),
        (room_bytes, f"cgroup limit less a footprint of {footprint_bytes} bytes"),
    )
    limits = [BudgetInForce(limit, source) for limit, source in candidates if limit is not None]
    return min(limits, key=lambda limit: limit.bytes or 0, default=BudgetInForce(None, "no limit"))


def read_cgroup_limit(root: Path = CGROUP_ROOT, membership: Path = Path("/proc/self/cgroup")) -> int | None:
    """Return the smallest memory limit of this process's cgroup and its ancestors, or None if there is none."""
    limits = [limit for file in _limit_files(root, membership) if (limit := _read_limit(file)) is not None]
    return min(limits, default=None)


def read_rss_bytes(process: str = "self") -> int:
    """Return the resident set of a process, or 0 where the system does not say."""
    try:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 0


def _limit_files(root: Path, membership: Path) -> list[Path]:
    """Return the files that may hold a limit, for v1 and for v2, from the process's own group up to the root."""
    files: list[Path] = []
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return files
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            files += _upwards(root, group, "memory.max") + _upwards(root / "unified", group, "memory.max")
        elif "memory" in controllers.split(","):
            files += _upwards(root / "memory", group, "memory.limit_in_bytes")
    return files


def _upwards(root: Path, group: str, name: str) -> list[Path]:
    """Return the file in the group's folder and in each folder above it, as far as the root."""
    parts = [part for part in group.split("/") if part and part != ".."]
    return [root.joinpath(*parts[:depth], name) for depth in range(len(parts), -1, -1)]


def _read_limit(file: Path) -> int | None:
    """Return the limit in a file; None if the file is missing, says "max", or holds v1's "no limit"."""
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() and int(text) < NO_LIMIT_BYTES else None
