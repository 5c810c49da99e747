"""How a graph fits into a budget: lifetimes, layout, strategies and ladders. `verify` shares nothing with it."""
