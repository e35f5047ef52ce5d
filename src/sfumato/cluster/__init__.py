"""Private clustering algorithms, one file each."""

from sfumato.cluster.base import PrivateClusterer
from sfumato.cluster.coreset import CoresetKMeans
from sfumato.cluster.dpm import DPM
from sfumato.cluster.grid import GridKMeans, grid_size
from sfumato.cluster.lloyd import LloydKMeans
from sfumato.cluster.local_search import LocalSearchKMeans
from sfumato.cluster.max_cover import MaxCoverKMeans

__all__ = [
    "DPM",
    "CoresetKMeans",
    "GridKMeans",
    "LloydKMeans",
    "LocalSearchKMeans",
    "MaxCoverKMeans",
    "PrivateClusterer",
    "grid_size",
]
