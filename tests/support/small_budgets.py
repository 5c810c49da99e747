"""Programs as microcontrollers get them: images lie sample by sample, and nothing is spent on speed."""

from hedgerow_plans.methods.catalogue import Full, Lora, NormLast
from hedgerow_plans.plan import Program
from support.programs import make_program


def programs_for_small_budgets() -> list[Program]:
    """Return small ones, with norms that follow their batch and such that do not."""
    return [
        make_program("cnn-small", Lora(4, 4), 4, input_shape=(1, 12, 12)),
        make_program("resnet8", Full(), 4, input_shape=(3, 8, 8)),
        make_program("ds-cnn", NormLast(), 4, input_shape=(1, 13, 10)),
    ]
