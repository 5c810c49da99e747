"""Scheduling without training: what a problem of recomputation and paging is, stripped of graphs, arenas and devices."""
