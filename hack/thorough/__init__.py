"""`make thorough`: every list that the product promises, in full, with a dated report.

A check is a command that must exit 0. What it measured it prints as `FIGURE name: value`; the report collects those
lines with the command, the machine and the commit. A run that is interrupted goes on where it stopped, as long as the
sources are the same.
"""
