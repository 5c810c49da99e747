"""Sizes as people write them in Kubernetes ("256Mi", "1.5G", 4096), and as they are shown in columns.

Only sizes: the sub-unit suffixes (n, u, m) that the general grammar has make no sense for bytes and are refused.
"""

import re
from decimal import ROUND_CEILING, Decimal, localcontext
from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

QUANTITY_PATTERN = "^([0-9]{1,15}([.][0-9]{1,9})?)(Ki|Mi|Gi|Ti|k|M|G|T|[eE][0-9]{1,2})?$"
MAX_QUANTITY_BYTES = 2**53  # 8Pi: JSON numbers are exact up to here
_PARTS = re.compile(QUANTITY_PATTERN, re.ASCII)
_HOW_TO_WRITE = "write bytes, or a quantity such as 64Mi, 1.5Gi or 500k"
_FACTORS = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
_SHOWN = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def parse_quantity(text: str) -> int:
    """Return the number of bytes, fractions rounded up as Kubernetes does; raise ValueError on anything else."""
    found = _PARTS.fullmatch(text) if len(text) <= 32 else None
    if not found:
        raise ValueError(f"{text[:40]!r} is not a size: {_HOW_TO_WRITE}.")
    number, suffix = found[1], found[3] or ""
    factor = _FACTORS[suffix] if suffix in _FACTORS else 10 ** int(suffix[1:])
    with localcontext() as exact:
        exact.prec = 150
        size_bytes = int((Decimal(number) * factor).to_integral_value(rounding=ROUND_CEILING))
    if size_bytes > MAX_QUANTITY_BYTES:
        raise ValueError(f"{text!r} is more than 8Pi, the largest size there is here.")
    return size_bytes


def format_bytes(size_bytes: int) -> str:
    """Return a size as shown in columns: three digits or so and a binary suffix, such as 3.1Mi or 512."""
    for suffix, factor in _SHOWN:
        if size_bytes >= factor:
            tenths = (size_bytes * 10 + factor // 2) // factor
            whole, rest = divmod(tenths, 10)
            return f"{whole}.{rest}{suffix}" if whole < 100 and rest else f"{(tenths + 5) // 10}{suffix}"
    return str(size_bytes)


def _as_text(value: object) -> object:
    """Whole numbers are quantities too; YAML reads them as integers."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _checked(value: object) -> object:
    text = _as_text(value)
    if isinstance(text, str):
        try:
            parse_quantity(text)
        except ValueError as problem:
            raise PydanticCustomError("quantity", "{problem}", {"problem": str(problem)}) from None
    return text


Quantity = Annotated[
    str,
    StringConstraints(max_length=32),
    BeforeValidator(_checked),
    Field(
        json_schema_extra={
            "x-kubernetes-int-or-string": True,
            "x-kubernetes-validations": [
                {"rule": f"string(self).matches('{QUANTITY_PATTERN}')", "message": f"must be a size: {_HOW_TO_WRITE}"},
                {
                    "rule": "!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('8Pi')) <= 0",
                    "message": "must be at most 8Pi",
                },
            ],
        }
    ),
]
"""A size: a quantity string, or a whole number of bytes."""
