"""What a release hands to other programs, in each of their formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.domain.columns import Coordinate
from sfumato.errors import ParameterError
from sfumato.public.exports.exported import Exported
from sfumato.public.exports.geojson import feature_collection
from sfumato.public.exports.geoparquet import geo_table
from sfumato.public.exports.lines import as_csv

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
        Whether the columns are longitude and latitude.

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
        self._check_plane()
        return feature_collection(self.clusters, self.origin, is_in_degrees=self.is_in_degrees)

    def geo_table(self) -> pa.Table:
        """Return a table that is GeoParquet once `pyarrow.parquet.write_table` has written it."""
        self._check_plane()
        return geo_table(self.clusters, self.origin, is_in_degrees=self.is_in_degrees)

    def csv(self) -> str:
        """Return a text with a line per cluster, over any number of columns."""
        return as_csv(self.clusters, self.columns)

    def _check_plane(self) -> None:
        kinds = [column.kind for column in self.columns]
        if kinds != ["number", "number"]:
            others = sorted({*kinds} - {"number"})
            got = f"{len(kinds)}" + (f", among them of type {', '.join(others)}" if others else "")
            raise ParameterError(
                f"a map must have 2 columns of numbers, got {got}. Write a table instead, with "
                "release.to_csv(path) or `sfumato export --csv`, or take the `boxes` of spans"
            )
