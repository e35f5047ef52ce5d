"""How many clusters? What the released cells say about other numbers of them."""

from __future__ import annotations

from functools import partial

import numpy as np

from sfumato.plot.curves import draw_curve
from sfumato.plot.style import counted
from sfumato.public.cells import CellCurve, CellSynopsis
from sfumato.public.intervals import Sizes
from sfumato.release import Release
from sfumato.report.choices import slider
from sfumato.report.findings import NO_COST, size_picture
from sfumato.report.markup import figure, paragraph, table

MOST_READINGS = 20  # numbers of clusters to choose from
_AROUND = 12  # numbers beyond the released and the suggested one

_MEANING = (
    "The clusters were made by joining smaller groups of records, whose noisy sizes and centres are part of "
    "this release. They can be joined into more or fewer clusters. " + NO_COST
)
_CAPTION = (
    "The cost is the sum of the squared distances of all records to the centre of their cluster. It always "
    "falls with more clusters. Look for the number after which it falls little. The silhouette, from -1 to "
    "1, is high where clusters are far apart compared with their spread. Shaded: 95% intervals."
)
_CLEAR = 0.5  # silhouette from which on clusters are a reasonable structure (Kaufman and Rousseeuw 1990)
_LIMITS = (
    "What this cannot show: clusters that are smaller than the noise, and clusters that no group told apart. "
    "Numbers of records are estimated group by group, so they differ a little from those above."
)


def number_section(release: Release) -> str:
    """Return the section, as HTML, for a release of centres with cells; otherwise nothing."""
    cells: CellSynopsis | None = getattr(release.model, "cells", None)
    if cells is None or cells.n_cells < 2:
        return ""
    released = len(release.model.cluster_centers)  # type: ignore[attr-defined]
    curve = cells.curve(range(1, _most(cells, released) + 1))
    parts = [
        '<section aria-labelledby="numbers">',
        '<h2 id="numbers">How many clusters?</h2>',
        paragraph(_MEANING),
        paragraph(_suggestion(curve, released)),
        _picture(curve),
        slider(
            "number",
            "What if there were this many clusters?",
            [int(k) for k in curve.numbers],
            released,
            partial(_reading, release, curve),
            most=MOST_READINGS,
        ),
        _table(curve, released),
        paragraph(_LIMITS, "note"),
        "</section>",
    ]
    return "".join(parts)


def _most(cells: CellSynopsis, released: int) -> int:
    wanted = max(released, cells.suggested) + _AROUND
    return max(min(wanted, max(cells.n_visible, released, cells.suggested), cells.n_cells), 2)


def _suggestion(curve: CellCurve, released: int) -> str:
    apart = counted(curve.suggested, "cluster")
    if curve.suggested == 1:
        found = "No two groups of records are clearly apart, so the records may form a single cluster."
    elif curve.silhouettes[int(np.flatnonzero(curve.numbers == curve.suggested)[0])] >= _CLEAR:
        found = f"{apart} are clearly apart from each other."
    else:
        found = f"{apart} can be told from each other, but they overlap."
    return found + (
        " That is the number above." if curve.suggested == released else f" Above, there are {released:,}."
    )


def _picture(curve: CellCurve) -> str:
    alt = (
        f"Picture: cost and silhouette for 1 to {curve.numbers[-1]} clusters. {curve.suggested} are "
        "suggested. The table below gives all numbers."
    )
    return figure(partial(draw_curve, curve), alt, _CAPTION, salt="numbers", size=(5.2, 3.0))


def _reading(release: Release, curve: CellCurve, n_clusters: int) -> str:
    """Sizes and cost for a number of clusters."""
    model = release.at(n_clusters).model
    sizes: Sizes = model.estimated_sizes  # type: ignore[attr-defined]
    at = int(np.flatnonzero(curve.numbers == n_clusters)[0])
    low, high = curve.cost_ends[:, at]
    cost = f"Cost about {_written(curve.costs[at])} ({_written(low)} to {_written(high)})"
    if n_clusters > 1:
        cost += f", silhouette about {curve.silhouettes[at]:.2f}"
    return paragraph(f"{cost}.") + size_picture(sizes)


def _table(curve: CellCurve, released: int) -> str:
    rows = []
    for i, k in enumerate(curve.numbers.tolist()):
        marks = ["released"] * (k == released) + ["suggested"] * (k == curve.suggested)
        cost = " to ".join(_written(end) for end in curve.cost_ends[:, i])
        score = " to ".join(f"{end:.2f}" for end in curve.silhouette_ends[:, i])
        rows.append(
            [
                f"{k:,} ({', '.join(marks)})" if marks else f"{k:,}",
                f"{_written(curve.costs[i])} ({cost})",
                f"{curve.silhouettes[i]:.2f} ({score})" if k > 1 else "—",
            ]
        )
    caption = "Cost and silhouette for each number of clusters, with 95% intervals"
    return table(caption, ["clusters", "cost", "silhouette"], rows)


def _written(value: float) -> str:
    """A cost, with three figures."""
    if not value:
        return "0"
    if abs(value) < 0.01 or abs(value) >= 1e7:
        return f"{value:.2e}"
    digits = max(2 - int(np.floor(np.log10(abs(value)))), 0)
    return f"{float(f'{value:.3g}'):,.{digits}f}"
