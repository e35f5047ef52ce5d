"""Columns measured by their bounds: the same as a table that was scaled by hand, in the user's units."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import (
    DPDBSCAN,
    DPM,
    DensityTree,
    DPMoG,
    GridKMeans,
    LloydKMeans,
    MorseClustering,
    Release,
    SourceTargetClustering,
)
from sfumato.public.models import encode

pytestmark = [
    pytest.mark.usefixtures("quick"),
    pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning"),
]
LOW, WIDTHS = np.array([-8.0, 100.0, 0.0]), np.array([4.0, 1024.0, 0.5])  # powers of two: nothing is rounded
HIGH = LOW + WIDTHS
BOUNDS = (LOW.tolist(), HIGH.tolist())
CENTERS = np.array([[0.2, 0.2, 0.2], [0.8, 0.3, 0.7], [0.4, 0.8, 0.5]])


def unit_rows(n=600, seed=0):
    """Three blobs in the unit cube, and a few rows outside."""
    rng = np.random.default_rng(seed)
    rows = CENTERS[rng.integers(3, size=n)] + rng.normal(scale=0.06, size=(n, 3))
    rows[:5] += 0.9
    return np.round(rows * 2**20) / 2**20  # so that scaling by hand is exact


UNIT = unit_rows()
TABLE = LOW + WIDTHS * UNIT


def flat(value, path=""):
    """All numbers of an encoded model, by their place."""
    if isinstance(value, dict):
        return {key: n for name, part in value.items() for key, n in flat(part, f"{path}.{name}").items()}
    if isinstance(value, list):
        return {key: n for i, part in enumerate(value) for key, n in flat(part, f"{path}[{i}]").items()}
    return {path: value}


def assert_same(one, other):
    """Two models hold the same numbers, up to rounding."""
    one, other = flat(encode(one)), flat(encode(other))
    assert one.keys() == other.keys()
    for path, value in one.items():
        if isinstance(value, float):
            assert value == pytest.approx(other[path], rel=1e-9, abs=1e-9), path
        elif not path.endswith("words"):
            assert value == other[path], path


def scaled_and_by_hand(make, **parameters):
    model = make(bounds=BOUNDS, scale="bounds", random_state=3, **parameters).fit(TABLE)
    return model, make(bounds=(0, 1), random_state=3, **parameters).fit(UNIT)


@pytest.mark.parametrize("budget", [{"epsilon": 3}, {"epsilon": 3, "delta": 1e-6}], ids=["pure", "delta"])
def test_as_scaled_by_hand(make, budget):
    """Every estimator: the same model in measured units, the same labels, and centres in the user's units."""
    own, by_hand = scaled_and_by_hand(make, **budget)
    assert own.release_.domain.measure.step == tuple(WIDTHS)
    assert_same(own.release_.measured_model, by_hand.release_.model)
    assert own.privacy_.steps == by_hand.privacy_.steps
    assert (own.predict(TABLE) == by_hand.predict(UNIT)).all()
    assert (own.labels_ == by_hand.labels_).all()
    for name in ("cluster_centers_", "means_"):
        if hasattr(own, name):
            assert getattr(own, name) == pytest.approx(LOW + WIDTHS * getattr(by_hand, name))
    assert own.release_.domain.low == tuple(LOW)


def test_a_saved_release_predicts_the_same(make, tmp_path):
    own, _ = scaled_and_by_hand(make, epsilon=3)
    loaded = Release.load(own.release_.save(tmp_path / "release.json"))
    assert loaded.domain == own.release_.domain
    assert (loaded.predict(TABLE) == own.labels_).all()
    assert encode(loaded.model) == encode(own.release_.model)


def test_bounds_that_are_no_round_numbers():
    """Up to rounding, so a few rows near a border may change sides."""
    rng = np.random.default_rng(5)
    low, widths = rng.normal(scale=100, size=3), 10 ** rng.uniform(-2, 4, size=3)
    own = LloydKMeans(3, epsilon=5, bounds=(low, low + widths), random_state=1).fit(low + widths * UNIT)
    by_hand = LloydKMeans(3, epsilon=5, bounds=(0, 1), random_state=1).fit(UNIT)
    assert own.cluster_centers_ == pytest.approx(low + widths * by_hand.cluster_centers_, rel=1e-5)
    assert (own.labels_ == by_hand.labels_).mean() > 0.99


def test_deviations_come_back_in_the_units_of_the_columns():
    own, by_hand = scaled_and_by_hand(lambda **p: LloydKMeans(3, **p), epsilon=3)
    model = own.release_.model
    assert model.center_stds == pytest.approx(WIDTHS * by_hand.release_.model.center_stds)
    assert model.size_stds == pytest.approx(by_hand.release_.model.size_stds)
    mixture, unit_mixture = scaled_and_by_hand(lambda **p: DPMoG(3, **p), epsilon=3)
    expected = unit_mixture.covariances_ * WIDTHS[:, None] * WIDTHS
    assert mixture.covariances_ == pytest.approx(expected)


@pytest.mark.parametrize("weights", [[1.0, 4.0, 0.5], [2.0, 2.0, 2.0]])
def test_weights_as_by_hand(weights):
    own = LloydKMeans(3, epsilon=3, bounds=BOUNDS, weights=weights, random_state=2).fit(TABLE)
    space = ([0.0] * 3, weights)
    by_hand = LloydKMeans(3, epsilon=3, bounds=space, scale=None, random_state=2).fit(UNIT * weights)
    assert own.cluster_centers_ == pytest.approx(LOW + WIDTHS * by_hand.cluster_centers_ / weights)
    assert (own.labels_ == by_hand.labels_).all()


def test_a_heavy_column_decides():
    """Two groups in each of two columns: the heavier column is the one that is split."""
    rng = np.random.default_rng(0)
    rows = rng.choice([0.3, 0.7], size=(4000, 2)) + rng.normal(scale=0.02, size=(4000, 2))
    table = rows * [10, 1000]
    for heavy in (0, 1):
        weights = [4.0, 1.0] if heavy == 0 else [1.0, 4.0]
        model = LloydKMeans(2, epsilon=5, bounds=([0, 0], [10, 1000]), weights=weights, random_state=0)
        model.fit(table)
        apart = np.abs(np.diff(model.cluster_centers_, axis=0)[0]) / [10, 1000]
        assert apart[heavy] > 0.3
        assert apart[1 - heavy] < 0.1


class TestGrids:
    @pytest.fixture
    def models(self):
        return scaled_and_by_hand(lambda **p: GridKMeans(3, max_cells=200, **p), epsilon=4)

    def test_clusters_of_another_number(self, models):
        own, by_hand = models
        for k in (2, 5):
            centers, sizes = own.synopsis_.cluster(k)
            unit_centers, unit_sizes = by_hand.synopsis_.cluster(k)
            assert centers == pytest.approx(LOW + WIDTHS * unit_centers)
            assert sizes == pytest.approx(unit_sizes)

    def test_counts_in_boxes(self, models):
        own, by_hand = models
        for low, high in [(np.zeros(3), np.ones(3)), (np.full(3, 0.1), np.array([0.5, 0.55, 0.9]))]:
            found = own.synopsis_.range_count(LOW + WIDTHS * low, LOW + WIDTHS * high)
            assert found == pytest.approx(by_hand.synopsis_.range_count(low, high))

    def test_samples(self, models):
        own, by_hand = models
        found = own.synopsis_.sample(100, random_state=0)
        assert found == pytest.approx(LOW + WIDTHS * by_hand.synopsis_.sample(100, random_state=0))

    def test_the_grid_is_in_the_units_of_the_columns(self, models):
        own, by_hand = models
        assert own.grid_.low == tuple(LOW)
        assert own.grid_.high == tuple(HIGH)
        assert own.grid_.shape == by_hand.grid_.shape


def test_cuts_of_a_tree_as_by_hand():
    own, by_hand = scaled_and_by_hand(lambda **p: DensityTree(**p), epsilon=8)
    assert own.n_clusters_ == by_hand.n_clusters_ > 0
    for k in (1, 2, 3):
        one, other = own.cut(n_clusters=k), by_hand.cut(n_clusters=k)
        assert one.n_clusters_ == other.n_clusters_
        assert (one.labels_ == other.labels_).all()


def test_other_numbers_of_neighbours_as_by_hand():
    own, by_hand = scaled_and_by_hand(lambda **p: DPDBSCAN(radius=0.2, min_samples=30, **p), epsilon=8)
    assert own.n_clusters_ == by_hand.n_clusters_ > 0
    for n in (10, 60):
        one, other = own.at(n), by_hand.at(n)
        assert one.n_clusters_ == other.n_clusters_
        assert (one.labels_ == other.labels_).all()


@pytest.mark.parametrize("base", [DPMoG(5), LloydKMeans(5)], ids=["mixture", "centres"])
def test_merged_components_as_by_hand(base):
    own, by_hand = scaled_and_by_hand(lambda **p: MorseClustering(base, 3, **p), epsilon=8)
    assert own.saddles_.positions == pytest.approx(LOW + WIDTHS * by_hand.saddles_.positions, rel=1e-6)
    heights = by_hand.saddles_.log_densities - np.log(WIDTHS).sum()  # rows per unit of the user's space
    assert own.saddles_.log_densities == pytest.approx(heights, rel=1e-6)
    for k in (1, 2, 4):
        one, other = own.cut(k), by_hand.cut(k)
        assert (one.labels_ == other.labels_).all()


@pytest.mark.parametrize("sanitizer", ["nna", "nas"])
def test_source_and_target_as_by_hand(sanitizer):
    targets = np.round(np.random.default_rng(1).uniform(size=(50, 3)) * 2**20) / 2**20
    options = {"sanitizer": sanitizer, "t": 20, "epsilon": 4, "random_state": 0}
    own = SourceTargetClustering(3, bounds=BOUNDS, scale="bounds", **options)
    own.fit(LOW + WIDTHS * targets, TABLE)
    by_hand = SourceTargetClustering(3, bounds=(0, 1), **options).fit(targets, UNIT)
    assert own.center_indices_.tolist() == by_hand.center_indices_.tolist()
    assert own.sanitized_source_ == pytest.approx(LOW + WIDTHS * by_hand.sanitized_source_)
    assert own.cost_ == pytest.approx(by_hand.cost_)
    assert own.cost(LOW + WIDTHS * targets, TABLE) == pytest.approx(by_hand.cost(targets, UNIT))


NAMED = {"east": (-8, -4), "north": (100, 1124), "job": ["a", "b", "c"], "hour": {"cycle": (0, 24)}}
NAMED |= {"degree": {"levels": ["low", "mid", "high"], "ordered": True}, "smokes": bool}


def mixed_columns(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "east": TABLE[:n, 0],
        "north": TABLE[:n, 1],
        "job": rng.choice(["a", "b", "c", "d"], n),
        "hour": rng.uniform(-30, 30, n),
        "degree": rng.choice(["low", "mid", "high"], n),
        "smokes": rng.random(n) < 0.3,
        "ward": rng.choice(["x", "y", None], n),
        "who": [f"person {i // 3}" for i in range(n)],
    }


def write_csv(columns, folder):
    path = folder / "rows.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def write_parquet(columns, folder):
    table = pa.table(columns)
    for i in range(3):
        pq.write_table(table.slice(150 * i, 150), folder / f"{i}.parquet")
    return folder / "*.parquet"


SOURCES = {
    "arrow": lambda columns, _: pa.table(columns),
    "pandas": lambda columns, _: pd.DataFrame(columns),
    "polars": lambda columns, _: pl.DataFrame(columns),
    "csv": write_csv,
    "parquet": write_parquet,
}
UNITS = {"rows": {}, "people": {"unit": "who", "max_rows_per_unit": 2}}


def mixed_fit(table, **parameters):
    options = {"epsilon": 4, "describe": {"ward": ["x", "y"]}, "random_state": 0, "profiles": 0.25}
    return LloydKMeans(3, bounds=NAMED, **options, **parameters).fit(table)


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_all_kinds_of_tables_give_the_same_bits(unit, tmp_path):
    columns = mixed_columns()
    first, *others = [mixed_fit(write(columns, tmp_path), **unit).release_ for write in SOURCES.values()]
    for release in others:
        assert encode(release.model) == encode(first.model)
        assert encode(release.profiles) == encode(first.profiles)
        assert release.domain == first.domain
        assert release.columns == first.columns


def test_spark_gives_the_same_bits(spark):
    columns = mixed_columns()
    local = mixed_fit(pa.table(columns), **UNITS["people"]).release_
    remote = mixed_fit(spark.createDataFrame(pa.table(columns)), **UNITS["people"]).release_
    assert encode(remote.model) == encode(local.model)
    assert encode(remote.profiles) == encode(local.profiles)


class TestRule:
    """What is decided by public declarations alone, and said in the plan."""

    @pytest.mark.parametrize(
        ("bounds", "words"),
        [
            ({"x": (0, 40), "y": (0, 30)}, "as on a map"),
            ({"x": (0, 40, "km"), "y": (0, 3, "km")}, "all are in km"),
            ({"age": (17, 90), "income": (0, 1e6)}, "in units of their bounds"),
            ((0, 1), "equally wide"),
            (([0, 0], [40, 30]), "as on a map"),
        ],
        ids=str,
    )
    def test_the_plan_prints_it(self, bounds, words):
        printed = str(LloydKMeans(3, bounds=bounds).plan(2))
        assert words in printed.splitlines()[-1]

    def test_lengths_keep_columns_as_they_are(self):
        wide = ([0, 0], [1, 1000])
        for model in (DensityTree(cell=0.5, bounds=wide), DPM(interval=0.1, bounds=wide)):
            assert "is a length" in str(model.plan(2))
            assert not model.domain(2).measure
        for model in (
            DPDBSCAN(radius=0.5, min_samples=5, bounds=wide),
            SourceTargetClustering(3, bounds=wide),
        ):
            assert not model.domain(2).measure
        assert DensityTree(bounds=wide).domain(2).measure
        assert DPM(bounds=wide).domain(2).measure

    def test_metres_on_a_sphere_are_a_unit(self):
        model = DPDBSCAN(radius=100.0, min_samples=5, metric="geo", scale="bounds", bounds=([0, 0], [1, 50]))
        assert not model.domain(2).measure

    @pytest.mark.parametrize(
        "bounds", [NAMED, {"east": (-8, -4), "north": (100, 1124)}], ids=["mixed", "map"]
    )
    def test_rows_have_no_say(self, bounds):
        """It is known before there are rows, and the same for all of them."""
        columns = mixed_columns()
        model = LloydKMeans(3, bounds=bounds, random_state=0, profiles=0)
        before = model.domain(3).measure
        rows = pd.DataFrame(columns)
        for table in (rows, rows.iloc[:1], rows.iloc[:0], rows.assign(east=-5.0, north=1e9)):
            assert model.fit(table).release_.domain.measure == before

    def test_a_table_is_opened_without_a_row(self, tmp_path):
        """The schema of a file is enough to say how its columns are measured."""
        path = write_parquet(mixed_columns(), tmp_path)
        model = LloydKMeans(3, bounds=NAMED)
        opened = model._open(str(path))
        for file in tmp_path.glob("*.parquet"):
            file.unlink()
        assert opened.domain.measure == model.domain(9).measure

    def test_private_bounds_are_measured_once_they_are_released(self):
        table = UNIT * [1, 1, 1000]
        model = LloydKMeans(3, bounds="private", epsilon=20, random_state=0).fit(table)
        domain = model.release_.domain
        assert "in units of their bounds" in domain.measure.words
        assert domain.measure.step == pytest.approx(tuple(2 * domain.half_width))

    def test_one_pair_of_bounds_is_left_to_the_last_bit(self, rows):
        """With the rule and without it, and with weights of 1."""
        found = [
            LloydKMeans(3, bounds=(-1, 1), random_state=0, **options).fit(rows).cluster_centers_
            for options in ({}, {"scale": None}, {"weights": [1, 1]})
        ]
        assert (found[0] == found[1]).all()
        assert (found[0] == found[2]).all()
