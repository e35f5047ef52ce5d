"""Differentially private clustering: publish the shapes in sensitive data, but nobody in them."""

import typing as _typing
from importlib import import_module as _import_module

from sfumato.progress import progress

if _typing.TYPE_CHECKING:
    from sfumato import datasets, holders, metrics
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
        PrivateKMeans,
        SourceTargetClustering,
        estimate_bounds,
        estimate_levels,
        grid_size,
        suggest_max_rows,
    )
    from sfumato.curator.inspection import check
    from sfumato.domain import Ball, Sparse, Sphere, Unit
    from sfumato.domain.on_spark import on_spark
    from sfumato.domain.text import scan_csv
    from sfumato.pca import PrivatePCA
    from sfumato.pipelines import check_pipeline
    from sfumato.planner import recommend
    from sfumato.preprocessing import PublicScaler
    from sfumato.projection import RandomProjection
    from sfumato.release import Release

    __version__: str

__all__ = ["DPDBSCAN", "DPM", "Ball", "Budget", "CoresetKMeans", "DPMoG", "DensityTree", "GridKMeans"]
__all__ += ["Ledger", "LloydKMeans", "LocalSearchKMeans", "MaxCoverKMeans", "MorseClustering"]
__all__ += ["PrivateKMeans", "PrivatePCA", "PublicScaler", "RandomProjection", "Release"]
__all__ += ["SourceTargetClustering", "Sparse", "Sphere", "Unit", "__version__", "check", "check_pipeline"]
__all__ += ["datasets", "estimate_bounds", "estimate_levels", "grid_size", "holders", "metrics"]
__all__ += ["on_spark", "progress", "recommend", "scan_csv", "suggest_max_rows"]

# Loaded on first use: a Spark worker needs only the engine, and a command only its own part.
_HOMES = {
    "Ball": "domain",
    "Budget": "budget",
    "Ledger": "budget",
    "PrivatePCA": "pca",
    "PublicScaler": "preprocessing",
    "RandomProjection": "projection",
    "Release": "release",
    "Sparse": "domain",
    "Sphere": "domain",
    "Unit": "domain",
    "check": "curator.inspection",
    "check_pipeline": "pipelines",
    "on_spark": "domain.on_spark",
    "recommend": "planner",
    "scan_csv": "domain.text",
}


def __getattr__(name: str) -> _typing.Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("sfumato")
    if name not in __all__:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    if name in ("datasets", "holders", "metrics"):
        return _import_module(f"sfumato.{name}")
    value = getattr(_import_module(f"sfumato.{_HOMES.get(name, 'cluster')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
