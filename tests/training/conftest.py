"""Fixtures of the training core's tests; the core is used as the trainer uses it, with one BLAS thread."""

import os

# Read by OpenBLAS when numpy is first imported, so it must stand above every other import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

# Machines that share their cores are slow now and then; a slow example is not a wrong one.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
