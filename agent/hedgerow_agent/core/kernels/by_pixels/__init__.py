"""Kernels for images that lie by pixels (rows, columns, samples, channels), or by channels where it says so.

A position of a window is an offset in the outer axes, so that what is done for it runs over all samples and channels of
a row at once; a pixel is a row of a matrix, so that matrix products need no turning.
"""
