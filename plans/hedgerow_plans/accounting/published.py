"""What papers print, as data with its source. Nothing here is computed, and nothing else holds such figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hedgerow_plans.accounting.tte import SparseUpdate

TINYTL_SOURCE = "TinyTL (arXiv 2007.11622), training memory on Flowers-102 at batch 8"
TINYTL_PROFILER_SOURCE = "TinyTL's released profiler; the paper does not print it"
TTE_SOURCE = "TTE (arXiv 2206.15472), names of the update schemes in the released code"
TTE_LAST_LAYERS_SOURCE = "TTE (arXiv 2206.15472), the baseline that trains the last 12 layers"


@dataclass(frozen=True, slots=True)
class TinyTlMethod:
    """Megabytes (10^6 bytes) of one method by image side, and of its parameters."""

    name: str
    model_megabytes: float
    training_megabytes: Mapping[int, float]
    recomputed_sides: tuple[int, ...] = ()  # where the figure is not the paper's


TINYTL_BATCH = 8
TINYTL_CLASSES = 102
TINYTL_METHODS = (
    TinyTlMethod(
        "FT-Full",
        18.986360,
        {96: 87.2, 128: 140.5, 160: 208.7, 192: 292.4, 224: 390.8, 320: 778.5},
        recomputed_sides=(320,),
    ),
    TinyTlMethod("FT-Norm+Last", 5.264432, {160: 100.7, 192: 142.9, 224: 192.4, 256: 249.9, 320: 387.5}),
    TinyTlMethod("FT-Last", 5.138576, {224: 30.8, 256: 38.7, 288: 47.6, 320: 57.6}),
    TinyTlMethod("TinyTL-B", 5.201504, {160: 18.7, 192: 24.7, 224: 31.7, 256: 39.8, 288: 49.0, 320: 59.3}),
    TinyTlMethod("TinyTL-L", 10.587824, {160: 24.1, 192: 30.1, 224: 37.1, 256: 45.2, 288: 54.4, 320: 64.7}),
    TinyTlMethod("TinyTL-L+B", 10.633520, {160: 24.2, 192: 30.1, 224: 37.1, 256: 45.2, 288: 54.4, 320: 64.7}),
)


@dataclass(frozen=True, slots=True)
class TteScheme:
    """A sparse update and the kilobytes (1024 bytes, the fraction dropped) that its authors call it by."""

    kilobytes: int
    update: SparseUpdate = field(repr=False)


def _scheme(kilobytes: int, biases: int, positions: tuple[int, ...], eighths: tuple[int, ...]) -> TteScheme:
    ratios = {position: eighth / 8 for position, eighth in zip(positions, eighths, strict=True)}
    return TteScheme(kilobytes, SparseUpdate(biases, ratios))


TTE_SIDE = 128
TTE_SCHEMES: Mapping[str, tuple[TteScheme, ...]] = {
    "mobilenetv2-0.35": (
        _scheme(49, 16, (36, 39, 40, 41, 42, 45, 48, 49), (8, 8, 0, 2, 1, 1, 1, 1)),
        _scheme(73, 20, (32, 33, 36, 39, 41, 42, 45, 48), (1, 4, 4, 8, 2, 1, 1, 8)),
        _scheme(99, 25, (27, 30, 33, 36, 39, 42, 45, 48), (8, 8, 8, 8, 8, 1, 4, 8)),
        _scheme(123, 31, (27, 30, 33, 36, 39, 42, 45, 48), (8, 8, 8, 8, 8, 4, 8, 8)),
        _scheme(138, 34, (27, 30, 33, 36, 39, 42, 45, 48), (8, 8, 8, 8, 8, 8, 8, 8)),
    ),
    "mcunet-5fps": (
        _scheme(49, 20, (23, 24, 27, 30, 33, 39), (0, 2, 4, 4, 0, 0)),
        _scheme(74, 21, (21, 23, 24, 26, 27, 30), (8, 0, 8, 0, 4, 8)),
        _scheme(99, 22, (21, 24, 27, 30, 36, 39), (8, 8, 8, 8, 1, 2)),
        _scheme(124, 24, (21, 24, 27, 30, 33, 39), (2, 8, 8, 8, 4, 4)),
        _scheme(148, 23, (21, 24, 27, 30, 36, 39), (8, 8, 8, 8, 8, 4)),
    ),
    "proxylessnas-0.3": (
        _scheme(49, 21, (39, 42, 44, 45, 50, 51, 54, 57), (2, 8, 0, 8, 0, 1, 2, 2)),
        _scheme(74, 28, (33, 36, 39, 42, 45, 51, 54, 57), (4, 2, 8, 8, 8, 4, 2, 4)),
        _scheme(98, 25, (36, 39, 42, 45, 48, 51, 54, 57), (8, 4, 8, 8, 2, 4, 8, 8)),
        _scheme(120, 32, (36, 39, 42, 45, 48, 51, 54, 57), (8, 8, 8, 8, 4, 8, 8, 8)),
        _scheme(148, 45, (36, 39, 42, 45, 48, 51, 54, 57), (8, 8, 8, 8, 8, 8, 8, 8)),
    ),
}

TTE_LAST_LAYERS = ("mcunet-5fps", 12, 448)
"""A model, how many of its last layers are trained in full, and the kilobytes that takes."""


POET_SOURCE = "POET (arXiv 2207.07697), its released code at batch 1"


@dataclass(frozen=True, slots=True)
class PoetNetwork:
    """Nodes and bytes of forward and backward, and joules of a step by chip, to as many digits as were recorded."""

    nodes: int
    forward_bytes: int
    working_set_bytes: int
    keep_all_bytes: int
    joules: Mapping[str, str]


POET_NETWORKS = {
    "linear": PoetNetwork(27, 6_776, 3_256, 7_416, {"m0": "0.104679", "m4": "0.00045575", "a72": "0.00658942"}),
    "transformer": PoetNetwork(
        19, 33_032_192, 31_457_280, 37_748_736, {"m0": "1896.45", "m4": "8.25678", "a72": "119.38"}
    ),
    "vgg16_cifar": PoetNetwork(
        81, 2_449_488, 1_048_576, 2_465_832, {"m0": "790.101", "m4": "3.43994", "a72": "49.7361"}
    ),
    "resnet18_cifar": PoetNetwork(
        133, 2_437_712, 262_144, 2_453_760, {"m0": "125.332", "m4": "0.545669", "a72": "7.88951"}
    ),
    "resnet18": PoetNetwork(
        127, 28_487_232, 10_408_192, 28_577_536, {"m0": "6298.74", "m4": "27.4235", "a72": "396.5"}
    ),
    "vgg16": PoetNetwork(81, 115_310_400, 51_380_224, 115_505_152, {"m0": "36804.6", "m4": "160.24", "a72": "2316.81"}),
    "bert": PoetNetwork(
        195, 379_062_272, 31_457_280, 383_778_816, {"m0": "21880.4", "m4": "95.2631", "a72": "1377.35"}
    ),
    "resnet50": PoetNetwork(
        335, 127_373_888, 12_390_400, 127_759_104, {"m0": "9694.89", "m4": "42.2096", "a72": "610.284"}
    ),
}
