"""`sfumato export`: maps and tables from a release file."""

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from sfumato import Release

FIT = ["--method", "density-tree", "--epsilon", 2, "--bounds", "bounds.toml", "--quiet"]


@pytest.fixture
def release(call, trips, bounds):
    call("fit", trips, *FIT)
    return Release.load("release.json")


def test_all_formats_at_once(call, release, silent_about):
    done = call(
        "export", "release.json", "--geojson", "p.geojson", "--geoparquet", "p.parquet", "--csv", "p.csv"
    )
    assert done.stdout == "geojson: p.geojson\ngeoparquet: p.parquet\ncsv: p.csv\n"
    assert done.stderr.startswith("note: ")
    assert "--set metric=geo" in done.stderr
    assert json.loads(Path("p.geojson").read_text()) == release.to_geojson()
    counts = [round(span.count, 1) for span in release.model.spans]
    assert pq.read_table("p.parquet")["count"].to_pylist() == counts
    lines = pd.read_csv("p.csv")
    assert lines["count"].tolist() == pytest.approx(counts)
    assert {"area", "centroid_east", "low_north", "high_north"} <= {*lines.columns}
    silent_about(done.output)


def test_a_map_in_degrees(call, frame):
    Path("bounds.toml").write_text("lon = [-74.3, -73.6]\nlat = [40.4, 41.0]\n")
    frame.assign(lon=frame.east / 60 - 74.3, lat=frame.north / 60 + 40.4).to_parquet("map.parquet")
    call("fit", "map.parquet", *FIT, "--set", "metric=geo", "--seed", 1)
    done = call("export", "release.json", "--geojson", "p.geojson", "--geoparquet", "p.parquet")
    assert done.stderr == "warning: the noise came from a seed: do not publish these files\n"
    found = json.loads(Path("p.geojson").read_text())
    assert found["warning"] == "seeded: do not publish"
    assert all(feature["properties"]["area_km2"] > 1 for feature in found["features"])
    geo = json.loads(pq.read_schema("p.parquet").metadata[b"geo"])
    assert "crs" not in geo["columns"]["geometry"]
    assert "metric=geo" in call("fit", "--help").stdout


def test_centres(call, trips, bounds):
    call("fit", trips, "--clusters", 3, "--epsilon", 2, "--bounds", bounds, "--quiet")
    call("export", "release.json", "--csv", "p.csv", "--geojson", "p.geojson", "--quiet")
    lines = pd.read_csv("p.csv")
    assert {"label", "count", "count_low", "center_east", "center_north"} <= {*lines.columns}
    assert len(lines) == len(json.loads(Path("p.geojson").read_text())["features"])


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ([], "Try --geojson"),
        (["--csv", "old.csv"], "--force"),
        (["--csv", "new.csv", "--geojson", "new.csv"], "must differ"),
        (["--csv", "nowhere/new.csv"], "Create the folder"),
    ],
)
def test_refused(call, release, options, fix):
    Path("old.csv").write_text("precious")
    before = sorted(Path().iterdir())
    assert fix in call("export", "release.json", *options, code=2).stderr
    assert sorted(Path().iterdir()) == before
    assert Path("old.csv").read_text() == "precious"
    assert call("export", "release.json", "--csv", "old.csv", "--force", "--quiet").output == ""


def test_one_column_has_a_table_but_no_map(call, trips):
    Path("bounds.toml").write_text("east = [0, 40]\n")
    call("fit", trips, *FIT)
    done = call("export", "release.json", "--geojson", "p.geojson", "--csv", "p.csv", code=2)
    assert "`sfumato export --csv`" in done.stderr
    assert not Path("p.csv").exists()
    call("export", "release.json", "--csv", "p.csv")
    assert {"length", "low_east"} <= {*pd.read_csv("p.csv").columns}


def test_not_a_release(call):
    assert "must be a release file" in call("export", "no.json", "--csv", "p.csv", code=6).stderr
