"""The findings of a release. The modules that render a model register it here."""

from __future__ import annotations

import math
from functools import partial, singledispatch

from sfumato import plot
from sfumato.plot.bars import MOST_BARS
from sfumato.public.intervals import CONFIDENCE, Sizes
from sfumato.public.models import Model
from sfumato.release import Release
from sfumato.report.markup import figure, paragraph, table

LONGEST_TABLE = 100
NO_COST = "This costs no privacy, because it uses published numbers only."


@singledispatch
def findings(model: Model, release: Release) -> str:
    """Return the section on what was found, as HTML. By default, only sizes are shown, if there are any."""
    text = paragraph(f"This release holds a {type(model).__name__}, for which this report has no picture.")
    sizes: Sizes | None = getattr(model, "estimated_sizes", None)
    return text if sizes is None else text + size_picture(release, sizes) + _size_table(sizes)


def size_picture(release: Release, sizes: Sizes, salt: str = "sizes") -> str:
    """Return the picture of the sizes with their intervals."""
    caption = f"Estimated number of records in each {sizes.group}, the largest first."
    if sizes.ends is not None:
        caption += f" The line at the end of a bar is a {CONFIDENCE:.0%} interval."
    return figure(
        partial(plot.sizes, release),
        f"Picture: bars with the estimated number of records in each {sizes.group}, the largest first.",
        caption,
        salt=salt,
        size=(5.2, 1.0 + 0.24 * min(len(sizes.estimates), MOST_BARS)),
    )


def _size_table(sizes: Sizes) -> str:
    rows = [[str(i), f"{size:,.0f}"] for i, size in enumerate(sizes.estimates[:LONGEST_TABLE])]
    return table(f"Estimated number of records in each {sizes.group}", (sizes.group, "records"), rows)


def coordinate(value: float, low: float, high: float) -> str:
    """Write a coordinate to a thousandth of its public range."""
    digits = 3 - math.floor(math.log10(high - low))
    return f"{value:,.{max(digits, 0)}f}" if -3 <= digits <= 8 else f"{value:.6g}"


def share(part: float, total: float) -> str:
    """Write a part of a total as a percentage."""
    return f"{part / total:.1%}" if total > 0 else "—"
