"""Start of the trainer process: bound to its parent's life, one thread for BLAS, then the job."""

import ctypes
import os
import signal
import sys
import traceback

from hedgerow_agent.trainer.channel import Channel
from hedgerow_agent.trainer.protocol import Error, Start, shortened

_PR_SET_PDEATHSIG = 1
EXIT_CRASHED = 1


def main() -> int:
    """Run one job and return the exit code."""
    _die_with_parent()
    # Before numpy is imported: results must not depend on how many cores there are.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    channel = Channel()
    start = channel.wait()
    if not isinstance(start, Start):
        return 0  # told to stop before anything began
    try:
        from hedgerow_agent.trainer.job import run_job  # noqa: PLC0415 - numpy comes with it

        run_job(start, channel)
    except Exception as error:  # noqa: BLE001 - the last words of a crash, whatever it is
        traceback.print_exc()
        channel.say(Error(message=shortened(f"{type(error).__name__}: {error}")))
        return EXIT_CRASHED
    return 0


def _die_with_parent() -> None:
    """Have the kernel kill this process when the agent dies, even if it can say nothing any more."""
    parent = os.getppid()
    try:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):
        return  # not Linux: the end of stdin has to do
    if os.getppid() != parent:
        os._exit(0)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # The listening thread may hold stdin's lock, which an ordinary exit would wait for.
    os._exit(code)
