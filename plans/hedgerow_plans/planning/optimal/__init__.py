"""The search behind `optimal`: plans by repair and improvement, bounds by a staged relaxation that a solver solves.

The only part of `hedgerow_plans` that needs numpy and the solver (the extra `planner`); nothing on a device imports it.
"""
