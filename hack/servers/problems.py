"""What can go wrong with a server, as sentences a person can act on."""

from provision.problems import Problem


class ServerProblem(Problem):
    """A server did not start, did not become ready, or ended too early."""


class PortTaken(ServerProblem):
    """A port is held by somebody else; the only problem that trying other ports can cure."""
