"""Exports of releases: from the file alone, for every model."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from sfumato import DPDBSCAN, DensityTree, DPMoG, GridKMeans, MorseClustering, Release, SourceTargetClustering
from sfumato.errors import ParameterError

pytestmark = pytest.mark.usefixtures("quick")

CITY = ([-122.6, 37.55], [-122.3, 37.85])
METHODS = {
    "tree": DensityTree(epsilon=5, bounds=(-1, 1)),
    "dbscan": DPDBSCAN(radius=0.25, min_samples=100, epsilon=20, bounds=(-1, 1)),
    "grid": GridKMeans(3, max_cells=25, epsilon=5, bounds=(-1, 1)),
    "mixture": DPMoG(3, epsilon=5, bounds=(-1, 1)),
    "morse": MorseClustering(n_clusters=2, epsilon=5, bounds=(-1, 1)),
}


def people(n=3000):
    rng = np.random.default_rng(0)
    return np.concatenate(
        [rng.normal(place, [0.004, 0.003], size=(n, 2)) for place in ([-122.40, 37.79], [-122.44, 37.62])]
    )


@pytest.fixture(scope="module")
def city():
    return DensityTree(epsilon=2, bounds=CITY, metric="geo", random_state=0).fit(people())


@pytest.mark.parametrize("name", METHODS)
def test_every_model_from_its_file_alone(rows, tmp_path, name):
    release = METHODS[name].fit(np.repeat(rows, 5, axis=0)).release_
    loaded = Release.load(release.save(tmp_path / "release.json"))
    found = loaded.to_geojson(tmp_path / "places.geojson")
    assert found == release.to_geojson() == json.loads((tmp_path / "places.geojson").read_text())
    sizes = loaded.model.estimated_sizes.estimates
    assert len(sizes) > 1
    tenths = [round(size, 1) for size in sizes.tolist()]
    assert [feature["properties"]["count"] for feature in found["features"]] == tenths
    table = pq.read_table(loaded.to_geoparquet(tmp_path / "places.parquet"))
    assert table["count"].to_pylist() == tenths
    lines = pd.read_csv(loaded.to_csv(tmp_path / "places.csv"))
    np.testing.assert_allclose(lines["count"], tenths)
    assert (lines.count_low <= lines["count"]).all()
    assert (lines["count"] <= lines.count_high).all()
    kind = "MultiPolygon" if hasattr(loaded.model, "spans") else "Point"
    assert {feature["geometry"]["type"] for feature in found["features"]} == {kind}


def test_features_hold_the_rows_that_predict_puts_there(city):
    (feature, *_) = city.to_geojson()["features"]
    corners = np.concatenate([ring for rings in feature["geometry"]["coordinates"] for ring in rings])
    inside = people()[city.labels_ == feature["properties"]["label"]]
    assert (inside >= corners.min(axis=0) - 1e-4).all()
    assert (inside <= corners.max(axis=0) + 1e-4).all()


def test_the_estimator_gives_what_the_release_gives(city, tmp_path):
    assert city.to_geojson(tmp_path / "a.geojson") == city.release_.to_geojson(tmp_path / "b.geojson")
    assert (tmp_path / "a.geojson").read_bytes() == (tmp_path / "b.geojson").read_bytes()
    assert (tmp_path / "a.geojson").stat().st_mode & 0o777 == 0o644


def test_where_it_comes_from(city):
    found = city.to_geojson()
    assert found["warning"] == "seeded: do not publish"
    assert "crs" not in found
    release = found["release"]
    privacy = release.pop("privacy")
    assert release == {
        "method": "DensityTree",
        "columns": [],
        "created": city.release_.created,
        "library": f"sfumato {city.release_.library}",
        "sha256": city.release_.checksum(),
    }
    assert privacy.pop("statement").startswith("seeded: do not publish\nDifferential privacy with epsilon=2")
    assert privacy == {"epsilon": 2.0, "delta": 0.0, "unit": "one row", "seeded": True}


def test_runs_without_a_seed_and_budgets_in_rho(rows):
    found = GridKMeans(3, max_cells=25, rho=0.5, bounds=(-1, 1)).fit(rows).release_.to_geojson()
    assert "warning" not in found
    assert found["crs"] is None
    privacy = found["release"]["privacy"]
    assert privacy["rho"] == pytest.approx(0.5)
    assert privacy["seeded"] is False
    assert "epsilon" not in privacy


def test_centres_without_sizes(rows, tmp_path):
    model = SourceTargetClustering(2, epsilon=5, bounds=(-1, 1), random_state=0).fit(rows, source=rows[:100])
    lines = pd.read_csv(model.release_.to_csv(tmp_path / "places.csv"))
    np.testing.assert_allclose(lines[["center_1", "center_2"]], model.cluster_centers_)
    assert lines["count"].isna().all()


def test_other_columns_go_to_tables(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(40, 4, 3000), "dose": rng.normal(5, 0.4, 3000), "ml": 0.5})
    bounds = {"age": (0, 100), "dose": (0, 10), "ml": (0, 1)}
    release = DensityTree(epsilon=5, bounds=bounds, random_state=0).fit(table).release_
    for write in (release.to_geojson, release.to_geoparquet):
        with pytest.raises(ParameterError, match=r"2 columns of numbers, got 3\. .*--csv"):
            write(tmp_path / "places")
    assert list(tmp_path.iterdir()) == []
    lines = pd.read_csv(release.to_csv(tmp_path / "places.csv"))
    assert {"volume", "centroid_age", "low_dose", "high_ml"} <= {*lines.columns}


def test_two_coordinates_of_a_cycle_are_no_map():
    table = pd.DataFrame({"hour": [3.0, 15.0] * 100})
    model = GridKMeans(2, bounds={"hour": {"cycle": (0, 24)}}, max_cells=9, profiles=0).fit(table)
    with pytest.raises(ParameterError, match="2 columns of numbers, got 2, among them of type cycle"):
        model.release_.to_geojson()


def test_models_without_clusters(rows):
    release = GridKMeans(3, max_cells=25, bounds=(-1, 1)).fit(rows).release_
    vars(release)["model"] = object()
    with pytest.raises(ParameterError, match="must have clusters in columns, got object"):
        release.to_geojson()


@pytest.mark.parametrize("names", [("lat", "lon"), ("start_latitude", "start_longitude"), ("Lat", "Lng")])
def test_latitude_first_is_refused_before_anything_is_read(names):
    """The bounds of New York also fit a place in Antarctica."""
    bounds = dict(zip(names, [(40.4, 41.0), (-74.3, -73.6)], strict=True))
    table = pd.DataFrame({names[0]: [40.7], names[1]: [-74.0]})
    with pytest.raises(ParameterError, match=f"first column, got '{names[0]}' and then '{names[1]}'"):
        DensityTree(bounds=bounds, metric="geo").fit(table)
    with pytest.raises(ParameterError, match="Write the bounds of"):
        DPDBSCAN(radius=500, min_samples=50, bounds=bounds, metric="geo").fit(table)
    DensityTree(bounds=bounds, cell=0.1).fit(pd.concat([table] * 50))
