"""The compiled backend: runs of a plan's calls become programs that a shared library replays without Python.

`library` finds and loads it, `encoders` turn bound calls into records, `segments` put consecutive records into one
program each. A call that no encoder knows stays numpy's, so that every plan runs on either backend.
"""
