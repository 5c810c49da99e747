"""What mosquitto reads: its configuration, password file and access rules."""

import base64
import hashlib
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from servers.files import write_private
from servers.ports import LOOPBACK

DATABASE = "mosquitto.db"
# What mosquitto_passwd uses itself: few enough for a broker that checks thousands of devices at once.
_PASSWORD_ITERATIONS = 101


@dataclass(frozen=True, slots=True)
class Options:
    """How a broker differs from the plainest one, which lets everybody in."""

    passwords: Mapping[str, str] = field(default_factory=dict, repr=False)  # by user; empty: everybody may come in
    access_rules: str = ""  # the text of an acl_file; empty: everybody who came in may do everything
    further_lines: tuple[str, ...] = ()


def write_configuration(folder: Path, port: int, store: Path, options: Options) -> Path:
    """Write mosquitto.conf and the files it names into `folder`."""
    lines = [
        f"listener {port} {LOOPBACK}",
        f"allow_anonymous {'false' if options.passwords else 'true'}",
        "persistence true",
        f"persistence_location {store}/",
        f"persistence_file {DATABASE}",
        "autosave_interval 0",  # only when it stops or is told to: what a killed one loses is no accident
        "log_dest stderr",
    ]
    if os.geteuid() == 0:
        lines.append("user root")  # else it becomes `mosquitto`, who may read nothing in a temporary folder
    if options.passwords:
        lines.append(f"password_file {write_private(folder / 'passwords', _password_lines(options.passwords))}")
    if options.access_rules:
        lines.append(f"acl_file {write_private(folder / 'access-rules', options.access_rules)}")
    return write_private(folder / "mosquitto.conf", "\n".join([*lines, *options.further_lines, ""]))


def _password_lines(passwords: Mapping[str, str]) -> str:
    return "".join(f"{user}:{_hash(password)}\n" for user, password in passwords.items())


def _hash(password: str) -> str:
    salt = secrets.token_bytes(12)
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _PASSWORD_ITERATIONS)
    encoded_salt, encoded_digest = (base64.b64encode(part).decode() for part in (salt, digest))
    return f"$7${_PASSWORD_ITERATIONS}${encoded_salt}${encoded_digest}"
