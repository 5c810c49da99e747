"""The schedule of learning rates that a device was told, ready to be asked for the rate of a step."""

from hedgerow_plans.protocol.messages import RateSchedule
from hedgerow_plans.training import schedules


def rates(told: RateSchedule | None) -> schedules.Schedule:
    """Return the schedule; without one the rate stays the same."""
    match told:
        case RateSchedule(kind="step"):
            return schedules.Stepped(told.every_epochs, float(told.factor))
        case RateSchedule(kind="cosine"):
            return schedules.Cosine(told.warm_up_steps, float(told.final_share))
        case _:
            return schedules.Constant()
