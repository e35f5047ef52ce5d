"""Exact discrete noise and private selection, from fair bits and without floating point."""
