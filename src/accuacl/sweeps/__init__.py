"""Grids of runs: their cells, what they cost, the paper's recipes."""
