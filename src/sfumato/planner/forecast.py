"""What a budget will buy, as a record that prints as a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sfumato.budget import Budget
from sfumato.planner.columns import ColumnError
from sfumato.public.density.dbscan import Guarantee


@dataclass(frozen=True)
class Forecast:
    """What a fit will give for normal clusters of equal size, from public numbers alone.

    Errors are root mean squares against the rows of the table: they leave out the chance by which these rows
    were drawn. A number is None if the method does not have it, or if no formula is known.

    Parameters
    ----------
    method : str
    budget : Budget
    n, d, k : float, int, int
        Rows, coordinates and clusters that were assumed. A number is one coordinate, a category has one per
        level.
    spread : float
        Standard deviation of the rows of a cluster along a column, assumed. Where columns are measured by
        their bounds, as a part of their widths.
    center_error : float, optional
        Error of a coordinate of a centre, in the units of the data. Where columns are measured by their
        bounds, as a part of their widths; `columns` has it in the unit of each.
    size_error : float, optional
        Error of the size of a cluster, in rows.
    smallest_cluster : float, optional
        Rows that a cluster needs to show, by the method's own rules.
    cells : tuple of int, optional
        Cells along each column of the grid.
    cell_width : float, optional
        Their mean width.
    cell_error : float, optional
        Standard deviation of the noise in the count of a cell.
    least_height : float, optional
        Height that a peak of `DensityTree` needs, in smoothed rows per cell.
    guarantee : Guarantee, optional
        The guarantee of `DPDBSCAN` for its radius and `min_samples`.
    fitting_radius, fitting_min_samples : float and int, optional
        The least radius at which tau is at most half of the rows expected in a ball, and that half.
    passes : int
        Passes over the data.
    memory : int
        Bytes beyond the table and the interpreter, as an approximate upper limit.
    columns : tuple of ColumnError
        Errors of centres by column, if columns have names or differ in width.
    share_error : float, optional
        Error of the share of a level, or of any other bin, in the profile of a cluster.
    notes : tuple of str
        Where the forecast should not be relied on.
    """

    method: str
    budget: Budget
    n: float
    d: int
    k: int
    spread: float
    center_error: float | None
    size_error: float | None
    smallest_cluster: float | None
    passes: int
    memory: int
    cells: tuple[int, ...] | None = None
    cell_width: float | None = None
    cell_error: float | None = None
    least_height: float | None = None
    guarantee: Guarantee | None = None
    fitting_radius: float | None = None
    fitting_min_samples: int | None = None
    columns: tuple[ColumnError, ...] = ()
    share_error: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_visible(self) -> bool:
        """Whether clusters of n / k rows will show."""
        return self.smallest_cluster is None or self.n / self.k >= self.smallest_cluster

    def to_dict(self) -> dict[str, Any]:
        """The forecast as numbers and text, ready for JSON."""
        numbers = asdict(self) | {"budget": self.budget.to_dict(), "is_visible": self.is_visible}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in numbers.items()}

    def __str__(self) -> str:
        lines = [(name, value) for name, value in self._lines() if value]
        width = max(len(name) for name, _ in lines)
        table = [f"{name.ljust(width)}  {value}" for name, value in lines]
        return "\n".join([*table, *(f"note: {note}" for note in self.notes)])

    def _lines(self) -> list[tuple[str, str]]:
        of_spread = f" ({self.center_error / self.spread:.2%} of the spread)" if self.center_error else ""
        of_all = "" if self.columns else _number(self.center_error) + of_spread
        share = "" if self.share_error is None else f"{100 * self.share_error:.2g} points"
        cells = " x ".join(f"{m:,}" for m in self.cells or ())
        promised = f"{self.guarantee.tau:,}, {self.guarantee.rho:.2f}" if self.guarantee else ""
        return [
            ("forecast", f"{self.method}, {self.budget}"),
            ("assumed", f"{self.n:,.0f} rows, {self.k:,} equal normal clusters of spread {self.spread:.4g}"),
            ("error of a centre, per coordinate", of_all),
            *((f"error of a centre, {one.column}", _of_column(one)) for one in self.columns),
            ("error of a size", _number(self.size_error, " rows")),
            ("error of a share in a profile", share),
            ("smallest cluster that shows", _number(self.smallest_cluster, " rows")),
            ("cells", cells + _number(self.cell_width, " wide", ", ")),
            ("noise in a cell", _number(self.cell_error, " rows")),
            ("least height of a peak", _number(self.least_height, " rows per cell")),
            ("tau, rho of the guarantee", promised),
            ("radius that fits", _number(self.fitting_radius)),
            ("min_samples that fit it", _number(self.fitting_min_samples)),
            ("passes over the data", str(self.passes)),
            ("memory beyond the table", f"at most about {_bytes(self.memory)}"),
        ]


def _number(value: float | None, unit: str = "", before: str = "") -> str:
    if value is None:
        return ""
    return f"{before}{value:,.0f}{unit}" if value >= 1000 else f"{before}{value:.3g}{unit}"


def _of_column(one: ColumnError) -> str:
    if one.of_width > 1:
        return "more than the whole width"
    if one.unit == "of a share":
        return f"{100 * one.error:.2g} points of the share of a level"
    unit = f" {one.unit}" if one.unit else ""
    return f"{_number(one.error)}{unit}, {one.of_width:.2%} of the width"


def _bytes(number: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            break
        number /= 1000
    return f"{number:.3g} {unit}"
