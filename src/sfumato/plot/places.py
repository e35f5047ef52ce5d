"""Places that were chosen, beside those that stand for a private source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from sfumato.plot.style import (
    BLUE,
    HAZE,
    VERMILLION,
    Source,
    frame,
    new_axes,
    refusal,
    released,
    title,
    write_numbers,
)
from sfumato.public.models import SourceTargetModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def places(source: Source, ax: Axes | None = None, *, target: ArrayLike | None = None) -> Axes:
    """Draw the chosen targets of a release with two columns, with their numbers, and the sanitised source.

    Parameters
    ----------
    source : Release or fitted estimator
        Of `SourceTargetClustering`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    target : array-like of shape (n, 2), optional
        The public points among which was chosen, to draw them below.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.places(Release.load("release.json"))  # doctest: +SKIP
    """
    release = released(source)
    model = release.model
    if not isinstance(model, SourceTargetModel) or model.n_features != 2:
        raise refusal(release, "places of SourceTargetClustering over two columns")
    ax = ax or new_axes()
    frame(release, ax)
    if target is not None:
        x, y = check_array(target, input_name="target").T
        ax.scatter(x, y, s=4, color=HAZE, label="target")
    x, y = model.sanitized_source.T
    ax.scatter(x, y, s=22, marker="x", color=VERMILLION, label="sanitised source")
    x, y = model.cluster_centers.T
    ax.scatter(x, y, s=42, color=BLUE, label="chosen", zorder=3)
    write_numbers(enumerate(model.cluster_centers), ax)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, frameon=False, fontsize="small")
    title(release, f"{release.method}, {len(model.cluster_centers)} chosen\n{release.privacy.budget}", ax)
    return ax
