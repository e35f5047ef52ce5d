"""Exact randomness: discrete noise and private selection from fair bits, without floating point."""

from sfumato.mechanisms.entropy import Entropy
from sfumato.mechanisms.noise import discrete_gaussian, discrete_laplace
from sfumato.mechanisms.selection import exponential, permute_and_flip
from sfumato.mechanisms.sparse import sparse_histogram, threshold_for

__all__ = [
    "Entropy",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential",
    "permute_and_flip",
    "sparse_histogram",
    "threshold_for",
]
