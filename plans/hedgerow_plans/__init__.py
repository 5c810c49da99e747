"""The contract between operator and agent.

What belongs here: resources, graphs, methods, plans, their verification and encoding, messages and signatures, as pure
values and functions. What must not: a clock, a file, a socket, a process, a thread. Whoever needs those calls in from
outside and passes the result as an argument. Import rules in `pyproject.toml` hold this package to it.
"""
