"""Chosen places, and points that stand in for a private source."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from numpy.typing import ArrayLike

from sfumato.plot import style
from sfumato.public.models import SourceTargetModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def places(source: style.Source, ax: Axes | None = None, *, target: ArrayLike | None = None) -> Axes:
    """Draw the chosen targets of a release with two columns, their numbers, and the sanitised source.

    Parameters
    ----------
    source : Release or fitted estimator
        From `SourceTargetClustering`.
    ax : matplotlib Axes, optional
        Where to draw. By default, a new figure.
    target : array-like of shape (n, 2), optional
        All public points, to draw below the chosen ones.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.places(Release.load("release.json"))  # doctest: +SKIP
    """
    release, wanted = style.released(source), "places from SourceTargetClustering over two columns"
    style.part_of(release, "sanitized_source", wanted)
    model = cast(SourceTargetModel, release.model)
    if model.n_features != 2:
        raise style.refusal(release, wanted)
    ax = ax or style.new_axes()
    style.frame(release, ax)
    if target is not None:
        from sklearn.utils.validation import check_array

        x, y = check_array(target, input_name="target").T
        ax.scatter(x, y, s=4, color=style.HAZE, label="target")
    x, y = model.sanitized_source.T
    ax.scatter(x, y, s=22, marker="x", color=style.VERMILLION, label="stand-in for the source")
    x, y = model.cluster_centers.T
    ax.scatter(x, y, s=170, color=style.BLUE, label="chosen target", zorder=3)
    style.write_numbers(enumerate(model.cluster_centers), ax)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, frameon=False, fontsize="small")
    style.title(
        release, f"{release.method}, {len(model.cluster_centers)} chosen\n{release.privacy.budget}", ax
    )
    return ax
