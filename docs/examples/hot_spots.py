"""A private clusterer of one's own: peaks of a noisy grid, each moved to the mean of the rows around it."""

import numpy as np
from scipy.ndimage import gaussian_filter, maximum_filter

from sfumato.budget import Plan, Step
from sfumato.cluster import PrivateClusterer
from sfumato.cluster.shared.parameters import parameter
from sfumato.curator import Questions, sums_sensitivity
from sfumato.domain import Domain, Grid
from sfumato.domain.constraints import whole
from sfumato.domain.partitions import Voronoi
from sfumato.public.models import CentreModel


class HotSpots(PrivateClusterer):
    """Clusters around the peaks of a noisy grid, as many as stand out of the noise; for up to three columns.

    Parameters
    ----------
    per_side : int
        Number of grid cells along each column.

    Privacy
    -------
    Step "grid" counts disjoint cells, step "means" sums clipped displacements from the peaks.
    """

    per_side: int = parameter(whole(10**6), default=24)

    def _plan(self, domain: Domain) -> Plan:
        whole(int(10 ** (6 / domain.n_features)))("per_side", self.per_side)
        means = Step("means", share="0.4", sensitivity=sums_sensitivity(domain))
        return Plan(Step("grid", share="0.6"), means)

    def _cluster(self, curator: Questions) -> CentreModel:
        grid = Grid.over(curator.domain, self.per_side)
        noisy = curator.cells("grid", grid)
        heights = gaussian_filter(noisy.values.reshape(grid.shape).astype(float), sigma=1)
        noise = noisy.std * 0.531 ** len(grid.shape)  # what smoothing leaves of it: (4 pi)^(-1/4) per column
        tops = (heights == maximum_filter(heights, size=5)) & (heights > 5 * noise)
        tops.flat[heights.argmax()] = True  # at least one, whatever the rows are
        peaks = grid.centers()[tops.ravel()]
        radii = np.full(len(peaks), 2 * np.linalg.norm(grid.widths))
        found = curator.sums("means", Voronoi(peaks), peaks, radii)
        weights = np.maximum(found.sizes, 5 * found.size_std)[:, None]  # few rows hardly move a centre
        centers = curator.domain.clip(peaks + found.sums / weights)
        return CentreModel(centers, found.sizes.clip(0))
