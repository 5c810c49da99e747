"""Whether the watch is alive: what it has shown is compared with what the API server lists.

A watch that has died silently looks like a quiet cluster. So the kinds are listed from time to time; an object whose
generation the watch has not shown, although the list showed it twice in a row, means that the watch is dead. What the
list shows is acted upon either way.
"""

from collections.abc import Iterable, Mapping
from typing import Any

Seen = dict[str, int]  # generation by uid


class WatchMirror:
    """What the watch has shown of one kind."""

    def __init__(self) -> None:
        self._watched: Seen = {}
        self._overdue: Seen = {}
        self.lagging: list[str] = []

    def saw(self, metadata: Mapping[str, Any], *, deleted: bool) -> None:
        """Note an event of the watch."""
        uid = str(metadata.get("uid", ""))
        if deleted:
            self._watched.pop(uid, None)
        else:
            self._watched[uid] = int(metadata.get("generation", 1))

    def compare(self, listed: Iterable[Mapping[str, Any]]) -> None:
        """Compare with a list; what was already missing in the list before is overdue."""
        names = {str(metadata["uid"]): str(metadata["name"]) for metadata in listed}
        found = {str(metadata["uid"]): int(metadata.get("generation", 1)) for metadata in listed}
        missing = {uid: generation for uid, generation in found.items() if self._watched.get(uid, -1) < generation}
        missing |= {uid: -1 for uid in self._watched if uid not in found}
        self.lagging = sorted(names.get(uid, uid) for uid, seen in missing.items() if self._overdue.get(uid) == seen)
        self._overdue = missing
