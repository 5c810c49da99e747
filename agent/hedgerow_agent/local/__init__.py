"""`hedgerow-agent train`: one job on this machine, from a manifest or a program file, without operator and broker.

The job runs as the trainer process runs it, with the same checkpoints; only whom it talks to is a terminal instead of
an agent. `wanted` reads what somebody asked for, `planning` makes the program if there is none, `runs` keeps the runs
of one folder apart, `terminal` listens.
"""
