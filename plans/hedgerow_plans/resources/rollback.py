"""Requests to go back, as they stand in the spec of a TrainingJob or a Device."""

import re
from typing import Annotated

from pydantic import Field, StringConstraints

from hedgerow_plans.resources.common import Part, Rule, Word

_CHECKPOINT = r"^step-[0-9]{1,12}$"


def is_rollback_target(text: str) -> bool:
    """Return whether a device can be asked to go back there."""
    return text in {"last", "previous", "base"} or re.fullmatch(_CHECKPOINT, text, re.ASCII) is not None


class RollbackRequest(Part):
    """A wish to go back. Whoever writes a new requestId makes a new request; the newest one counts."""

    rules = (
        Rule(
            f"self.to in ['last', 'previous', 'base'] || self.to.matches('{_CHECKPOINT}')",
            "to must be last, previous, base, or a checkpoint id such as step-000150",
            lambda part: is_rollback_target(part.to),
            "to",
        ),
    )

    to: Annotated[str, StringConstraints(min_length=1, max_length=128)] = Field(
        description="Where to go: last (the newest good checkpoint; progress since is dropped), previous (the good one "
        "before what runs now), base (the model without any delta), or the id of a checkpoint such as step-000150."
    )
    request_id: Word = Field(
        description="Any word that was not used before: a new requestId is a new request, the same one is done once."
    )


class ReleaseRequest(Part):
    """Permission for a device that was rolled back to train again."""

    request_id: Word = Field(description="The requestId of the rollback whose hold ends.")
