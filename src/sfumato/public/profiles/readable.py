"""What can be read in spite of the noise: one rule for sentences, cards, tables and files.

A number is told as a number only if its interval says something about it. Otherwise the interval is told.
"""

from __future__ import annotations

from sfumato.public.profiles.estimates import Estimate, Tells

WIDEST_SHARE = 0.5  # interval of a share that can be read
WIDEST_QUANTILE = 0.5  # the same of a quantile, times the `spread` of its column
MOST_SIZE_NOISE = 0.5  # a cluster is not described if half its interval is more than this part of its size
_QUARTERS = (0.25, 0.5, 0.75)


def is_readable_share(share: float, low: float, high: float) -> bool:
    """Whether a share stands out from the noise: its interval leaves out 0, and is no wider than the share.

    Examples
    --------
    >>> is_readable_share(0.71, 0.6, 0.8), is_readable_share(0.1, 0.0, 0.2)
    (True, False)
    """
    return low > 0 and high - low <= min(share, WIDEST_SHARE)


def is_readable_size(size: Estimate) -> bool:
    """Whether the size of a cluster says enough to describe it."""
    return (size.high - size.low) / 2 <= MOST_SIZE_NOISE * size.value


def spread(profiles: Tells, cluster: int | None, column: str) -> float:
    """How far values of a column differ, the largest of three.

    These are the widths of the middle half of the rows, in the table and in the cluster, and the distance of
    their medians.
    """
    quantiles = [[profiles.quantile(of, column, q).value for q in _QUARTERS] for of in {None, cluster}]
    medians = [middle for _, middle, _ in quantiles]
    return max(max(medians) - min(medians), *(high - low for low, _, high in quantiles))


def is_readable_quantile(found: Estimate, width: float) -> bool:
    """Whether a quantile of a column with this `spread` stands out from the noise."""
    return not found.high - found.low > WIDEST_QUANTILE * width > 0
