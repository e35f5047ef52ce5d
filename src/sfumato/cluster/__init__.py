"""Private clustering algorithms, one file each."""

from sfumato.cluster.base import PrivateClusterer
from sfumato.cluster.coreset import CoresetKMeans
from sfumato.cluster.dbscan import DPDBSCAN
from sfumato.cluster.density_tree import DensityTree
from sfumato.cluster.dpm import DPM
from sfumato.cluster.estimates import estimate_bounds, suggest_max_rows
from sfumato.cluster.grid import GridKMeans, grid_size
from sfumato.cluster.lloyd import LloydKMeans
from sfumato.cluster.local_search import LocalSearchKMeans
from sfumato.cluster.max_cover import MaxCoverKMeans
from sfumato.cluster.mog import DPMoG
from sfumato.cluster.morse_clustering import MorseClustering
from sfumato.cluster.source_target import SourceTargetClustering

__all__ = [
    "DPDBSCAN",
    "DPM",
    "CoresetKMeans",
    "DPMoG",
    "DensityTree",
    "GridKMeans",
    "LloydKMeans",
    "LocalSearchKMeans",
    "MaxCoverKMeans",
    "MorseClustering",
    "PrivateClusterer",
    "SourceTargetClustering",
    "estimate_bounds",
    "grid_size",
    "suggest_max_rows",
]
