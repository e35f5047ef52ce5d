"""A cluster as files for other programs have it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.domain import FloatArray
from sfumato.public.density.geometry import METRES_PER_DEGREE
from sfumato.public.density.spans import Span
from sfumato.public.intervals import CONFIDENCE, Sizes

_KM_PER_RADIAN = METRES_PER_DEGREE * 180 / math.pi / 1000
_DIGITS = 6  # of areas
_EXTENTS = {1: "length", 2: "area"}  # by the number of columns; else a volume
_EARTH = np.array([[-180.0, -90.0], [180.0, 90.0]])  # the last cells of a map may go further


@dataclass(frozen=True, eq=False)
class Exported:
    """A cluster as files for other programs have it. A model offers a tuple of them, ``exported``.

    Parameters
    ----------
    label : int
        Label that `predict` gives.
    center : float array of shape (d,)
        Its centre, or the centroid of its span.
    count : float, optional
        Estimated number of rows.
    interval : tuple of float, optional
        Ends of the interval for the true number of rows.
    confidence : float, optional
        Probability that the interval contains the true number.
    center_stds : float array of shape (d,), optional
        Standard deviations of the error of the centre.
    span : Span, optional
        Its shape, if it has one.
    is_in_degrees : bool
        Whether the first two columns are longitude and latitude.
    beside : mapping
        On a map with further columns: where the span is in these.

    Privacy
    -------
    Contains released values only. Computing with them costs nothing.
    """

    label: int
    center: FloatArray
    count: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float | None = None
    center_stds: FloatArray | None = None
    span: Span | None = None
    is_in_degrees: bool = False
    beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def properties(self) -> dict[str, Any]:
        """What is known about it besides its place. Unknown numbers are None."""
        low, high = self.interval or (None, None)
        confidence = None if self.interval is None else self.confidence
        counts = {"count": self.count, "count_low": low, "count_high": high}
        tenths = {name: None if count is None else round(count, 1) for name, count in counts.items()}
        return {"label": self.label, **tenths, "confidence": confidence, **self._size(), **self.beside}

    @property
    def digits(self) -> list[int | None]:
        """Decimals in which a place is written, for each column. None leaves a number as it is.

        A span is written to a hundredth of a cell, and a centre to a hundredth of its error.
        """
        if self.span is not None:
            return [_decimals(width) for width in self.span.grid.widths.tolist()]
        stds = self.center * 0 if self.center_stds is None else self.center_stds
        return [_decimals(std) if std > 0 else None for std in stds.tolist()]

    @property
    def geometry(self) -> dict[str, Any]:
        """Polygons of a span on the plane of the first two columns, or the centre as a point, as in GeoJSON.

        Polygons are rounded to a hundredth of a cell or finer.
        """
        if self.span is None:
            return {"type": "Point", "coordinates": self.center.tolist()}
        plane = self.span.footprint
        digits = _decimals(float(plane.grid.widths.min()))
        polygons = [[self._on_earth(ring).round(digits) for ring in rings] for rings in plane.polygons]
        coordinates = [[ring.tolist() for ring in rings] for rings in polygons]
        return {"type": "MultiPolygon", "coordinates": coordinates}

    def _on_earth(self, ring: FloatArray) -> FloatArray:
        return ring.clip(*_EARTH) if self.is_in_degrees else ring

    def _size(self) -> dict[str, float]:
        """Area of a map in square kilometres, else length, area or volume in the units of the columns."""
        if self.span is None:
            return {}
        if self.is_in_degrees:
            return {"area_km2": _rounded(area_km2(self.span))}
        return {_EXTENTS.get(len(self.center), "volume"): _rounded(self.span.volume)}


def exported_spans(spans: tuple[Span, ...], *, is_in_degrees: bool) -> tuple[Exported, ...]:
    """Spans, the largest first."""
    return tuple(
        Exported(
            label=int(span.label),
            center=span.centroid,
            count=float(span.count),
            interval=(float(span.count_low), float(span.count_high)),
            confidence=float(span.confidence),
            span=span,
            is_in_degrees=is_in_degrees,
        )
        for span in spans
    )


def exported_centres(
    centers: FloatArray, sizes: Sizes | None = None, stds: FloatArray | None = None
) -> tuple[Exported, ...]:
    """Clusters that have a centre and perhaps a size, in the order of their labels."""
    ends = None if sizes is None or sizes.ends is None else sizes.ends.T.tolist()
    return tuple(
        Exported(
            label=label,
            center=center,
            count=None if sizes is None else float(sizes.estimates[label]),
            interval=None if ends is None else tuple(ends[label]),
            confidence=CONFIDENCE,
            center_stds=None if stds is None else stds[label],
        )
        for label, center in enumerate(centers)
    )


def area_km2(span: Span) -> float:
    """Area of a span's footprint in longitude and latitude, on a sphere of the Earth's mean radius."""
    west_south, east_north = np.radians(span.footprint.boxes.clip(*_EARTH)).swapaxes(0, 1)
    widths = east_north[:, 0] - west_south[:, 0]
    heights = np.sin(east_north[:, 1]) - np.sin(west_south[:, 1])
    return float(_KM_PER_RADIAN**2 * np.sum(widths * heights))


def _decimals(length: float) -> int:
    """Decimals that show a hundredth of a length, or less."""
    return max(0, 2 - math.floor(math.log10(length)))


def _rounded(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")
