"""Clusters as GeoJSON (RFC 7946)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.public.exports.exported import Exported


def feature_collection(
    clusters: Sequence[Exported], facts: Mapping[str, Any], *, is_in_degrees: bool
) -> dict[str, Any]:
    """Clusters over two columns as a GeoJSON FeatureCollection, ready for `json.dumps`.

    The first column is x or longitude, the second y or latitude. Unless they are in degrees, ``crs`` is null:
    programs that know this older member place the features nowhere on Earth.

    Parameters
    ----------
    clusters : sequence of Exported
    facts : mapping
        Further members of the collection, for example where it comes from. RFC 7946 calls them foreign.
    is_in_degrees : bool
        Whether the columns are longitude and latitude.
    """
    system = {} if is_in_degrees else {"crs": None}
    features = [_feature(cluster) for cluster in clusters]
    return {"type": "FeatureCollection", **system, **facts, "features": features}


def _feature(cluster: Exported) -> dict[str, Any]:
    return {
        "type": "Feature",
        "id": cluster.label,
        "properties": cluster.properties,
        "geometry": cluster.geometry,
    }
