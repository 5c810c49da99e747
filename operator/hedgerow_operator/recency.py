"""Which copy of an object is the newest: a list that took long must not undo what the watch has shown meanwhile.

Uids are never used again, so what is gone stays gone; that is remembered until a list that began later has ended.
Resource versions are compared where they are numbers, as they are with etcd; else the generation must do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Metadata = Mapping[str, Any]


@dataclass(slots=True)
class Recency:
    """The newest version of every object, and what has gone of late, by uid."""

    _newest: dict[str, tuple[int | None, int]] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)
    _gone_before: set[str] = field(default_factory=set)

    def list_begins(self) -> None:
        """Forget what was gone before the list before this one began: it is in neither of them."""
        self._gone_before, self._gone = self._gone, set()

    def is_outdated(self, metadata: Metadata) -> bool:
        """Whether something newer is known of the object; if not, this is the newest now."""
        uid = str(metadata.get("uid", ""))
        if uid in self._gone or uid in self._gone_before:
            return True
        version, generation = _version(metadata), int(metadata.get("generation", 1))
        known, known_generation = self._newest.get(uid, (None, 0))
        older = generation < known_generation if version is None or known is None else version < known
        if not older:
            self._newest[uid] = (version, generation)
        return older

    def went(self, uid: str) -> None:
        """Note that an object is gone for good."""
        self._newest.pop(uid, None)
        self._gone.add(uid)


def _version(metadata: Metadata) -> int | None:
    text = str(metadata.get("resourceVersion", ""))
    return int(text) if text.isdecimal() else None
