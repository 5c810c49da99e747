"""What can be wrong with a machine, as sentences with the remedy in them.

Turns the output of a failed tool, or an OSError, into the one sentence a person needs. Decides nothing else.
"""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NETWORK_SIGNS = re.compile(
    r"dial tcp|no such host|connection refused|i/o timeout|TLS handshake timeout|proxyconnect"
    r"|network is unreachable|name resolution|Could not resolve|Failed to establish a new connection"
    r"|NewConnectionError|Cannot connect to proxy|Could not connect to|Unable to connect to|Failed to fetch"
    r"|Read timed out|ConnectTimeoutError|ProxyError"
    r"|client error \(Connect\)|dns error",
    re.IGNORECASE,
)
DISK_SIGNS = re.compile(r"no space left on device|not enough free space|disk quota exceeded", re.IGNORECASE)
DPKG_SIGNS = re.compile(r"dpkg was interrupted|dpkg --configure -a", re.IGNORECASE)
REGISTRIES = {"go": "the Go module proxy", "pip": "PyPI", "uv": "PyPI", "apt-get": "the Debian mirror"}
"""What each tool talks to, in the words of a sentence."""

AGAIN = "and run the same command again."
"""How a sentence ends whose remedy is at hand."""

UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)


class Problem(Exception):  # noqa: N818 - it is a state of the machine, told to a person, not an error in the code
    """Something a person has to put right; `str()` is one sentence with the remedy."""


def telling_line(output: str, signs: re.Pattern[str]) -> str:
    """Return the last line of a tool's output that shows one of the signs, shortened."""
    lines = [line.strip() for line in output.splitlines() if signs.search(line)]
    return shortened(lines[-1]) if lines else ""


def last_line(output: str) -> str:
    """Return the last line that says anything, shortened."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return shortened(lines[-1]) if lines else "it said nothing"


def shortened(line: str, limit: int = 160) -> str:
    """Cut a line so that it fits into a sentence, keeping its end, where tools put the cause."""
    return line.rstrip(". ") if len(line) <= limit else "..." + line[-limit:].rstrip(". ")


def explain_failure(tool: str, purpose: str, output: str, log: Path) -> Problem:
    """Make one sentence of the failure of a tool that was started for a purpose ("build kube-apiserver")."""
    registry = REGISTRIES.get(tool, "its registry")
    if DISK_SIGNS.search(output):
        return disk_full(f"while `{tool}` tried to {purpose}")
    if NETWORK_SIGNS.search(output):
        cause = telling_line(output, NETWORK_SIGNS)
        return Problem(
            f"Could not {purpose} because `{tool}` cannot reach {registry} ({cause}): connect this machine "
            f"to the network, or configure {tool} for a mirror it can reach, {AGAIN}"
        )
    if DPKG_SIGNS.search(output):
        return Problem(
            f"Could not {purpose} because an earlier Debian installation was interrupted: "
            "run `dpkg --configure -a` as root, then the same command again."
        )
    return Problem(f"Could not {purpose}: `{tool}` failed with {last_line(output)!r} (all it said is in {log}).")


def disk_full(when: str) -> Problem:
    """Say that the disk ran full."""
    return Problem(
        f"The disk is full {when}: free some space, or point HEDGEROW_CACHE, GOCACHE and GOMODCACHE at a "
        f"larger disk (what is finished is kept), {AGAIN}"
    )


def too_little_disk(free_bytes: int, needed_bytes: int, folder: Path, purpose: str) -> Problem | None:
    """Say so beforehand when a folder's disk cannot hold what a step will write."""
    if free_bytes >= needed_bytes:
        return None
    return Problem(
        f"To {purpose} takes about {needed_bytes / 1e9:.1f} GB and the disk of {folder} has "
        f"{free_bytes / 1e9:.1f} GB free: free some space, or point HEDGEROW_CACHE, GOCACHE and GOMODCACHE "
        "at a larger disk."
    )


@contextmanager
def os_errors_as_problems(root: Path) -> Iterator[None]:
    """Turn a full disk or an unwritable cache folder into its sentence; other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(f"(writing {error.filename or root})") from error
        if error.errno in UNWRITABLE and error.filename and str(error.filename).startswith(str(root)):
            raise Problem(
                f"The cache folder {root} cannot be written ({error.strerror}: {error.filename}): make it "
                "writable for this user, delete it, or set HEDGEROW_CACHE to another folder."
            ) from error
        raise
