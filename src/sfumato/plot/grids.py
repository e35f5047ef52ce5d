"""The noisy grid of a release, as a map or a histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.plot.style import BLUE, Source, frame, new_axes, part_of, refusal, released, strip, title
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def grid(source: Source, ax: Axes | None = None) -> Axes:
    """Draw the noisy grid of a release with one or two columns: the estimated records in each cell.

    Parameters
    ----------
    source : Release or fitted estimator
    ax : matplotlib Axes, optional
        Where to draw. By default, a new figure.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.grid(Release.load("release.json"))  # doctest: +SKIP
    """
    release = released(source)
    wanted, n_features = "a noisy grid over one or two columns", release.model.n_features
    synopsis: GridSynopsis = part_of(release, "synopsis", wanted)
    if n_features > 2:
        raise refusal(release, wanted)
    ax = ax or new_axes()
    draw = heat_map if n_features == 2 else histogram
    draw(release, synopsis, ax)
    title(release, f"Noisy grid, {release.privacy.budget}", ax)
    return ax


def heat_map(release: Release, synopsis: GridSynopsis, ax: Axes) -> None:
    """Draw the estimated records in each cell as a map of two columns."""
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import MaxNLocator

    frame(release, ax)
    grid = synopsis.grid
    counts = synopsis.estimated_counts().reshape(grid.shape)
    image = ax.imshow(
        counts.T,
        extent=(grid.low[0], grid.high[0], grid.low[1], grid.high[1]),
        origin="lower",
        aspect=ax.get_aspect(),
        cmap="viridis",
        norm=PowerNorm(0.5, vmin=0, vmax=max(float(counts.max()), 1.0)),
    )
    bar = ax.figure.colorbar(image, ax=ax, location="bottom", aspect=40, ticks=MaxNLocator(4))
    bar.set_label("estimated records per cell")


def histogram(release: Release, synopsis: GridSynopsis, ax: Axes) -> None:
    """Draw the estimated records in each cell as a histogram of one column."""
    ax.stairs(synopsis.estimated_counts(), synopsis.grid.edges()[0], fill=True, color=BLUE, alpha=0.6)
    strip(release, "estimated records per cell", ax)
