"""The budget as bars, one for each step."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.plot.style import BLUE, Source, new_axes, released, short_names, title
from sfumato.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def budget(source: Source, ax: Axes | None = None) -> Axes:
    """Draw the share of the budget that each step took.

    Parameters
    ----------
    source : Release or fitted estimator
    ax : matplotlib Axes, optional
        Where to draw. By default, a new figure.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.budget(Release.load("release.json"))  # doctest: +SKIP
    """
    release = released(source)
    ax = ax or new_axes()
    shares = step_shares(release)
    bars = ax.barh(range(len(shares)), [100 * share for share in shares.values()], color=BLUE, height=0.6)
    ax.bar_label(bars, labels=[f"{share:.1%}" for share in shares.values()], padding=4)
    ax.set_yticks(range(len(shares)), short_names(shares), parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(0, 115)
    ax.set_xticks(range(0, 101, 25))
    ax.set_xlabel(f"share of the budget ({_currency(release)}), %")
    ax.spines[["top", "right"]].set_visible(False)
    title(release, f"Budget of {release.method}, {release.privacy.budget}", ax)
    return ax


def step_shares(source: Source) -> dict[str, float]:
    """Share of each step in the total cost, in epsilon for a pure budget and otherwise in rho.

    Parameters
    ----------
    source : Release or fitted estimator
    """
    release = released(source)
    is_pure = release.privacy.budget.kind == "pure"
    costs: dict[str, Fraction] = {}
    for record in release.privacy.steps:
        cost = record.epsilon if is_pure and record.epsilon is not None else record.rho
        costs[record.step] = costs.get(record.step, Fraction(0)) + cost
    total = sum(costs.values())
    return {step: float(cost / total) for step, cost in costs.items()}


def _currency(release: Release) -> str:
    return "epsilon" if release.privacy.budget.kind == "pure" else "rho"
