"""Clusters as GeoParquet 1.1, with geometries in well-known binary (WKB)."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.public.exports.exported import Exported

if TYPE_CHECKING:
    import pyarrow as pa

_VERSION = "1.1.0"
_POINT, _POLYGON, _MULTIPOLYGON = 1, 3, 6  # in WKB, with coordinates in two columns
_LITTLE_ENDIAN = 1


def geo_table(clusters: Sequence[Exported], facts: Mapping[str, Any], *, is_in_degrees: bool) -> pa.Table:
    """Clusters over two columns as an Arrow table that `pyarrow.parquet.write_table` makes GeoParquet.

    Parameters
    ----------
    clusters : sequence of Exported
    facts : mapping
        Where it comes from, for the metadata of the file.
    is_in_degrees : bool
        Whether the columns are longitude and latitude. Otherwise the file states no reference system.
    """
    import pyarrow as pa

    geometries = [cluster.geometry for cluster in clusters]
    properties = [cluster.properties for cluster in clusters]
    names = list(properties[0]) if properties else ["label", "count", "count_low", "count_high", "confidence"]
    columns = {
        name: pa.array([one[name] for one in properties], type=_type_of(name, properties)) for name in names
    }
    columns["geometry"] = pa.array([well_known_binary(one) for one in geometries], type=pa.binary())
    geo = {
        "version": _VERSION,
        "primary_column": "geometry",
        "columns": {"geometry": _about(geometries, is_in_degrees=is_in_degrees)},
    }
    texts = {"geo": geo} | dict(facts)
    return pa.table(columns).replace_schema_metadata(
        {name: json.dumps(value, allow_nan=False) for name, value in texts.items()}
    )


def _type_of(name: str, properties: Sequence[Mapping[str, Any]]) -> pa.DataType:
    """Labels are integers, dates and times of day are texts, and all else is a number that may be missing."""
    import pyarrow as pa

    if name == "label":
        return pa.int64()
    return pa.string() if any(isinstance(one[name], str) for one in properties) else pa.float64()


def _about(geometries: Sequence[Mapping[str, Any]], *, is_in_degrees: bool) -> dict[str, Any]:
    """Metadata of the column of geometries. Without a `crs` it is in longitude and latitude (OGC:CRS84)."""
    found: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": sorted({one["type"] for one in geometries}),
        "orientation": "counterclockwise",
    }
    if not is_in_degrees:
        found["crs"] = None
    if geometries:
        corners = np.concatenate([_points(one) for one in geometries])
        found["bbox"] = [*corners.min(axis=0).tolist(), *corners.max(axis=0).tolist()]
    return found


def _points(geometry: Mapping[str, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    coordinates = geometry["coordinates"]
    if geometry["type"] == "Point":
        return np.array([coordinates])
    return np.concatenate([np.array(ring) for rings in coordinates for ring in rings])


def well_known_binary(geometry: Mapping[str, Any]) -> bytes:
    """A point or polygons, as a GeoJSON geometry has them, in WKB.

    Examples
    --------
    >>> well_known_binary({"type": "Point", "coordinates": [1.0, 2.0]}).hex()
    '0101000000000000000000f03f0000000000000040'
    """
    coordinates = geometry["coordinates"]
    if geometry["type"] == "Point":
        return _head(_POINT) + struct.pack("<2d", *coordinates)
    return _head(_MULTIPOLYGON, len(coordinates)) + b"".join(map(_polygon, coordinates))


def _polygon(rings: Sequence[Sequence[Sequence[float]]]) -> bytes:
    parts = [struct.pack("<I", len(ring)) + np.array(ring, dtype="<f8").tobytes() for ring in rings]
    return _head(_POLYGON, len(rings)) + b"".join(parts)


def _head(kind: int, *length: int) -> bytes:
    return struct.pack(f"<BI{len(length)}I", _LITTLE_ENDIAN, kind, *length)
