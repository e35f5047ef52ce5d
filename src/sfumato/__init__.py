"""Differentially private clustering: publish the shapes in sensitive data, and nobody in them."""

from importlib.metadata import version as _version

from sfumato import datasets, metrics
from sfumato.budget import Budget, Ledger
from sfumato.cluster import (
    DPDBSCAN,
    DPM,
    CoresetKMeans,
    DensityTree,
    DPMoG,
    GridKMeans,
    LloydKMeans,
    LocalSearchKMeans,
    MaxCoverKMeans,
    MorseClustering,
    SourceTargetClustering,
    grid_size,
)
from sfumato.domain import Ball
from sfumato.planner import recommend
from sfumato.projection import RandomProjection
from sfumato.release import Release

__version__ = _version("sfumato")

__all__ = [
    "DPDBSCAN",
    "DPM",
    "Ball",
    "Budget",
    "CoresetKMeans",
    "DPMoG",
    "DensityTree",
    "GridKMeans",
    "Ledger",
    "LloydKMeans",
    "LocalSearchKMeans",
    "MaxCoverKMeans",
    "MorseClustering",
    "RandomProjection",
    "Release",
    "SourceTargetClustering",
    "__version__",
    "datasets",
    "grid_size",
    "metrics",
    "recommend",
]
