"""Measures a training step of the core beside the same step in PyTorch eager, in processes that share nothing.

PyTorch never enters the project's environment: it lives in a venv of its own, and what runs there (`peer`, `networks`)
imports nothing of Hedgerow. The other way round, only those two modules import torch. `core` runs our side; `timing`
is the stop-watch of both and needs the standard library alone.
"""
