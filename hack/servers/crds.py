"""Waiting for CustomResourceDefinitions: `kubectl wait` fails on one without any status, so it is asked again."""

import time

from servers.commands import Command
from servers.problems import ServerProblem

_TIMEOUT_SECONDS = 60.0
_NO_STATUS_YET = "accessor error"


def wait_until_established(kubectl: Command, *names: str) -> None:
    """Return once objects of these kinds (full CRD names) can be made."""
    wanted = [f"crd/{name}" for name in names]
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        answer = kubectl("wait", "--for=condition=Established", "--timeout=60s", *wanted, check=False)
        if answer.returncode == 0:
            return
        if _NO_STATUS_YET not in answer.stderr or time.monotonic() > deadline:
            raise ServerProblem(f"The kinds {', '.join(names)} are not established: {answer.stderr.strip()}")
        time.sleep(0.1)
