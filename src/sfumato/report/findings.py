"""The findings of a release. The modules that render a model register it here."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from sfumato.plot.bars import MOST_BARS
from sfumato.plot.style import counted
from sfumato.public.intervals import CONFIDENCE, Sizes
from sfumato.public.models import Model
from sfumato.release import Release
from sfumato.report.bars import Bar, bars
from sfumato.report.markup import paragraph, table

LONGEST_TABLE = 100
NO_COST = "This costs no privacy, because it uses published numbers only."


@singledispatch
def findings(model: Model, release: Release) -> str:
    """Return the section on what was found, as HTML. By default, only sizes are shown, if there are any."""
    text = paragraph(f"This release holds a {type(model).__name__}, for which this report has no picture.")
    sizes: Sizes | None = getattr(model, "estimated_sizes", None)
    return text if sizes is None else text + size_picture(sizes) + _size_table(sizes)


def size_picture(sizes: Sizes) -> str:
    """Return bars of the sizes with their intervals, the largest first."""
    caption = f"Estimated number of records in each {sizes.group}, the largest first."
    if sizes.ends is not None:
        caption += f" The line at the end of a bar is a {CONFIDENCE:.0%} interval."
    order = np.argsort(-sizes.estimates, kind="stable")
    shown = [
        Bar(
            f"{sizes.group} {i}",
            float(sizes.estimates[i]),
            f"{sizes.estimates[i]:,.0f}",
            None if sizes.ends is None else (float(sizes.ends[0, i]), float(sizes.ends[1, i])),
        )
        for i in order[:MOST_BARS].tolist()
    ]
    rest = sizes.estimates[order[MOST_BARS:]]
    note = ""
    if len(rest):
        others = counted(len(rest), f"smaller {sizes.group}")
        note = paragraph(f"{others}: about {rest.sum():,.0f} records in total.", "note")
    return bars(caption, shown) + note


def _size_table(sizes: Sizes) -> str:
    rows = [[str(i), f"{size:,.0f}"] for i, size in enumerate(sizes.estimates[:LONGEST_TABLE])]
    return table(f"Estimated number of records in each {sizes.group}", (sizes.group, "records"), rows)


def share(part: float, total: float) -> str:
    """Write a part of a total as a percentage."""
    return f"{part / total:.1%}" if total > 0 else "—"
