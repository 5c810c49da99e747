"""All methods under one type; `apply` is the same call for each."""

from hedgerow_plans.methods.adapter import Adapter
from hedgerow_plans.methods.lite_residual import LiteResidual
from hedgerow_plans.methods.lora import Lora
from hedgerow_plans.methods.minilearn import MiniLearn
from hedgerow_plans.methods.selection import Bias, Full, Last, NormLast
from hedgerow_plans.methods.sparse import LayerShare, Sparse
from hedgerow_plans.methods.tinyol import TinyOl

__all__ = [
    "Adapter",
    "Bias",
    "Full",
    "Last",
    "LayerShare",
    "LiteResidual",
    "Lora",
    "Method",
    "MiniLearn",
    "NormLast",
    "Sparse",
    "TinyOl",
]

Method = Full | Last | Bias | NormLast | Lora | Adapter | LiteResidual | Sparse | MiniLearn | TinyOl
"""What a TrainingJob may ask for; `method.apply(graph)` rewrites a forward graph or raises a sentence."""
