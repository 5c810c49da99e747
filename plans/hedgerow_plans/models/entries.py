"""What the zoo offers: one line a model, with its family, builder, samples, classes and a sentence for people."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models.autoencoder import ad_autoencoder, autoencoder
from hedgerow_plans.models.bert import Encoder, bert
from hedgerow_plans.models.convolutional import cnn_plain, cnn_small
from hedgerow_plans.models.densenet import densenet121
from hedgerow_plans.models.inception import inceptionv3
from hedgerow_plans.models.minilearn import minilearn_cifar, minilearn_har, minilearn_kws
from hedgerow_plans.models.mobilenet import mobilenetv1, mobilenetv2
from hedgerow_plans.models.perceptron import mlp
from hedgerow_plans.models.proxyless import proxylessnas_mobile
from hedgerow_plans.models.resnet import resnet
from hedgerow_plans.models.squeezenet import squeezenet
from hedgerow_plans.models.tiny import ds_cnn, resnet8
from hedgerow_plans.models.tte import mcunet_5fps, mobilenetv2_035, proxylessnas_03
from hedgerow_plans.models.vgg import vgg

Setting = int | float | bool | tuple[int, ...]
"""What a model may be told besides its classes and its samples."""

_RECONSTRUCTION = "reconstruction"
_IMAGENET = (3, 224, 224)
_IMAGENET_CLASSES = 1000
_TTE = (3, 128, 128)
_DIGITS = (1, 8, 8)
"""One grey image of the handwritten digits that ship with scikit-learn."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A model of the zoo."""

    name: str
    family: str
    builder: Callable[..., Graph]  # (classes, input shape, settings by name)
    input_shape: tuple[int, ...]
    classes: int
    description: str
    settings: tuple[str, ...] = ()  # names of what the builder may be told besides
    head_counts: bool = True  # whether the published size counts the last layer
    loss: str = "cross_entropy"  # what it is trained with

    @property
    def classifies(self) -> bool:
        """Whether it tells classes apart, instead of giving back its samples."""
        return self.loss != _RECONSTRUCTION


def _imagenet(name: str, family: str, builder: Callable[..., Graph], description: str, *settings: str) -> Entry:
    return Entry(name, family, builder, _IMAGENET, _IMAGENET_CLASSES, description, settings)


def _reconstructing(
    name: str, family: str, builder: Callable[..., Graph], shape: tuple[int, ...], description: str, *settings: str
) -> Entry:
    return Entry(name, family, builder, shape, 0, description, settings, loss=_RECONSTRUCTION)


def _tte(name: str, builder: Callable[..., Graph], description: str) -> Entry:
    return Entry(name, "tte", builder, _TTE, 2, f"{description}, norms folded, as TTE trains it", head_counts=False)


def _bert(name: str, encoder: Encoder, length: int, description: str) -> Entry:
    builder = partial(bert, encoder=encoder, name=name)
    return Entry(name, "bert", builder, (length,), 2, description, head_counts=False)


_ALL = (
    Entry("mlp", "perceptron", mlp, _DIGITS, 10, "Perceptron with hidden layers of 64 and 32", ("hidden",)),
    Entry(
        "mlp-wide",
        "perceptron",
        partial(mlp, hidden=(512, 256)),
        (784,),
        10,
        "Perceptron with hidden layers of 512 and 256",
    ),
    Entry("cnn-small", "convolutional", cnn_small, _DIGITS, 10, "Four convolutions, one residual sum", ("channels",)),
    Entry("cnn-plain", "convolutional", cnn_plain, (3, 32, 32), 10, "Three convolutions, no norms", ("channels",)),
    *(
        _imagenet(f"vgg{depth}", "vgg", partial(vgg, depth=depth), f"VGG with {depth} layers, no norms", "width")
        for depth in (11, 16, 19)
    ),
    *(
        _imagenet(f"resnet{depth}", "resnet", partial(resnet, depth=depth), f"ResNet with {depth} layers", "width")
        for depth in (18, 34, 50)
    ),
    _imagenet("densenet121", "densenet", densenet121, "DenseNet with 121 layers", "growth"),
    _imagenet("squeezenet", "squeezenet", squeezenet, "SqueezeNet 1.0", "width"),
    _imagenet("mobilenetv1", "mobilenet", mobilenetv1, "MobileNet, separable convolutions", "width"),
    _imagenet("mobilenetv2", "mobilenet", mobilenetv2, "MobileNetV2, inverted residuals", "width"),
    Entry(
        "mobilenetv2-0.35-norms",
        "mobilenet",
        partial(mobilenetv2, width=0.35),
        (3, 96, 96),
        10,
        "MobileNetV2 with 0.35 of its channels and its norms",
    ),
    _imagenet("proxylessnas-mobile", "proxyless", proxylessnas_mobile, "ProxylessNAS for phones", "width"),
    Entry(
        "inceptionv3",
        "inception",
        inceptionv3,
        (3, 299, 299),
        _IMAGENET_CLASSES,
        "InceptionV3 without its auxiliary classifier",
        ("width", "auxiliary"),
    ),
    _tte("mobilenetv2-0.35", mobilenetv2_035, "MobileNetV2 with 0.35 of its channels"),
    _tte("proxylessnas-0.3", proxylessnas_03, "ProxylessNAS with 0.3 of its channels"),
    _tte("mcunet-5fps", mcunet_5fps, "MCUNet at 5 images a second"),
    Entry("resnet8", "mlperf-tiny", resnet8, (3, 32, 32), 10, "MLPerf Tiny: images", ("width",)),
    Entry("ds-cnn", "mlperf-tiny", ds_cnn, (1, 49, 10), 12, "MLPerf Tiny: spoken words", ("width",)),
    Entry(
        "mobilenetv1-0.25",
        "mlperf-tiny",
        partial(mobilenetv1, width=0.25, bias=True),
        (3, 96, 96),
        2,
        "MLPerf Tiny: is there a person",
    ),
    _reconstructing("ad-autoencoder", "mlperf-tiny", ad_autoencoder, (640,), "MLPerf Tiny: sounds of machines"),
    _reconstructing("autoencoder", "autoencoder", autoencoder, (64,), "Vibrations, as TinyOL", "hidden"),
    Entry("minilearn-cifar", "minilearn", minilearn_cifar, (3, 32, 32), 3, "MiniLearn: images"),
    Entry("minilearn-har", "minilearn", minilearn_har, (90, 3, 1), 6, "MiniLearn: movements"),
    Entry("minilearn-kws", "minilearn", minilearn_kws, (1, 62, 12), 5, "MiniLearn: spoken words"),
    _bert("bert-base", Encoder(12, 768, 12), 128, "BERT with 12 layers, 768 wide"),
    _bert("bert-small", Encoder(4, 512, 8), 128, "BERT with 4 layers, 512 wide"),
    _bert(
        "encoder-4x256",
        Encoder(4, 256, 4, vocabulary=8192, positions=64, kinds=0),
        64,
        "Encoder with 4 layers, 256 wide",
    ),
)

ENTRIES: Mapping[str, Entry] = MappingProxyType({entry.name: entry for entry in _ALL})
"""Every model by its name."""
