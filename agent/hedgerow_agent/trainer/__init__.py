"""The trainer: a process of its own that runs one job and speaks JSON lines with the agent.

A process of its own so that the connection never starves, the idle agent stays small, and an out-of-memory kill takes
the trainer alone. `protocol` is what both sides share and imports no numpy; everything else here belongs to the child.
"""
