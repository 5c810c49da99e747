"""TinyTL: biases, lite residual modules, or both, and the last layer; no weight of the model itself.

A bias needs nothing of the forward, and a lite residual module works on an image of a quarter of the pixels, so that
what the backward keeps is small. The module lies beside a block of the network:

    y' = y + upsample(norm(pointwise(relu(norm(grouped(pool(x)))))))

Its last norm starts with scale zero, so that training starts from the base model exactly. With biases trained as well,
the shift of that norm stays frozen: the block's own bias does the same.
"""

from dataclasses import dataclass

from hedgerow_plans.graph.builder import RELU_GAIN, fan_in_init
from hedgerow_plans.graph.ir import Attribute, Graph, Init, Node, Tensor
from hedgerow_plans.methods import anatomy
from hedgerow_plans.methods.adapted import (
    Adapted,
    Insertion,
    MethodError,
    base_of,
    new_parameter,
    put_in,
    refuse,
    train_only,
)
from hedgerow_plans.methods.blocks import Block, blocks
from hedgerow_plans.methods.selection import head

LARGEST_KERNEL = 5
CHANNELS_PER_NORM_GROUP = 8
CONVOLUTION_GROUPS = 2


@dataclass(frozen=True, slots=True)
class LiteResidual:
    """Train lite residual modules (L), biases (B), or both (L+B), and the last layer."""

    residuals: bool = True
    biases: bool = True

    @property
    def name(self) -> str:
        """Return the method's name in a TrainingJob."""
        return "lite-residual"

    def apply(self, graph: Graph) -> Adapted:
        """Put a module beside each block, if wanted, and train what was asked for."""
        if not (self.residuals or self.biases):
            raise MethodError(
                "Method lite-residual trains neither residuals nor biases; choose one, or the method last."
            )
        trained = {*head(self.name, graph), *(anatomy.biases(graph) if self.biases else ())}
        if not self.residuals:
            return train_only(graph, trained)
        found, tensors = blocks(graph), graph.by_name()
        if not found:
            raise refuse(self.name, graph, "it has no convolutions of images; choose adapter or lora")
        insertions = {block.result: _module(block, tensors) for block in found}
        for insertion in insertions.values():
            trained.update(tensor.name for tensor in insertion.parameters[: -1 if self.biases else None])
        return train_only(put_in(graph, self.name, insertions), trained)


def _module(block: Block, tensors: dict[str, Tensor]) -> Insertion:
    """Return the module beside a block; its last parameter is the shift of the last norm."""
    x, y = tensors[block.source], tensors[block.result]
    shape = _Shape.of(x, y)
    names = {part: f"{y.name}.lite_{part}" for part in ("pool", "conv1", "norm1", "relu", "conv2", "norm2", "up")}
    first, second = (x.shape[0], x.shape[0] // shape.groups, *shape.kernel), (y.shape[0], x.shape[0], 1, 1)
    parameters = (
        new_parameter(f"{names['conv1']}.weight", first, fan_in_init(first, RELU_GAIN)),
        new_parameter(f"{names['norm1']}.weight", x.shape[:1], Init("ones")),
        new_parameter(f"{names['norm1']}.bias", x.shape[:1], Init("zeros")),
        new_parameter(f"{names['conv2']}.weight", second, fan_in_init(second, gain=1.0)),
        new_parameter(f"{names['norm2']}.weight", y.shape[:1], Init("zeros")),
        new_parameter(f"{names['norm2']}.bias", y.shape[:1], Init("zeros")),
    )
    return Insertion(parameters, _nodes(names, shape, x, y))


def _nodes(names: dict[str, str], shape: "_Shape", x: Tensor, y: Tensor) -> tuple[Node, ...]:
    pool, conv1, norm1, relu, conv2, norm2, up = names.values()
    padding = (shape.kernel[0] // 2, shape.kernel[1] // 2)
    window: dict[str, Attribute] = {"stride": shape.stride, "padding": padding, "groups": shape.groups}
    nodes = [
        Node(pool, "avg_pool2d", (x.name,), (pool,), attributes={"kernel": shape.pool, "stride": shape.pool}),
        Node(conv1, "conv2d", (pool, f"{conv1}.weight"), (conv1,), attributes=window),
        _norm(norm1, conv1, x.shape[0]),
        Node(relu, "relu", (norm1,), (relu,)),
        Node(conv2, "conv2d", (relu, f"{conv2}.weight"), (conv2,)),
        _norm(norm2, conv2, y.shape[0]),
        Node(up, "upsample_bilinear", (norm2,), (up,), attributes={"size": y.shape[1:]}),
        Node(f"{y.name}.lite_sum", "add", (base_of(y.name), up), (y.name,)),
    ]
    return tuple(nodes)


def _norm(name: str, x: str, channels: int) -> Node:
    inputs = (x, f"{name}.weight", f"{name}.bias")
    return Node(name, "group_norm", inputs, (name,), attributes={"groups": norm_groups(channels)})


def norm_groups(channels: int) -> int:
    """Return the largest number of equal groups that have at least eight channels each."""
    fewest = min(CHANNELS_PER_NORM_GROUP, channels)
    return next(count for count in range(channels // fewest, 0, -1) if channels % count == 0)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Sizes of a module, for rows and columns."""

    pool: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    groups: int

    @classmethod
    def of(cls, x: Tensor, y: Tensor) -> "_Shape":
        """Return the sizes for a block from one image to another."""
        rows, columns = (_axis(before, after) for before, after in zip(x.shape[1:], y.shape[1:], strict=True))
        groups = CONVOLUTION_GROUPS if x.shape[0] % CONVOLUTION_GROUPS == 0 else 1
        pool, kernel, stride = zip(rows, columns, strict=True)
        return cls(pool, kernel, stride, groups)


def _axis(before: int, after: int) -> tuple[int, int, int]:
    """Return pooling, kernel and stride along an axis: halve, or take the mean of all if hardly anything is left."""
    pool = 2 if before >= 4 else before
    size = before // pool
    kernel = LARGEST_KERNEL
    while kernel > size:
        kernel -= 2
    return pool, max(kernel, 1), min(max(1, round(before / after)), size)
