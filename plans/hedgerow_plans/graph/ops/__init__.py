"""Rows of the operator table, one module a family.

A family module offers `OPERATORS`, a tuple of rows. It knows shapes, arithmetic, scratch bytes and how a gradient is
written with other rows; it knows no kernels and no plans.
"""
