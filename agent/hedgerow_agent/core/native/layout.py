"""The library's structures as C lays them out; `native/include/hedgerow.h` says what they mean."""

import ctypes

ABI = 2
MOST_PARTS = 4
MOST_OPERANDS = 10
MOST_SIZES = 24
MOST_NUMBERS = 4
ABSENT = -1


class Operand(ctypes.Structure):
    """A byte range of a region."""

    _fields_ = (("region", ctypes.c_int64), ("offset", ctypes.c_int64), ("bytes", ctypes.c_int64))


class Record(ctypes.Structure):
    """One kernel with its operands, sizes, numbers and ranges."""

    _fields_ = (
        ("op", ctypes.c_int32),
        ("parts", ctypes.c_int32),
        ("cuts", ctypes.c_int64 * (MOST_PARTS + 1)),
        ("operands", Operand * MOST_OPERANDS),
        ("sizes", ctypes.c_int64 * MOST_SIZES),
        ("numbers", ctypes.c_double * MOST_NUMBERS),
    )


class Region(ctypes.Structure):
    """Memory that operands lie in."""

    _fields_ = (("base", ctypes.c_void_p), ("bytes", ctypes.c_int64), ("writable", ctypes.c_int64))


class Refusal(ctypes.Structure):
    """The first record that was refused, and why."""

    _fields_ = (("record", ctypes.c_int64), ("verdict", ctypes.c_int64))


VERDICTS = (
    "fine",
    "an operator that the library does not know",
    "an operand outside its region",
    "an operand that is missing",
    "a result in memory that must not be written",
    "an operand at a crooked address",
    "sizes that contradict each other or the operands",
    "ranges that do not cover the work",
    "too little memory for the program",
)
"""What a verdict means, by its number."""
