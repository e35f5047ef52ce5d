"""Cells of clusters from a released grid."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from sfumato.public.cells import CellSynopsis
from sfumato.public.grid.synopsis import GridSynopsis

GRID_CELLS = 32  # that a grid is read as; tuned: docs/notes/how_many.md#constants


def cells_of_grid(synopsis: GridSynopsis) -> CellSynopsis:
    """Noisy cells such as other methods release, from the noisy counts of a grid. Spends nothing."""
    measured = synopsis.moved(synopsis.measure) if synopsis.measure else synopsis
    n_cells = min(GRID_CELLS, max(measured.grid.n_cells // 2, 1))
    centers, sizes = measured.cluster(n_cells)
    center_stds, size_stds = measured.noise_in(centers, sizes)
    squares = cdist(measured.grid.centers(), centers, "sqeuclidean").min(axis=1)
    rows, within = measured.rows_estimate(), float((measured.grid.widths**2).sum()) / 12
    noise = measured.noise_std * float(np.linalg.norm(squares)) / rows
    cells = CellSynopsis(
        centers,
        sizes,
        np.sqrt((center_stds**2).mean(axis=1)),
        float(np.sqrt((size_stds**2).mean())),
        max(float(measured.estimated_counts() @ squares) / rows, 0.0) + within,
        float(np.hypot(noise, within)),
    )
    return cells.moved(synopsis.measure.inverse) if synopsis.measure else cells
