"""Noisy grids of counts: how many cells, and what to read from them."""
