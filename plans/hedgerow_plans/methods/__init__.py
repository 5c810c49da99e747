"""What is trained: rewrites of a forward graph that name their delta."""
