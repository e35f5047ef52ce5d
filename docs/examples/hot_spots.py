"""A private clusterer of one's own: peaks of a noisy grid, each moved to the mean of the rows around it."""

import numpy as np
from scipy.ndimage import gaussian_filter, maximum_filter

from sfumato.budget import Ledger, Plan, Step
from sfumato.cluster import PrivateClusterer
from sfumato.cluster.shared.checks import check_whole
from sfumato.domain.columns import Missing
from sfumato.curator import Curator, sums_sensitivity
from sfumato.domain import Domain, Grid
from sfumato.public.models import CentreModel
from sfumato.domain.partitions import Voronoi


class HotSpots(PrivateClusterer):
    """Clusters around the peaks of a noisy grid, as many as stand out of the noise; for up to three columns.

    Privacy: step "grid" counts disjoint cells, step "means" sums clipped displacements from the peaks.
    """

    def __init__(
        self,
        per_side: int = 24,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        rho: float | None = None,
        bounds: object = None,
        unit: str | None = None,
        max_rows_per_unit: int = 1,
        missing: Missing = "error",
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.per_side = per_side
        self.epsilon, self.delta, self.rho = epsilon, delta, rho
        self.bounds, self.unit, self.max_rows_per_unit = bounds, unit, max_rows_per_unit
        self.missing, self.ledger, self.random_state = missing, ledger, random_state

    def _plan(self, domain: Domain) -> Plan:
        check_whole("per_side", self.per_side, most=int(10 ** (6 / domain.n_features)))
        means = Step("means", share="0.4", sensitivity=sums_sensitivity(domain))
        return Plan(Step("grid", share="0.6"), means)

    def _cluster(self, curator: Curator) -> CentreModel:
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
