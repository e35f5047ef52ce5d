"""Differentially private clustering: publish the shapes in sensitive data, and nobody in them."""

from importlib.metadata import version as _version

from sfumato import datasets, metrics
from sfumato.budget import Budget, Ledger
from sfumato.cluster import GridKMeans, grid_size
from sfumato.domain import Ball
from sfumato.release import Release

__version__ = _version("sfumato")

__all__ = [
    "Ball",
    "Budget",
    "GridKMeans",
    "Ledger",
    "Release",
    "__version__",
    "datasets",
    "grid_size",
    "metrics",
]
