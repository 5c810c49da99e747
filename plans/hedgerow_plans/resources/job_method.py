"""What a TrainingJob says about what is trained: one field a method, with its settings."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from hedgerow_plans.resources.common import Part, one_of

LayerName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9_.-]+$")]
LayerPattern = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9_.*?-]+$")]


class FullMethod(Part):
    """Train every parameter."""


class LastMethod(Part):
    """Train the last layer only."""


class BiasMethod(Part):
    """Train every bias, of layers and of norms."""


class NormLastMethod(Part):
    """Train scale and shift of every norm, and the last layer."""


class LoraMethod(Part):
    """Train low-rank additions to the layers."""

    rank: Annotated[int, Field(ge=1, le=1024)] = Field(description="Inner dimension of the additions.")
    alpha: Annotated[int, Field(ge=1, le=65_536)] | None = Field(
        default=None, description="The additions are scaled by alpha / rank; alpha = rank if absent."
    )
    targets: Annotated[tuple[LayerPattern, ...], Field(max_length=64)] = Field(
        default=(),
        description="Names of the layers that get one, with * for any characters and ? for one; all layers if empty.",
    )


class AdapterMethod(Part):
    """Train bottlenecks behind the branches of the model, and its last layer."""

    width: Annotated[int, Field(ge=1, le=65_536)] = Field(description="Inner dimension of the bottlenecks.")


class LiteParts(StrEnum):
    """What TinyTL trains besides the last layer."""

    RESIDUALS = "Residuals"
    BIASES = "Biases"
    RESIDUALS_AND_BIASES = "ResidualsAndBiases"


class LiteResidualMethod(Part):
    """Train lite residual modules beside the blocks of a convolutional model, its biases, or both (TinyTL)."""

    train: LiteParts = Field(
        default=LiteParts.RESIDUALS_AND_BIASES,
        description="Residuals, Biases or ResidualsAndBiases; the last layer is trained in any case.",
    )


class SparseLayer(Part):
    """A layer whose weight is trained, or a share of it."""

    name: LayerName = Field(description="The layer's name in the model.")
    eighths: Annotated[int, Field(ge=1, le=8)] = Field(
        default=8, description="How many eighths of its input channels are trained; 8 is the whole weight."
    )


class SparseMethod(Part):
    """Train the last biases, chosen weights or shares of them, and the last layer (sparse update)."""

    last_biases: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=0, description="How many layers before the last one have their bias trained, counted from the end."
    )
    layers: Annotated[tuple[SparseLayer, ...], Field(max_length=256)] = Field(
        default=(), description="Layers whose weight is trained."
    )


class MiniLearnMethod(Part):
    """Keep and train the strongest filters of one convolution, and train the linear layers (MiniLearn)."""

    filters: Annotated[int, Field(ge=1, le=65_536)] = Field(description="How many filters are kept.")
    layer: LayerName | None = Field(
        default=None, description="The convolution's name; the last one before the last layer if absent."
    )


class TinyOlPlace(StrEnum):
    """Where TinyOL's layer goes."""

    LAST = "Last"  # in place of the last layer
    TOP = "Top"  # on top of it


class TinyOlMethod(Part):
    """Train one layer on features that are standardised with all samples seen so far (TinyOL)."""

    place: TinyOlPlace = Field(
        default=TinyOlPlace.LAST, description="Last (in place of the last layer) or Top (on top of it)."
    )


_NAMES = ("full", "last", "bias", "normLast", "lora", "adapter", "liteResidual", "sparse", "miniLearn", "tinyOl")


class Method(Part):
    """What is trained; exactly one of the fields is set. The trained tensors are the delta that checkpoints hold."""

    rules = (one_of("method", *_NAMES),)

    full: FullMethod | None = Field(default=None, description="Train every parameter. Write `full: {}`.")
    last: LastMethod | None = Field(default=None, description="Train the last layer only. Write `last: {}`.")
    bias: BiasMethod | None = Field(
        default=None, description="Train every bias, of layers and of norms. Write `bias: {}`."
    )
    norm_last: NormLastMethod | None = Field(
        default=None, description="Train scale and shift of every norm, and the last layer. Write `normLast: {}`."
    )
    lora: LoraMethod | None = Field(default=None, description="Train low-rank additions (LoRA).")
    adapter: AdapterMethod | None = Field(default=None, description="Train bottlenecks and the last layer.")
    lite_residual: LiteResidualMethod | None = Field(
        default=None, description="Train lite residuals, biases or both, and the last layer (TinyTL)."
    )
    sparse: SparseMethod | None = Field(
        default=None, description="Train the last biases, shares of chosen weights and the last layer."
    )
    mini_learn: MiniLearnMethod | None = Field(
        default=None, description="Keep and train the strongest filters of a layer, and linear layers (MiniLearn)."
    )
    tiny_ol: TinyOlMethod | None = Field(
        default=None, description="Train one layer on standardised features, sample by sample if wanted (TinyOL)."
    )
