"""Sliders: a page holds several readings of one release and shows one at a time."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import numpy as np

MOST_FRAMES = 8  # each takes a fraction of a second to draw
MOST_BYTES = 2_000_000  # for all readings on a page: it stays below 6 MB and is drawn in seconds
_DECADE = (1, 2, 5)


def slider(
    name: str,
    label: str,
    values: Sequence[int],
    chosen: int,
    show: Callable[[int], str],
    *,
    most: int = MOST_FRAMES,
) -> str:
    """Return what `show` makes of each value, and a slider to choose between them.

    Without scripts, the page shows the chosen value. Paper shows the value at which the slider stands.

    Parameters
    ----------
    name : str
        Identifier of the slider in the page.
    label : str
        What the values are.
    values : sequence of int
        Increasing, with `chosen` among them. If there are many, some are left out.
    chosen : int
        The value that was released.
    show : function
        Returns the HTML for a value.
    most : int
        Maximum number of values.
    """
    first = show(chosen)
    kept = thinned(values, chosen, min(most, MOST_BYTES // max(len(first), 1)))
    if len(kept) == 1:
        return first
    start = kept.index(chosen)
    texts = [f"{value:,}{' (as released)' * (value == chosen)}" for value in kept]
    frames = (
        f'<div class="frame" data-value="{text}"{" hidden" * (i != start)}>'
        f"{first if i == start else show(value)}</div>"
        for i, (value, text) in enumerate(zip(kept, texts, strict=True))
    )
    control = (
        f'<div class="control" hidden><label for="{name}">{html.escape(label)}</label> '
        f'<output for="{name}">{texts[start]}</output>'
        f'<input type="range" id="{name}" min="0" max="{len(kept) - 1}" step="1" value="{start}"></div>'
    )
    return f'<div class="choice">{control}{"".join(frames)}</div>'


def thinned(values: Sequence[int], chosen: int, most: int) -> list[int]:
    """At most `most` of the values, evenly spread, with the first, the last and the chosen one."""
    if most < 3:
        return [chosen]
    if len(values) <= most:
        return list(values)
    at = {round(i) for i in np.linspace(0, len(values) - 1, most - 1)}
    return [value for i, value in enumerate(values) if i in at or value == chosen]


def round_numbers(low: float, high: float) -> list[int]:
    """1, 2, 5, 10, 20, 50, ... from `low` to `high`."""
    powers = range(len(str(int(high))))
    return [step * 10**power for power in powers for step in _DECADE if low <= step * 10**power <= high]
