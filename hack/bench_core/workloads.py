"""What is measured: networks, batches, methods, and the ratios that must not be exceeded."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Bounds:
    """Largest ratios ours / torch: of the step time by number of threads, and of the memory above import."""

    time: Mapping[int, float]
    memory: float


@dataclass(frozen=True, slots=True)
class NativeBounds:
    """Largest ratios of the compiled backend: to torch as it is and to tuned torch by threads, and of the memory."""

    time: Mapping[int, float]
    tuned_time: Mapping[int, float]
    memory: float


@dataclass(frozen=True, slots=True)
class Workload:
    """One network, one batch, one method."""

    name: str
    title: str
    network: str  # a key of `networks.NETWORKS`, on torch's side
    model: str  # a name of the zoo, on ours
    shape: tuple[int, ...]  # of one sample
    batch_size: int
    classes: int
    bounds: Bounds
    method: str = "full"  # full, bias or last
    vocabulary: int = 0  # kinds of token; 0: samples are numbers
    channels_last: bool = False  # whether tuned torch keeps them there
    native: NativeBounds | None = None


def _bounds(one_thread: float, two_threads: float, memory: float) -> Bounds:
    return Bounds(MappingProxyType({1: one_thread, 2: two_threads}), memory)


def _native(default: tuple[float, float], tuned: tuple[float, float], memory: float) -> NativeBounds:
    return NativeBounds(_by_threads(default), _by_threads(tuned), memory)


def _by_threads(ratios: tuple[float, float]) -> Mapping[int, float]:
    return MappingProxyType(dict(zip((1, 2), ratios, strict=True)))


_MOBILENET = "MobileNetV2-0.35 96x96 b8"


def _mobilenet(name: str, title: str, method: str, bounds: Bounds, native: NativeBounds | None = None) -> Workload:
    plain = Workload(name, title, "mobilenet", "mobilenetv2-0.35-norms", (3, 96, 96), 8, 10, bounds, method)
    return replace(plain, channels_last=True, native=native)


_ALL = (
    Workload(
        "mlp",
        "MLP 784-512-256-10 b64",
        "mlp",
        "mlp-wide",
        (784,),
        64,
        10,
        _bounds(0.85, 0.9, 0.2),
        native=_native((0.85, 0.9), (0.9, 0.9), 0.2),
    ),
    Workload(
        "cnn",
        "CNN 16-32-64 on 32x32 b32",
        "cnn",
        "cnn-plain",
        (3, 32, 32),
        32,
        10,
        _bounds(0.95, 1.0, 0.45),
        channels_last=True,
        native=_native((0.55, 0.55), (0.9, 0.85), 0.2),
    ),
    Workload(
        "resnet",
        "ResNet-18 64x64 b8",
        "resnet",
        "resnet18",
        (3, 64, 64),
        8,
        10,
        _bounds(0.75, 0.85, 0.6),
        native=_native((0.55, 0.5), (0.6, 0.65), 0.5),
    ),
    _mobilenet("mobilenet", _MOBILENET, "full", _bounds(1.0, 1.2, 0.55), _native((0.45, 0.4), (0.75, 0.65), 0.5)),
    Workload(
        "encoder",
        "encoder-4x256, seq 64, b8, vocab 8192",
        "encoder",
        "encoder-4x256",
        (64,),
        8,
        2,
        _bounds(1.05, 1.1, 0.55),
        vocabulary=8192,
        native=_native((0.95, 0.95), (0.95, 0.95), 0.5),
    ),
    _mobilenet("mobilenet-bias", f"{_MOBILENET}, biases only", "bias", _bounds(1.0, 1.0, 0.3)),
    _mobilenet("mobilenet-last", f"{_MOBILENET}, last layer only", "last", _bounds(1.0, 1.0, 0.3)),
)

WORKLOADS: Mapping[str, Workload] = MappingProxyType({workload.name: workload for workload in _ALL})
"""Every workload by its name."""
