"""The budget as bars, one for each step. Steps that repeat have one bar."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.plot.style import BLUE, Source, new_axes, released, short_names, title
from sfumato.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def budget(source: Source, ax: Axes | None = None) -> Axes:
    """Draw the share of the budget that each step took. Steps that are numbered, as "splits 1", share a bar.

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
    shares = step_shares(release, folded=True)
    bars = ax.barh(range(len(shares)), [100 * share for share in shares.values()], color=BLUE, height=0.6)
    ax.bar_label(bars, labels=[f"{share:.1%}" for share in shares.values()], padding=4)
    ax.set_yticks(range(len(shares)), short_names(shares), parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(0, 115)
    ax.set_xticks(range(0, 101, 25))
    ax.set_xlabel(f"share of the budget ({currency(release)}), %")
    ax.spines[["top", "right"]].set_visible(False)
    title(release, f"Budget of {release.method}, {release.privacy.budget}", ax)
    return ax


def step_shares(source: Source, *, folded: bool = False) -> dict[str, float]:
    """Share of each step in the total cost, in epsilon for a pure budget and otherwise in rho.

    Parameters
    ----------
    source : Release or fitted estimator
    folded : bool
        Whether numbered steps, such as "splits 1" to "splits 9", are added up as "splits 1–9".
    """
    release = released(source)
    is_pure = release.privacy.budget.kind == "pure"
    names = folded_names(record.step for record in release.privacy.steps) if folded else {}
    costs: dict[str, Fraction] = {}
    for record in release.privacy.steps:
        cost = record.epsilon if is_pure and record.epsilon is not None else record.rho
        name = names.get(record.step, record.step)
        costs[name] = costs.get(name, Fraction(0)) + cost
    total = sum(costs.values())
    return {step: float(cost / total) for step, cost in costs.items()}


def folded_names(steps: Iterable[str]) -> dict[str, str]:
    """Name under which each step is shown: one name for steps that differ in a number at the end only.

    Parameters
    ----------
    steps : iterable of str

    Examples
    --------
    >>> folded_names(["rows", "splits 1", "sizes 1", "splits 2", "splits 3"])
    {'rows': 'rows', 'splits 1': 'splits 1–3', 'sizes 1': 'sizes 1', 'splits 2': 'splits 1–3', 'splits 3': 'splits 1–3'}
    """  # noqa: E501
    stems: dict[str, list[int]] = {}
    found = {step: re.fullmatch(r"(.*\S) (\d{1,6})", step) for step in steps}
    for match in found.values():
        if match:
            stems.setdefault(match[1], []).append(int(match[2]))
    return {
        step: _folded(match[1], stems[match[1]], step) if match else step for step, match in found.items()
    }


def _folded(stem: str, numbers: list[int], step: str) -> str:
    if len(numbers) == 1:
        return step
    low, high = min(numbers), max(numbers)
    return f"{stem} {low}–{high}" if high - low == len(numbers) - 1 else f"{stem} ({len(numbers)} steps)"


def currency(release: Release) -> str:
    """What shares of the budget are measured in."""
    return "epsilon" if release.privacy.budget.kind == "pure" else "rho"
