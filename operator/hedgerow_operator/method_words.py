"""Methods as words on the command line, such as `lora:4` or `lite-residual:biases`."""

from collections.abc import Callable, Mapping

from hedgerow_operator.mistakes import BadInput
from hedgerow_plans.methods.catalogue import (
    Adapter,
    Bias,
    Full,
    Last,
    LiteResidual,
    Lora,
    Method,
    MiniLearn,
    NormLast,
    Sparse,
)

HELP = (
    "full, last, lora (of rank 4), lora:RANK, lora:RANK:ALPHA, bias, norm-last, adapter:WIDTH, lite-residual, "
    "lite-residual:residuals, lite-residual:biases, sparse:BIASES or minilearn:FILTERS"
)

_PLAIN: Mapping[str, Method] = {
    "full": Full(),
    "last": Last(),
    "lora": Lora(4),
    "bias": Bias(),
    "norm-last": NormLast(),
    "lite-residual": LiteResidual(),
    "lite-residual:residuals": LiteResidual(biases=False),
    "lite-residual:biases": LiteResidual(residuals=False),
}
_NUMBERED: Mapping[tuple[str, int], Callable[..., Method]] = {
    ("lora", 1): Lora,
    ("lora", 2): Lora,
    ("adapter", 1): Adapter,
    ("sparse", 1): Sparse,
    ("minilearn", 1): MiniLearn,
}
_MOST_DIGITS = 9


def parse_method(text: str) -> Method:
    """Return the method that a word names, or end with a sentence."""
    if text in _PLAIN:
        return _PLAIN[text]
    name, *numbers = text.split(":")
    make = _NUMBERED.get((name, len(numbers)))
    if make is None or not all(map(_is_count, numbers)):
        raise BadInput(f"{text!r} is not a method; write {HELP}.")
    return make(*map(int, numbers))


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and int(text) > 0
