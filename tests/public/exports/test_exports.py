"""Exports: valid GeoJSON and GeoParquet, lines of CSV, and nothing that the release does not have."""

import csv
import io
import json
import math
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.domain import Grid
from sfumato.domain.columns import Coordinate
from sfumato.errors import ParameterError
from sfumato.public.density.spans import Span
from sfumato.public.exports.export import Export
from sfumato.public.exports.exported import Exported, area_km2, exported_centres, exported_spans
from sfumato.public.exports.geoparquet import well_known_binary
from sfumato.public.intervals import CONFIDENCE, Sizes

FACTS = {"release": {"method": "DensityTree"}}
RING = np.array([[1, 1, 1, 0], [1, 0, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]], dtype=bool)  # and a cell apart


def span_of(mask, low=(0.0, 0.0), high=(4.0, 4.0), label=0):
    grid = Grid(low, high, mask.shape)
    return Span(label, 1234.4, 1179.6, 1288.0, 0.95, grid, np.flatnonzero(mask))


def export_of(*spans, is_in_degrees=False, names=("east", "north"), kinds=("number", "number")):
    columns = tuple(Coordinate(name, kind) for name, kind in zip(names, kinds, strict=True))
    return Export(exported_spans(spans, is_in_degrees=is_in_degrees), columns, FACTS, is_in_degrees)


def signed_area(ring):
    x, y = np.array(ring).T
    return float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]) / 2)


def parsed(content):
    """Geometry in well-known binary, read independently of the code that wrote it."""
    stream = io.BytesIO(content)

    def take(form):
        return struct.unpack(f"<{form}", stream.read(struct.calcsize(f"<{form}")))

    def ring():
        (length,) = take("I")
        return [list(take("2d")) for _ in range(length)]

    def polygon():
        order, kind, n_rings = take("BII")
        assert (order, kind) == (1, 3)
        return [ring() for _ in range(n_rings)]

    order, kind = take("BI")
    assert order == 1
    if kind == 1:
        found = {"type": "Point", "coordinates": list(take("2d"))}
    else:
        assert kind == 6
        found = {"type": "MultiPolygon", "coordinates": [polygon() for _ in range(take("I")[0])]}
    assert stream.read() == b""
    return found


def test_polygons_are_valid():
    (feature,) = export_of(span_of(RING)).geojson()["features"]
    assert feature["geometry"]["type"] == "MultiPolygon"
    polygons = feature["geometry"]["coordinates"]
    assert sorted(len(rings) for rings in polygons) == [1, 2]
    for outer, *holes in polygons:
        assert signed_area(outer) > 0
        assert all(signed_area(hole) < 0 for hole in holes)
    assert all(ring[0] == ring[-1] for rings in polygons for ring in rings)
    assert all(len(ring) >= 4 for rings in polygons for ring in rings)
    assert sum(signed_area(ring) for rings in polygons for ring in rings) == pytest.approx(RING.sum())


def test_properties():
    spans = [span_of(RING), span_of(RING[:, ::-1], label=1)]
    found = json.loads(json.dumps(export_of(*spans).geojson(), allow_nan=False))
    numbers = {"count": 1234.4, "count_low": 1179.6, "count_high": 1288.0, "confidence": 0.95, "area": 9.0}
    assert [feature["properties"] for feature in found["features"]] == [
        {"label": 0, **numbers},
        {"label": 1, **numbers},
    ]
    assert [feature["id"] for feature in found["features"]] == [0, 1]
    assert {feature["type"] for feature in found["features"]} == {"Feature"}


def test_facts_are_foreign_members():
    found = export_of(span_of(RING)).geojson()
    assert found.pop("features")
    assert found == {"type": "FeatureCollection", "crs": None, **FACTS}
    assert "crs" not in export_of(span_of(RING), is_in_degrees=True).geojson()


def test_no_spans():
    assert export_of().geojson()["features"] == []
    assert export_of().geo_table().num_rows == 0
    assert export_of().csv() == "label,count,count_low,count_high,confidence\n"


@pytest.mark.parametrize("scale", [1e-140, 1e-5, 1 / 3, 1.0, 700.0, 1e139])
def test_coordinates_are_rounded_to_a_hundredth_of_a_cell(scale):
    span = span_of(RING, low=(scale / 7, scale / 9), high=(scale / 7 + 4 * scale, scale / 9 + 4 * scale))
    polygons = export_of(span).geojson()["features"][0]["geometry"]["coordinates"]
    for written, exact in zip(polygons, span.polygons, strict=True):
        for points, ring in zip(written, exact, strict=True):
            np.testing.assert_allclose(points, ring, rtol=1e-12, atol=scale / 200)
    if scale == 700.0:
        assert polygons[0][0][0] == [100.0, 78.0]


def test_areas_on_a_map_are_in_square_kilometres():
    everywhere = span_of(np.ones((2, 2), dtype=bool), low=(-180.0, -90.0), high=(180.0, 90.0))
    assert area_km2(everywhere) == pytest.approx(4 * math.pi * 6371.0088**2, rel=1e-9)
    york = span_of(np.ones((3, 3), dtype=bool), low=(-1.12, 53.94), high=(-1.04, 53.99))
    flat = 0.08 * 0.05 * 111.195**2 * math.cos(math.radians(53.965))
    (cluster,) = exported_spans((york,), is_in_degrees=True)
    assert cluster.properties["area_km2"] == pytest.approx(flat, rel=1e-4)
    assert "area" not in cluster.properties


def test_cells_beyond_the_edge_of_the_map_are_cut():
    fiji = span_of(np.ones((2, 2), dtype=bool), low=(177.0, -19.0), high=(180.5, -15.5))
    (cluster,) = exported_spans((fiji,), is_in_degrees=True)
    corners = np.array(cluster.geometry["coordinates"][0][0])
    assert corners.max(axis=0).tolist() == [180.0, -15.5]
    assert area_km2(fiji) < area_km2(span_of(np.ones((2, 2), dtype=bool), (176.5, -19.0), (180.0, -15.5)))


def test_geoparquet_has_what_geojson_has(tmp_path):
    export = export_of(span_of(RING), span_of(~RING, label=1))
    pq.write_table(export.geo_table(), tmp_path / "places.parquet")
    table = pq.read_table(tmp_path / "places.parquet")
    rows, features = table.to_pylist(), export.geojson()["features"]
    assert [parsed(row.pop("geometry")) for row in rows] == [feature["geometry"] for feature in features]
    assert rows == [feature["properties"] for feature in features]
    assert table.schema.field("label").type == pa.int64()


@pytest.mark.parametrize("is_in_degrees", [False, True])
def test_metadata_of_geoparquet(tmp_path, is_in_degrees):
    export = export_of(span_of(RING), is_in_degrees=is_in_degrees)
    pq.write_table(export.geo_table(), tmp_path / "places.parquet")
    metadata = pq.read_schema(tmp_path / "places.parquet").metadata
    geo = json.loads(metadata[b"geo"])
    assert geo["version"] == "1.1.0"
    column = geo["columns"][geo["primary_column"]]
    assert ("crs" in column) is not is_in_degrees  # a missing one means longitude and latitude
    assert column.pop("crs", None) is None
    assert column == {
        "encoding": "WKB",
        "geometry_types": ["MultiPolygon"],
        "orientation": "counterclockwise",
        "bbox": [0.0, 0.0, 4.0, 4.0],
    }
    assert json.loads(metadata[b"release"]) == FACTS["release"]


def test_points_in_well_known_binary():
    point = {"type": "Point", "coordinates": [-74.25, 40.5]}
    assert parsed(well_known_binary(point)) == point


def lines_of(export):
    return list(csv.DictReader(io.StringIO(export.csv())))


def test_lines_of_spans_over_any_columns():
    mask = np.zeros((4, 2, 2), dtype=bool)
    mask[1:3, 0, 1] = True
    span = span_of(mask, low=(0.0, 0.0, 20_000.0), high=(4.0, 2.0, 20_001.0))
    export = export_of(span, names=("a", "count", "day"), kinds=("number", "number", "date"))
    (line,) = lines_of(export)
    assert list(line)[:6] == ["label", "count", "count_low", "count_high", "confidence", "volume"]
    assert (float(line["count"]), float(line["volume"])) == (1234.4, 1.0)
    found = [float(line[f"{what}_a"]) for what in ("low", "centroid", "high")]
    assert found == [1.0, 2.0, 3.0]
    assert float(line["low_count"]) == 0.0
    assert (line["low_day"], line["high_day"]) == ("2024-10-04T12:00:00", "2024-10-05T00:00:00")


def cycle(name, *period):
    return tuple(Coordinate(name, "cycle", period=period, part=part) for part in ("cos", "sin"))


def test_a_map_with_other_columns_has_footprints(tmp_path):
    mask = np.zeros((4, 4, 2, 3, 3), dtype=bool)
    mask[1:3, 0, 1, 2, 1] = True  # in the second half of the heights, at the start of the day
    mask[1, 1, 1, 2, 1] = True
    mask[1, 0, 0, 2, 1] = True  # over a place that is there already
    span = span_of(mask, low=(0.0, 0.0, 10.0, -1.0, -1.0), high=(4.0, 4.0, 30.0, 1.0, 1.0))
    columns = (Coordinate("lon"), Coordinate("lat"), Coordinate("height"), *cycle("hour", 0.0, 24.0))
    export = Export(exported_spans((span,), is_in_degrees=True), columns, FACTS, True)
    (feature,) = export.geojson()["features"]
    (rings,) = feature["geometry"]["coordinates"]
    assert signed_area(rings[0]) == 3.0
    found = feature["properties"]
    assert (found["low_height"], found["high_height"], found["around_hour"]) == (10.0, 30.0, "00:00")
    assert found["area_km2"] == pytest.approx(3 * 111.195**2, rel=1e-3)
    pq.write_table(export.geo_table(), tmp_path / "places.parquet")
    (row,) = pq.read_table(tmp_path / "places.parquet").to_pylist()
    assert parsed(row.pop("geometry")) == feature["geometry"]
    assert row == found
    (line,) = lines_of(export)
    assert (line["low_lon"], line["high_lat"], line["around_hour"]) == ("1.0", "2.0", "00:00")


def test_lines_of_centres():
    centers = np.array([[1.0, 2.0], [3.0, 4.0]])
    sizes = Sizes.of("cluster", np.array([10.0, 20.0]), np.array([1.0, 100.0]))
    columns = (Coordinate("east"), Coordinate("north"))
    export = Export(exported_centres(centers, sizes, centers / 10), columns, FACTS, False)
    line = lines_of(export)[1]
    assert {name: float(value) for name, value in line.items()} == {
        "label": 1,
        "count": 20,
        "count_low": 0,
        "count_high": 216,
        "confidence": CONFIDENCE,
        "center_east": 3,
        "center_north": 4,
        "std_east": 0.3,
        "std_north": 0.4,
    }
    assert export.geojson()["features"][1]["geometry"] == {"type": "Point", "coordinates": [3.0, 4.0]}


def test_numbers_have_no_more_digits_than_their_noise_leaves():
    center, stds = np.array([[12.3456789, -0.000123456]]), np.array([[0.0456789, 2.3456789e-6]])
    sizes = Sizes.of("cluster", np.array([1451.5411673]), np.array([33.3333333]))
    columns = (Coordinate("east"), Coordinate("north"))
    (line,) = lines_of(Export(exported_centres(center, sizes, stds), columns, FACTS, False))
    assert (line["count"], line["count_low"]) == ("1451.5", "1386.2")
    assert (line["center_east"], line["std_east"]) == ("12.3457", "0.0457")
    assert (float(line["center_north"]), line["std_north"]) == (-0.00012346, "2.35e-06")
    (line,) = lines_of(export_of(span_of(RING[:3, :3], low=(0.0, 0.0), high=(1.0, 3.0))))
    assert (line["low_east"], line["high_east"], line["centroid_north"]) == ("0.0", "1.0", "1.5")
    grid = Grid((0.0, 0.0), (1.0, 1.0), (3, 3))
    third = Span(0, 5.0, 4.0, 6.0, 0.95, grid, np.array([4]))
    (line,) = lines_of(export_of(third))
    assert (line["low_east"], line["high_east"]) == ("0.333", "0.667")


def test_what_is_not_known_is_empty():
    columns = (Coordinate("east"), Coordinate("north"))
    export = Export(exported_centres(np.array([[1.0, 2.0]])), columns, FACTS, False)
    (line,) = lines_of(export)
    assert [line[name] for name in ("count", "count_low", "count_high", "confidence")] == [""] * 4
    assert export.geojson()["features"][0]["properties"]["count"] is None
    assert export.geo_table()["count"].null_count == 1
    sized = Exported(0, np.zeros(2), 5.0, confidence=0.95)
    assert (sized.properties["count"], sized.properties["confidence"]) == (5.0, None)


@pytest.mark.parametrize("kinds", [("number",), ("number", "date"), ("number",) * 3, ("level", "level")])
@pytest.mark.parametrize("form", ["geojson", "geo_table"])
def test_maps_need_two_columns_of_numbers(kinds, form):
    export = export_of(names=("abc"[: len(kinds)]), kinds=kinds)
    with pytest.raises(ParameterError, match=r"2 columns of numbers, got .*to_csv.*boxes"):
        getattr(export, form)()
