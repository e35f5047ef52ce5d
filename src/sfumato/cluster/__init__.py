"""Private clustering algorithms, one file each."""

from sfumato.cluster.base import PrivateClusterer
from sfumato.cluster.grid import GridKMeans, grid_size

__all__ = ["GridKMeans", "PrivateClusterer", "grid_size"]
