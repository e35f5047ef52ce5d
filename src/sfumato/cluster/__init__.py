"""Private clustering algorithms, one file each."""

from sfumato.cluster.coreset_kmeans import CoresetKMeans
from sfumato.cluster.dbscan import DPDBSCAN
from sfumato.cluster.density_tree import DensityTree
from sfumato.cluster.dpm import DPM
from sfumato.cluster.grid_kmeans import GridKMeans
from sfumato.cluster.lloyd_kmeans import LloydKMeans
from sfumato.cluster.local_search_kmeans import LocalSearchKMeans
from sfumato.cluster.max_cover_kmeans import MaxCoverKMeans
from sfumato.cluster.mog import DPMoG
from sfumato.cluster.morse import MorseClustering
from sfumato.cluster.private_kmeans import PrivateKMeans
from sfumato.cluster.shared.base import PrivateClusterer
from sfumato.cluster.shared.bounds import estimate_bounds
from sfumato.cluster.shared.caps import suggest_max_rows
from sfumato.cluster.shared.levels import estimate_levels
from sfumato.cluster.source_target import SourceTargetClustering
from sfumato.public.grid.size import grid_size

__all__ = ["DPDBSCAN", "DPM", "CoresetKMeans", "DPMoG", "DensityTree", "GridKMeans", "LloydKMeans"]
__all__ += ["LocalSearchKMeans", "MaxCoverKMeans", "MorseClustering", "PrivateClusterer", "PrivateKMeans"]
__all__ += ["SourceTargetClustering", "estimate_bounds", "estimate_levels", "grid_size", "suggest_max_rows"]
