"""Scheduling without training: recomputation and paging, stripped of graphs, arenas and devices."""
