"""Children that see signals as at a terminal: whoever started this run may have had some of them ignored."""

from collections.abc import Sequence


def heeding_signals(command: Sequence[str]) -> list[str]:
    """Return the command such that it ignores no signal; what is ignored would be inherited."""
    return ["/usr/bin/env", "--default-signal=INT,HUP", *command]
