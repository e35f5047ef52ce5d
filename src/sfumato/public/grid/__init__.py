"""Noisy grids of counts: how many cells to use, and how to read them."""
