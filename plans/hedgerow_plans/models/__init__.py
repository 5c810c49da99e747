"""The zoo: builders of forward graphs, one module a family, found by name."""
