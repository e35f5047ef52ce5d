"""Exact discrete noise and private selection, from fair bits and without floating point."""

from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.noise import discrete_gaussian, discrete_laplace
from sfumato.private.mechanisms.selection import exponential, permute_and_flip
from sfumato.private.mechanisms.sparse_histogram import sparse_histogram, threshold_for

__all__ = [
    "Entropy",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential",
    "permute_and_flip",
    "sparse_histogram",
    "threshold_for",
]
