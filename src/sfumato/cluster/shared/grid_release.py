"""Release a noisy grid of counts, with a size chosen by a rule."""

from __future__ import annotations

import math
from fractions import Fraction

from sfumato.budget import Step
from sfumato.curator import Questions
from sfumato.domain import Domain, Grid
from sfumato.errors import ParameterError
from sfumato.public.grid.size import Rule, grid_size
from sfumato.public.grid.synopsis import GridSynopsis

GRID_BYTES_PER_CELL = 40  # of a grid that is read as a whole
POINT_BYTES_PER_COLUMN = 32  # of a cell whose coordinates are held, moved and squared
GRID_MEMORY = 2**29  # a limit, in bytes: in 8 columns it allows 6 cells per column, in 2 columns 2,200
ROWS_SHARE = Fraction(1, 20)  # the order of the number of rows is enough; tuned: docs/notes/constants.md#grid


def _visible_rows(noisy: float, std: float) -> float:
    """A noisy number of rows for the rule. Numbers far below the noise's scale cannot be told apart."""
    return max(noisy, 0.5 * std / math.sqrt(2))


def grid_steps(n_public: int | None) -> tuple[Step, ...]:
    """Steps that `release_grid` asks, for the whole budget."""
    if n_public is not None:
        return (Step("grid", share=1),)
    return Step("rows", share=ROWS_SHARE), Step("grid", share=1 - ROWS_SHARE)


def release_grid(
    curator: Questions,
    n_clusters: int,
    *,
    gain: float,
    rule: Rule = "rugnik",
    n_public: int | None = None,
    max_cells: int,
) -> GridSynopsis:
    """Noisy counts on the grid that a rule chooses for the clusters and `gain` times the budget."""
    if n_public is None:
        noisy_rows = curator.count("rows")
        rows, rows_std = float(noisy_rows.values[0]), noisy_rows.std
    else:
        rows, rows_std = float(n_public), 0.0
    d = curator.domain.n_features
    laplace_epsilon = math.sqrt(2) / max(curator.noise_std("grid"), 1e-90)
    wanted = grid_size(_visible_rows(rows, rows_std), gain * laplace_epsilon, n_clusters, d, rule)
    enough = math.ceil(math.pow(n_clusters, 1 / d) - 1e-9)
    per_side = min(max(wanted, enough), math.floor(math.pow(most_cells(d, max_cells), 1 / d) + 1e-9))
    grid = Grid.over(curator.domain, per_side)
    noisy_cells = curator.cells("grid", grid)
    laplace = noisy_cells.record.mechanism == "discrete Laplace"
    blocks = curator.domain.blocks
    return GridSynopsis(grid, noisy_cells.values, noisy_cells.std, laplace, rows, rows_std, blocks=blocks)


def cell_bytes(n_features: int) -> int:
    """Memory per cell of a grid over so many columns."""
    return GRID_BYTES_PER_CELL + POINT_BYTES_PER_COLUMN * n_features


def most_cells(n_features: int, max_cells: int) -> int:
    """Number of cells that a grid may have: at most `max_cells`, and what fits into the memory."""
    return min(max_cells, GRID_MEMORY // cell_bytes(n_features))


def check_grid_fits(domain: Domain, max_cells: int) -> None:
    """Raise if a table has too many columns for a grid."""
    if 2**domain.n_features > most_cells(domain.n_features, max_cells):
        raise ParameterError(
            f"a grid over {domain.n_features} columns has at least 2^{domain.n_features} cells, above "
            f"`max_cells`={max_cells} or what fits into {GRID_MEMORY / 1e9:.1g} GB: use fewer columns, a "
            "PrivatePCA or a RandomProjection before it, or a method made for many (LocalSearchKMeans)"
        )
