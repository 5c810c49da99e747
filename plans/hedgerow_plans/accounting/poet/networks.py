"""POET's networks at batch 1, as it builds them: small residual blocks always have a convolution in their shortcut."""

from collections.abc import Callable, Mapping

from hedgerow_plans.accounting.poet.chips import CHIPS
from hedgerow_plans.accounting.poet.layers import Layer, Stack, training_problem
from hedgerow_plans.bare import BareProblem

_TOKENS, _WIDTH, _HEADS = 512, 768, 12
_VGG16 = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))


def problem(network: str, chip: str) -> BareProblem:
    """Return one step of training a network on a chip."""
    return training_problem(f"poet-{network}-{chip}", NETWORKS[network](), CHIPS[chip])


def _linear() -> list[Layer]:
    stack = Stack()
    stack.input(784)
    for width in (10, 120, 100, 200, 10, 10):
        stack.linear(width)
        stack.rectify()
    stack.compare(10)
    return stack.layers


def _vgg16(side: int, classes: int) -> list[Layer]:
    stack = Stack()
    stack.input(3, side, side)
    for channels, repeats in _VGG16:
        for _ in range(repeats):
            stack.convolve(channels, 3, padding=1)
            stack.rectify()
        stack.pool(2, 2)
    stack.flatten()
    for _ in range(2):
        stack.linear(4096)
        stack.rectify()
        stack.rectify()  # dropout
    return _classified(stack, classes)


def _resnet18_cifar() -> list[Layer]:
    stack = Stack()
    stack.input(3, 32, 32)
    stack.convolve(16, 3, padding=1)
    stack.normalise()
    for channels, stride in ((16, 1), (16, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        before = stack.top
        _normed(stack, channels, 3, stride, 1)
        path = _normed(stack, channels, 3, 1, 1)
        stack.convolve(channels, 3, stride, 1, before)
        _joined(stack, path)
    return _pooled(stack, 8, 10)


def _resnet18() -> list[Layer]:
    stack = _image_stem()
    for channels, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        first = _normed(stack, channels, 3, stride, 1)
        stack.convolve(channels, 3, 1, 1)
        _joined(stack, first)
    return _pooled(stack, 7, 1000)


def _resnet50() -> list[Layer]:
    stack = _image_stem()
    for channels, repeats, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for number in range(repeats):
            first = _normed(stack, channels, 1, stride if number == 0 else 1, 0)
            _normed(stack, channels, 3, 1, 1)
            stack.convolve(4 * channels, 1)
            _joined(stack, first)
    return _pooled(stack, 7, 1000)


def _image_stem() -> Stack:
    stack = Stack()
    stack.input(3, 224, 224)
    stack.convolve(64, 7, 2, 3)
    stack.normalise()
    stack.pool(3, 2)
    return stack


def _normed(stack: Stack, channels: int, window: int, stride: int, padding: int) -> int:
    stack.convolve(channels, window, stride, padding)
    stack.normalise()
    return stack.rectify()


def _joined(stack: Stack, path: int) -> None:
    """End a residual block."""
    stack.normalise()
    stack.sum(path)
    stack.rectify()


def _pooled(stack: Stack, side: int, classes: int) -> list[Layer]:
    stack.pool(side, side)
    stack.flatten()
    return _classified(stack, classes)


def _classified(stack: Stack, classes: int) -> list[Layer]:
    stack.linear(classes)
    stack.compare(classes)
    return stack.layers


def _transformer(blocks: int) -> list[Layer]:
    stack = Stack()
    stack.input(_TOKENS, _WIDTH)
    for _ in range(blocks):
        _transformer_block(stack)
    stack.compare(_TOKENS)
    return stack.layers


def _transformer_block(stack: Stack) -> None:
    before, pairs = stack.top, _HEADS * _TOKENS**2
    stack.add((3, _TOKENS, _WIDTH), 3 * _TOKENS * _WIDTH**2)  # queries, keys and values
    stack.add((_HEADS, _TOKENS, _TOKENS), pairs * (_WIDTH // _HEADS + 2))  # their products
    stack.add((_TOKENS, _WIDTH), 2 * _TOKENS**2 * _WIDTH)
    attended = stack.linear(_WIDTH)
    stack.sum(before)
    inner = (_TOKENS, 4 * _WIDTH)
    stack.add(inner, 2 * (_WIDTH + 1) * 4 * _WIDTH + 4 * _WIDTH + _TOKENS * 4 * _WIDTH)  # with its ReLU
    stack.linear(_WIDTH)
    stack.sum(attended)


NETWORKS: Mapping[str, Callable[[], list[Layer]]] = {
    "linear": _linear,
    "transformer": lambda: _transformer(1),
    "vgg16_cifar": lambda: _vgg16(32, 10),
    "resnet18_cifar": _resnet18_cifar,
    "resnet18": _resnet18,
    "vgg16": lambda: _vgg16(224, 1000),
    "bert": lambda: _transformer(12),
    "resnet50": _resnet50,
}
"""Forward passes by the name POET gives them."""
