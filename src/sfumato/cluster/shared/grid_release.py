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
    per_side = min(max(wanted, enough), math.floor(math.pow(max_cells, 1 / d) + 1e-9))
    grid = Grid.over(curator.domain, per_side)
    noisy_cells = curator.cells("grid", grid)
    laplace = noisy_cells.record.mechanism == "discrete Laplace"
    blocks = curator.domain.blocks
    return GridSynopsis(grid, noisy_cells.values, noisy_cells.std, laplace, rows, rows_std, blocks=blocks)


def check_grid_fits(domain: Domain, max_cells: int) -> None:
    """Raise if a table has too many columns for a grid."""
    if 2**domain.n_features > max_cells:
        raise ParameterError(
            f"a grid over {domain.n_features} columns has at least 2^{domain.n_features} cells, above "
            f"`max_cells`={max_cells}: use fewer columns, or a method made for many (DPM, CoresetKMeans)"
        )
