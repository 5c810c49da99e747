"""What a graph costs: bytes, operations, time and energy, by our own rules and by those of published systems."""
