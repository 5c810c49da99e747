"""What can go wrong in the core; every text is a sentence fit for a status message, with the numbers as fields."""

# ruff: noqa: N818 - the names say what happened


class CoreError(Exception):
    """Anything the core refuses or gives up on."""


class BadInput(CoreError):
    """Data, weights or state that do not fit the program; nothing was changed."""


class Diverged(CoreError):
    """Training left the range of numbers; what is in the arena is spoilt, go back to a checkpoint."""


class NonFiniteLoss(Diverged):
    """The loss is no longer a number."""

    def __init__(self, step: int, loss: float) -> None:
        super().__init__(
            f"The loss of step {step} is {loss}; training stopped. Lower the learning rate or check the data."
        )
        self.step = step
        self.loss = loss


class NonFiniteModel(Diverged):
    """The losses of a model, or its parameters, are no longer numbers, so that it must not be kept."""

    def __init__(self, step: int, problem: str) -> None:
        super().__init__(
            f"After step {step} {problem}; training stopped before this model was kept. "
            "Lower the learning rate or check the data."
        )
        self.step = step


class GuardZoneChanged(CoreError):
    """Something wrote above the bytes its plan promised."""

    def __init__(self, promised_bytes: int, measured_bytes: int) -> None:
        super().__init__(
            f"A step wrote up to byte {measured_bytes} of the arena, {measured_bytes - promised_bytes} bytes above the "
            f"promised {promised_bytes}; the plan is wrong, refuse it."
        )
        self.promised_bytes = promised_bytes
        self.measured_bytes = measured_bytes


class PagingFailed(CoreError):
    """Storage did not take or give back what was paged out."""
