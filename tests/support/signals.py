"""Children that see signals as at a terminal: whoever started this run may have had some of them ignored."""

import signal

_OFTEN_IGNORED = (signal.SIGINT, signal.SIGHUP)  # by a shell's `&`, by nohup


def heed_signals() -> None:
    """Stop ignoring; for `preexec_fn`, because what is ignored is inherited."""
    for number in _OFTEN_IGNORED:
        signal.signal(number, signal.SIG_DFL)
