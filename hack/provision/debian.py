"""Gets programs from Debian packages: installed as root or with sudo, else unpacked into the cache.

Installing never leaves a service running or enabled because of us: tests start servers of their own.
"""

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from provision import cache, children
from provision.locks import step_lock
from provision.problems import NETWORK_SIGNS, Problem
from provision.programs import DebianBundle, programs_of
from provision.progress import say

POLICY = Path("/usr/sbin/policy-rc.d")
INSTALL_SCRIPT = """
if [ ! -e "$POLICY" ]; then
  trap 'rm -f "$POLICY"' EXIT
  printf '#!/bin/sh\\nexit 101\\n' > "$POLICY"
  chmod 755 "$POLICY"
fi
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get install --yes --no-install-recommends -o DPkg::Lock::Timeout=300 $PACKAGES || exit $?
if command -v systemctl > /dev/null && [ -n "$SERVICES" ]; then
  systemctl disable $SERVICES > /dev/null 2>&1 || true
fi
"""
"""policy-rc.d with 101 is how Debian is told not to start services; it is put there for this command only."""

WRAPPER = """#!/bin/sh
root="$(dirname "$(readlink -f "$0")")/root"
LD_LIBRARY_PATH="{libraries}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
export LD_LIBRARY_PATH
exec "$root/{program}" "$@"
"""


class Way(StrEnum):
    """How packages can be had on this machine."""

    ROOT = "as root"
    SUDO = "with sudo"
    UNPACK = "unpacked without root"
    NONE = "not at all"


def way(has_apt: bool, is_root: bool, sudo_works: bool, prefers_unpacking: bool) -> Way:
    """Decide how: as root, else with a sudo that asks nothing, else unpacked; without apt-get not at all."""
    if not has_apt:
        return Way.NONE
    if prefers_unpacking:
        return Way.UNPACK
    if is_root:
        return Way.ROOT
    return Way.SUDO if sudo_works else Way.UNPACK


def look(environ: Mapping[str, str]) -> Way:
    """Look at the machine and decide; HEDGEROW_DEBIAN=unpack keeps apt-get's hands off the system."""
    path = environ.get("PATH", os.defpath)
    has_apt = bool(shutil.which("apt-get", path=path) and shutil.which("dpkg-deb", path=path))
    sudo = shutil.which("sudo", path=path)
    is_root = os.geteuid() == 0
    sudo_works = not is_root and sudo is not None and _sudo_works(sudo, environ)
    return way(has_apt, is_root, sudo_works, environ.get("HEDGEROW_DEBIAN") == "unpack")


def _sudo_works(sudo: str, environ: Mapping[str, str]) -> bool:
    return "allowed" in (children.answer_of([sudo, "-n", "sh", "-c", "echo allowed"], environ) or "")


def install(packages: Sequence[str], services: Sequence[str], root: Path, environ: Mapping[str, str]) -> bool:
    """Install packages on the system; False when that is not this user's to do."""
    how = look(environ)
    if how not in (Way.ROOT, Way.SUDO):
        return False
    prefix = ["sudo", "-n"] if how is Way.SUDO else []
    told = [f"PACKAGES={' '.join(packages)}", f"SERVICES={' '.join(services)}", f"POLICY={POLICY}"]
    purpose = f"install {' '.join(packages)} from Debian {how}"
    log = root / "logs" / "apt.log"
    with step_lock(root, "apt"):
        _download_for_system(packages, prefix, log, environ)
        children.run(
            "apt-get",
            [*prefix, "env", *told, "sh", "-c", INSTALL_SCRIPT],
            purpose=purpose,
            log=log,
            environ=environ,
            finish_when_interrupted=True,
        )
    return True


def _download_for_system(packages: Sequence[str], prefix: list[str], log: Path, environ: Mapping[str, str]) -> None:
    """Download the packages; when that fails (no lists yet, or old ones) refresh the lists and try again."""
    command = [
        *prefix,
        "apt-get",
        "install",
        "--yes",
        "--no-install-recommends",
        "--download-only",
        *packages,
    ]
    lock = ["-o", "DPkg::Lock::Timeout=300"]
    purpose = f"download {' '.join(packages)} from Debian"
    try:
        children.run("apt-get", [*command, *lock], purpose=purpose, log=log, environ=environ)
    except Problem:
        say("  Debian's package lists are missing or old: refreshing them")
        update = [*prefix, "apt-get", "update", *lock]
        children.run("apt-get", update, purpose="refresh Debian's package lists", log=log, environ=environ)
        children.run("apt-get", [*command, *lock], purpose=purpose, log=log, environ=environ)


def key(bundle: DebianBundle) -> str:
    """Make the cache key of an unpacked bundle: packages, distribution, machine."""
    release = Path("/etc/os-release")
    distribution = release.read_bytes() if release.exists() else b""
    return cache.key_of([" ".join(bundle.packages).encode(), distribution, platform.machine().encode()])


def unpack(bundle: DebianBundle, root: Path, environ: Mapping[str, str]) -> cache.Entry:
    """Unpack a bundle and the libraries this machine lacks into its cache entry; call under its lock."""
    with step_lock(root, "apt"):
        archives = _download_for_cache(bundle, root, environ)
    final = cache.entry_folder(root, bundle.name, key(bundle))
    partial = cache.begin(final)
    for archive in archives:
        children.run(
            "dpkg-deb",
            ["dpkg-deb", "-x", archive, partial / "root"],
            purpose=f"unpack {archive.name}",
            log=root / "logs" / f"{bundle.name}.log",
            environ=environ,
        )
    _write_wrappers(bundle, partial)
    version = next(
        name.split("_")[1] for name in (path.name for path in archives) if name.startswith(f"{bundle.name}_")
    )
    return cache.publish(partial, final, version, "unpacked from Debian packages")


def _download_for_cache(bundle: DebianBundle, root: Path, environ: Mapping[str, str]) -> list[Path]:
    """Have apt-get download what is missing, with lists and archives of our own, so that it needs no root."""
    apt = root / "apt"
    archives = apt / "archives" / bundle.name
    shutil.rmtree(archives, ignore_errors=True)
    for folder in (apt / "lists" / "partial", archives / "partial"):
        folder.mkdir(parents=True, exist_ok=True)
    options = [f"Dir::State::lists={apt}/lists", f"Dir::Cache={apt}", f"Dir::Cache::archives={archives}"]
    options += ["Debug::NoLocking=1", "APT::Sandbox::User=", "Acquire::Languages=none"]
    command: list[str | Path] = ["apt-get", *(part for option in options for part in ("-o", option))]
    log = root / "logs" / f"{bundle.name}.log"
    packages = " ".join(bundle.packages)
    update = [*command, "update"]
    children.run("apt-get", update, purpose="read Debian's package lists", log=log, environ=environ)
    fetch = [
        *command,
        "install",
        "--yes",
        "--no-install-recommends",
        "--reinstall",
        "--download-only",
        *bundle.packages,
    ]
    children.run("apt-get", fetch, purpose=f"download {packages} from Debian", log=log, environ=environ)
    return sorted(archives.glob("*.deb"))


def _write_wrappers(bundle: DebianBundle, partial: Path) -> None:
    """Put a script for each program at the top of the entry; it execs, so its process is the program's."""
    found = [path for path in (partial / "root").rglob("*.so*") if path.is_file()]
    folders = sorted({str(path.parent.relative_to(partial / "root")) for path in found})
    libraries = ":".join(f"$root/{folder}" for folder in folders)
    for program in programs_of(bundle.name):
        places = [place for place in ("usr/sbin", "usr/bin") if (partial / "root" / place / program.name).is_file()]
        if not places:
            raise Problem(
                f"Debian's {' '.join(bundle.packages)} brought no {program.name}: "
                f"install {program.name} yourself so that it is on PATH."
            )
        wrapper = partial / program.name
        wrapper.write_text(WRAPPER.format(libraries=libraries, program=f"{places[0]}/{program.name}"))
        wrapper.chmod(0o755)


def is_network_trouble(problem: Problem) -> bool:
    """Tell whether trying another way to the same mirror is pointless."""
    return bool(NETWORK_SIGNS.search(str(problem)))
