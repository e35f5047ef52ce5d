"""Cost and silhouette for each number of clusters, from released cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.plot import style
from sfumato.public.cells import CellCurve, CellSynopsis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COST = "cost: sum of squared distances"


def numbers(source: style.Source, ax: Axes | None = None) -> Axes:
    """Draw cost and silhouette for each number of clusters, with 95% bands. A line marks the suggested one.

    The cost always falls with more clusters; look for the number after which it falls little. The silhouette
    is high where clusters are far apart. Both come from released cells, so the picture spends nothing.

    Parameters
    ----------
    source : Release or fitted estimator
        Of a centre method.
    ax : matplotlib Axes, optional
        Where to draw. By default, a new figure.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.numbers(Release.load("release.json"))  # doctest: +SKIP
    """
    release = style.released(source)
    cells: CellSynopsis = style.part_of(release, "any_cells", "released cells or a grid")
    ax = ax or style.new_axes()
    draw_curve(cells.curve(), ax)
    style.title(release, f"{release.method}, how many clusters?, {release.privacy.budget}", ax)
    return ax


def draw_curve(curve: CellCurve, ax: Axes) -> None:
    """Draw a curve that was computed before."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    ink = ax.xaxis.label.get_color()
    beside = ax.twinx()
    for axes, values, ends, colour, dashes in (
        (ax, curve.costs, curve.cost_ends, style.BLUE, "-"),
        (beside, curve.silhouettes, curve.silhouette_ends, style.VERMILLION, "--"),
    ):
        shown = curve.numbers >= (1 if axes is ax else 2)  # a single cluster has no silhouette
        at = curve.numbers[shown]
        axes.fill_between(at, *ends[:, shown], color=colour, alpha=0.2, linewidth=0)
        axes.plot(at, values[shown], dashes, color=colour, marker="o", markersize=3.5, linewidth=1.6)
        axes.spines[["top"]].set_visible(False)
    ax.axvline(curve.suggested, color=ink, linewidth=1, linestyle=":")
    ax.set_xlim(0.5, float(curve.numbers[-1]) + 0.5)
    ax.set_ylim(bottom=0)
    beside.set_ylim(min(0.0, float(curve.silhouette_ends[0].min())), 1.0)
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.6g}"))
    ax.set_xlabel(f"number of clusters (dotted: {curve.suggested}, suggested)")
    ax.set_ylabel(_COST, color=style.BLUE)
    beside.set_ylabel("silhouette (dashed)", color=style.VERMILLION)
