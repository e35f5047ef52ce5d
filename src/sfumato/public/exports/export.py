"""What a release hands to other programs, in each of their formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sfumato.domain.columns import Coordinate
from sfumato.errors import ParameterError
from sfumato.public.exports.exported import Exported
from sfumato.public.exports.geojson import feature_collection
from sfumato.public.exports.geoparquet import geo_table
from sfumato.public.exports.lines import as_csv, extent_in

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Export:
    """Clusters of a release, for files of other programs.

    Parameters
    ----------
    clusters : tuple of Exported
    columns : tuple of Coordinate
    origin : mapping
        The release they come from, and its promise.
    is_in_degrees : bool
        Whether the first two columns are longitude and latitude.

    Privacy
    -------
    Contains released values and public facts only. Computing with them costs nothing.
    """

    clusters: tuple[Exported, ...]
    columns: tuple[Coordinate, ...]
    origin: Mapping[str, Any]
    is_in_degrees: bool

    def geojson(self) -> dict[str, Any]:
        """Return a GeoJSON FeatureCollection, ready for `json.dumps`."""
        return feature_collection(self._on_plane(), self.origin, is_in_degrees=self.is_in_degrees)

    def geo_table(self) -> pa.Table:
        """Return a table that is GeoParquet once `pyarrow.parquet.write_table` has written it."""
        return geo_table(self._on_plane(), self.origin, is_in_degrees=self.is_in_degrees)

    def csv(self) -> str:
        """Return a text with a line per cluster, over any number of columns."""
        return as_csv(self.clusters, self.columns)

    def _on_plane(self) -> list[Exported]:
        """Clusters on the plane of two columns. Only a map may have others, which become properties."""
        kinds = [column.kind for column in self.columns]
        if kinds[: 2 if self.is_in_degrees else None] != ["number", "number"]:
            others = sorted({*kinds} - {"number"})
            got = f"{len(kinds)}" + (f", among them of type {', '.join(others)}" if others else "")
            raise ParameterError(
                f"a map must have 2 columns of numbers, got {got}. Write a table instead, with "
                "release.to_csv(path) or `sfumato export --csv`, or take the `boxes` of spans"
            )
        return [replace(cluster, beside=extent_in(cluster, self.columns, 2)) for cluster in self.clusters]
