"""Inverted residual blocks (Sandler and others), which MobileNetV2, ProxylessNAS and MCUNet are made of.

A block expands with a 1x1 convolution, filters each channel by itself, and projects without an activation; where the
shape stays, what came in is added. Layers are called by their role, `expand`, `depthwise` and `project`.

Either each convolution is followed by a batch norm, or the norms are folded into biases, as in networks quantised for
microcontrollers.
"""

from dataclasses import dataclass

from hedgerow_plans.models.network import Kernel, Network


@dataclass(frozen=True, slots=True)
class Block:
    """One block: channels in the middle, window, stride and channels that come out."""

    expanded: int
    size: int
    stride: int
    outputs: int


def layer(build: Network, name: str, x: str, outputs: int, kernel: Kernel, *, folded: bool, active: bool = True) -> str:
    """Add a convolution with its norm, or with a bias where norms are folded, and relu6 if it is active."""
    activation = "relu6" if active else ""
    if not folded:
        return build.conv_norm(name, f"{name}.bn", x, outputs, kernel, activation=activation)
    y = build.conv(name, x, outputs, kernel, bias=True)
    return build.activation(f"{name}.relu6", y, activation) if active else y


def inverted_residual(build: Network, name: str, x: str, block: Block, *, folded: bool = False) -> str:
    """Add a block; nothing is expanded if the middle is as wide as what comes in."""
    channels, y = build.shape(x)[0], x
    if block.expanded != channels:
        y = layer(build, f"{name}.expand", y, block.expanded, Kernel(1), folded=folded)
    depthwise = Kernel(block.size, block.stride, groups=block.expanded)
    y = layer(build, f"{name}.depthwise", y, block.expanded, depthwise, folded=folded)
    y = layer(build, f"{name}.project", y, block.outputs, Kernel(1), folded=folded, active=False)
    if block.stride == 1 and block.outputs == channels:
        return build.add(f"{name}.sum", y, x)
    return y


def network(build: Network, x: str, stem: int, blocks: tuple[Block, ...], *, folded: bool = False) -> str:
    """Add the first convolution, which halves the image, and all blocks."""
    x = layer(build, "stem", x, stem, Kernel(3, 2), folded=folded)
    for number, block in enumerate(blocks):
        x = inverted_residual(build, f"blocks.{number}", x, block, folded=folded)
    return x
