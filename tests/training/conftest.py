"""Fixtures of the training core's tests; the core is used as the trainer uses it, with one BLAS thread."""

import os

# Read by OpenBLAS when numpy is first imported, so it must stand above every other import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
