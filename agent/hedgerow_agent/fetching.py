"""Collecting the retained parts of one program, bounded before anything is kept."""

from dataclasses import dataclass, field

from hedgerow_plans.protocol.messages import ProgramReference
from hedgerow_plans.protocol.parts import MAX_PART_BYTES, join
from hedgerow_plans.protocol.refusals import Refused


@dataclass(slots=True)
class ProgramFetch:
    """The parts of one program as they come, in any order and more than once."""

    reference: ProgramReference
    limit_bytes: int
    parts: dict[int, bytes] = field(default_factory=dict)

    def add(self, digest: str, part: int, content: bytes) -> bytes | Refused | None:
        """Return the encoded program once the last part is here, why it is refused, or None while parts are missing."""
        wanted = digest == self.reference.digest and part < self.reference.parts
        if not wanted or not 0 < len(content) <= MAX_PART_BYTES:
            return None
        self.parts[part] = content
        if len(self.parts) < self.reference.parts:
            return None
        in_order = [self.parts[number] for number in range(self.reference.parts)]
        self.parts.clear()
        return join(self.reference, in_order, self.limit_bytes)
