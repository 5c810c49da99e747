"""All methods under one type; `apply` is the same call for each."""

from hedgerow_plans.methods.lora import Lora
from hedgerow_plans.methods.selection import Full, Last

__all__ = ["Full", "Last", "Lora", "Method"]

Method = Full | Last | Lora
"""What a TrainingJob may ask for; `method.apply(graph)` rewrites a forward graph or raises a sentence."""
