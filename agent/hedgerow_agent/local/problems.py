"""What ends a local run before its time: one sentence and an exit code."""

EXIT_PROBLEM = 1
EXIT_USAGE = 2
EXIT_DIVERGED = 3
EXIT_INTERRUPTED = 130


class Problem(Exception):  # noqa: N818 - reads as what it is
    """A sentence for people, and the exit code that goes with it."""

    def __init__(self, sentence: str, exit_code: int = EXIT_PROBLEM) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code
