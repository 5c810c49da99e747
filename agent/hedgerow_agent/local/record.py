"""What a folder of results remembers of its run: everything that decides its outcome, by name."""

import hashlib
import json
from collections.abc import Mapping

from hedgerow_plans.protocol.messages import Digest, Message

PROGRAM, WEIGHTS, DATA, DATA_STAMP = "program", "weights", "data", "stamp of the data"

_IN_WORDS = {PROGRAM: "another program", WEIGHTS: "other weights", DATA_STAMP: "data that has changed since"}
"""Of these people would only be shown digests."""
_SAID_BETTER_BY = {PROGRAM: ("model", "method", "batch size", "class"), DATA_STAMP: (DATA,)}


class Record(Message):
    """The facts of a run, and what its planner was asked if there was one."""

    facts: dict[str, str]
    request: Digest | None = None  # what the planner was asked; none where the program was given

    @property
    def uid(self) -> str:
        """A name that only a run with the very same facts has."""
        return hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode()).hexdigest()


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return in a few words what is not as it was; empty if nothing is."""
    names = [name for name in now if before.get(name) != now[name]]
    told = [name for name in names if not set(_SAID_BETTER_BY.get(name, ())) & set(names)]
    return ", ".join(_IN_WORDS.get(name) or f"{name} {before.get(name) or 'none'}, now {now[name]}" for name in told)
