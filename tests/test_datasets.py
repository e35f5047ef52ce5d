import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.spatial.distance import pdist

from sfumato import datasets
from sfumato.errors import DataError, ParameterError

needs_data = pytest.mark.skipif(datasets.data_home() is None, reason="SFUMATO_DATA is not set")


@pytest.fixture
def home(tmp_path, monkeypatch):
    labelled = {"x": pa.array([0.5, 1.5, 2.5], pa.float32()), "who": [7, 7, 8], "y": [1, 2, 3]}
    pq.write_table(pa.table({**labelled, "label": pa.array([0, -1, 1], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [0.5, 1.5]}), tmp_path / "b.parquet")
    entries = [
        {"name": "a", "file": "a.parquet", "columns": "x..y", "extra_columns": ["who"], "has_label": True},
        {"name": "b", "file": "b.parquet", "columns": ["x"], "extra_columns": [], "has_label": False},
        {"name": "gone", "file": "gone.parquet", "columns": ["x"], "extra_columns": [], "has_label": False},
    ]
    (tmp_path / "MANIFEST.json").write_text(json.dumps(entries), "utf-8")
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))
    return tmp_path


class TestLoad:
    def test_data_home_is_the_variable(self, home, monkeypatch):
        assert datasets.data_home() == home
        monkeypatch.setenv("SFUMATO_DATA", "")
        assert datasets.data_home() is None
        monkeypatch.delenv("SFUMATO_DATA")
        assert datasets.data_home() is None

    def test_a_table_has_all_columns(self, home):
        assert "who" in datasets.load_table("a").column_names
        with pytest.raises(DataError):
            datasets.load_table("gone")

    def test_reads_features_and_labels_and_leaves_out_extra_columns(self, home):
        X, labels = datasets.load("a")
        assert X.tolist() == [[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]]
        assert labels.tolist() == [0, -1, 1]
        assert (X.dtype, labels.dtype) == (np.float64, np.int64)

    def test_labels_are_none_when_there_are_none(self, home):
        X, labels = datasets.load("b")
        assert X.tolist() == [[0.5], [1.5]]
        assert labels is None

    def test_says_what_is_missing(self, home, monkeypatch):
        with pytest.raises(DataError, match="one of a, b, gone, got 'c'"):
            datasets.load("c")
        with pytest.raises(DataError, match=r"'gone\.parquet' is missing"):
            datasets.load("gone")
        monkeypatch.setenv("SFUMATO_DATA", str(home / "nowhere"))
        with pytest.raises(DataError, match="SFUMATO_DATA must name a folder with MANIFEST"):
            datasets.load("a")
        monkeypatch.delenv("SFUMATO_DATA")
        with pytest.raises(DataError, match="SFUMATO_DATA is not set"):
            datasets.load("a")

    @needs_data
    @pytest.mark.parametrize("name", ["r15", "digits", "har70_windows", "birch_rg1"])
    def test_stored_data_are_as_the_manifest_says(self, name):
        manifest = json.loads((datasets.data_home() / "MANIFEST.json").read_text("utf-8"))
        entry = next(entry for entry in manifest if entry["name"] == name)
        X, labels = datasets.load(name)
        assert X.shape == (entry["rows"], entry["dims"])
        assert np.isfinite(X).all()
        assert (None if labels is None else len(np.unique(labels))) == entry["classes"]


class TestSeparatedGaussians:
    @pytest.mark.parametrize(("n", "k", "d"), [(1, 1, 1), (403, 8, 3), (500, 64, 10), (60, 20, 1)])
    def test_sizes_box_and_shapes(self, n, k, d):
        X, labels = datasets.separated_gaussians(n, k, d, random_state=1)
        assert X.shape == (n, d)
        assert np.abs(X).max() <= 1.0
        sizes = np.bincount(labels, minlength=k)
        assert sizes.sum() == n
        assert np.ptp(sizes) <= 1

    def test_spread_and_separation(self):
        sigma = 0.16 / np.sqrt(4)
        for seed in range(20):
            X, labels = datasets.separated_gaussians(4_000, 4, 2, random_state=seed)
            middles = np.array([np.median(X[labels == i], axis=0) for i in range(4)])
            inner = np.abs(middles) < 1 - 4 * sigma
            spread = np.array([X[labels == i].std(axis=0) for i in range(4)])
            assert pdist(middles).min() > 5.4 * sigma - 0.02
            assert spread[inner] == pytest.approx(sigma, rel=0.1)

    def test_is_reproducible(self):
        first, second = (datasets.separated_gaussians(50, 3, 2, random_state=4) for _ in range(2))
        other = datasets.separated_gaussians(50, 3, 2, random_state=5)
        assert np.array_equal(first[0], second[0])
        assert np.array_equal(first[1], second[1])
        assert not np.array_equal(first[0], other[0])

    def test_ends_with_an_error_when_there_is_no_room(self):
        with pytest.raises(ParameterError, match=r"room for 3 centres 2\.13 apart in \[-0\.84, 0\.84\]\^1"):
            datasets.separated_gaussians(10, 3, 1, separation=40.0)

    @pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
    def test_refuses_what_is_not_positive(self, sizes):
        with pytest.raises(ParameterError, match="must be positive"):
            datasets.separated_gaussians(*sizes)


@pytest.fixture(scope="module")
def map_of_homes():
    return datasets.city(60_000)


class TestCity:
    def test_homes_lie_on_land_inside_the_public_bounds(self, map_of_homes):
        X, labels = map_of_homes
        low, high = datasets.CITY_BOUNDS
        assert X.shape == (60_000, len(datasets.CITY_COLUMNS))
        assert labels.shape == (60_000,)
        assert ((low <= X) & (high >= X)).all()
        assert not datasets._is_water(X).any()

    @pytest.mark.parametrize("north", [12.0, 16.0, 20.0, 24.0])
    def test_a_river_divides_the_land(self, north):
        east = np.arange(0.0, 40.0, 0.01)
        is_water = datasets._is_water(np.column_stack([east, np.full(4_000, north)]))
        banks = np.flatnonzero(np.diff(is_water))
        assert len(banks) == 2
        assert 0.5 < east[banks[1]] - east[banks[0]] < 2.0

    def test_the_south_is_sea_and_the_old_town_is_not(self):
        assert datasets._is_water(np.array([[10.0, 1.0], [30.0, 1.0], [19.2, 13.2]])).tolist() == [
            True,
            True,
            False,
        ]

    def test_places_have_unequal_shares_and_all_occur(self, map_of_homes):
        _, labels = map_of_homes
        n_places = len(datasets.CITY_PLACES)
        counts = np.bincount(labels % n_places, minlength=n_places)
        assert set(np.unique(labels)) == {-1, *range(n_places - 1)}
        assert counts[0] == counts.max()
        assert counts[0] / 60_000 == pytest.approx(0.17, abs=0.01)
        assert datasets.CITY_PLACES[-1] == "countryside"

    def test_the_old_town_is_the_densest_place_and_the_countryside_the_thinnest(self, map_of_homes):
        X, labels = map_of_homes
        density = {}
        for label in np.unique(labels):
            homes = X[labels == label]
            cells = np.unique(np.floor(homes / 0.5), axis=0)
            density[datasets.CITY_PLACES[label]] = len(homes) / len(cells)
        assert max(density, key=density.get) == "old town"
        assert min(density, key=density.get) == "countryside"

    def test_is_reproducible_and_mixes_the_rows(self):
        first, second, other = datasets.city(500), datasets.city(500), datasets.city(500, random_state=1)
        assert np.array_equal(first[0], second[0])
        assert np.array_equal(first[1], second[1])
        assert not np.array_equal(first[0], other[0])
        assert (np.diff(first[1]) < 0).any()

    def test_one_person_and_nobody(self):
        X, labels = datasets.city(1)
        assert (X.shape, labels.shape) == ((1, 2), (1,))
        with pytest.raises(ParameterError, match="`n` must be positive, got 0"):
            datasets.city(0)


class TestTaggedGroups:
    def test_rows_are_zeros_and_ones_of_the_recipe(self):
        X, labels = datasets.tagged_groups(3_000, n_columns=4_000, n_clusters=5, random_state=1)
        assert X.shape == (3_000, 4_000)
        assert set(X.data) == {1.0}
        assert 80 < X.nnz / 3_000 < 100
        sizes = np.bincount(labels, minlength=5)
        assert sizes[0] > sizes[-1] > 0

    def test_a_seed_decides_and_bad_numbers_are_refused(self):
        first, second = (datasets.tagged_groups(50, 500, 2, random_state=4) for _ in range(2))
        assert (first[0] != second[0]).nnz == 0
        with pytest.raises(ParameterError, match="`n_columns` must be at least 242"):
            datasets.tagged_groups(50, 100, 2)
