"""Waiting for CustomResourceDefinitions: until they are established, and until the server lists them.

`kubectl wait` fails on one without any status, so it is asked again. An established kind can be made, but on a busy
machine the server's list of kinds, where kubectl looks up short names, follows a moment later.
"""

import time

from servers.commands import Command
from servers.problems import ServerProblem

_TIMEOUT_SECONDS = 60.0
_NO_STATUS_YET = "accessor error"


def wait_until_established(kubectl: Command, *names: str) -> None:
    """Return once objects of these kinds (full CRD names) can be made, and found by any of their names."""
    wanted = [f"crd/{name}" for name in names]
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        answer = kubectl("wait", "--for=condition=Established", "--timeout=60s", *wanted, check=False)
        if answer.returncode == 0:
            break
        if _NO_STATUS_YET not in answer.stderr or time.monotonic() > deadline:
            raise ServerProblem(f"The kinds {', '.join(names)} are not established: {answer.stderr.strip()}")
        time.sleep(0.1)
    while missing := set(names) - _listed(kubectl):
        if time.monotonic() > deadline:
            raise ServerProblem(
                f"The server does not list the kinds {', '.join(sorted(missing))}, which it established."
            )
        time.sleep(0.1)


def _listed(kubectl: Command) -> set[str]:
    """Return the kinds that the server lists; asking also renews what kubectl remembers of them."""
    return set(kubectl("api-resources", "--output=name", "--cached=false", check=False).stdout.split())
