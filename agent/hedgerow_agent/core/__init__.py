"""The training core: kernels, arena and executor that follow a plan byte for byte.

It imports numpy, the standard library and `hedgerow_plans`, nothing else of the agent: no files but the ones it is
given, no network, no clock. One thread is the default: whoever starts the process sets `OPENBLAS_NUM_THREADS` before
numpy is loaded.
"""
