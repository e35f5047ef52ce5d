"""DensityTree as a user meets it: parameters, grids, cuts, maps, and accuracy on known shapes."""

import json
import math
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from sfumato import Ball, Budget, DensityTree, Ledger, MorseClustering, Release, datasets
from sfumato.cluster.density_tree import _BYTES_PER_FINE_CELL
from sfumato.errors import ParameterError

needs_data = pytest.mark.skipif(datasets.data_home() is None, reason="SFUMATO_DATA is not set")


def three_hills(n=2000, d=2, seed=0):
    rng = np.random.default_rng(seed)
    centers = np.array([[-0.6, -0.6], [0.6, -0.5], [0.0, 0.7]])[:, np.arange(d) % 2]
    return np.concatenate(
        [rng.normal(c, 0.08, size=(m, d)) for c, m in zip(centers, (n, n // 2, n // 4), strict=True)]
    )


def fitted(rows=None, **parameters):
    rows = three_hills() if rows is None else rows
    return DensityTree(**{"bounds": (-1, 1), "random_state": 0} | parameters).fit(rows)


BAD = [
    ({"cell": 0}, "`cell` must be a positive number"),
    ({"cell": -1.0}, "`cell` must be a positive number"),
    ({"cell": math.nan}, "`cell` must be a positive number"),
    ({"cell": "1"}, "`cell` must be a positive number"),
    ({"cell": 2.5}, "`cell` must be at most the width of the domain, 2, got 2.5"),
    ({"cell": 1e-6}, "raise `max_memory` from 1e+09 bytes"),
    ({"cell": 1e-300}, "raise `max_memory` from 1e+09 bytes"),
    ({"cell": 5e-324}, "`cell`"),
    ({"prominence": 0}, "`prominence` must be a positive number"),
    ({"prominence": math.nan}, "`prominence` must be a positive number"),
    ({"metric": "cosine"}, "`metric` must be"),
    ({"metric": "geo", "bounds": (0, 200)}, "longitude and latitude"),
    ({"max_memory": -1}, "`max_memory` must be a positive number"),
    ({"max_memory": 1000}, "more memory than `max_memory`"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=lambda value: str(value)[:40])
def test_bad_parameters_cost_nothing(tmp_path, parameters, message):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    model = DensityTree(**{"bounds": (-1, 1), "ledger": ledger} | parameters)
    with pytest.raises(ParameterError, match=re.escape(message)):
        model.fit(np.zeros((3, 2)))
    assert ledger.history() == []


@pytest.mark.parametrize(("d", "cell"), [(1, 1e-9), (2, 1e-5), (3, 1e-3), (6, 0.01)])
def test_the_cell_that_an_error_names_fits(d, cell):
    with pytest.raises(ParameterError) as error:
        DensityTree(cell, bounds=(0, 1)).plan(d)
    named = float(re.search(r"least ([\d.e+-]+)", str(error.value)).group(1))
    assert DensityTree(named, bounds=(0, 1)).plan(d)


def test_more_memory_helps():
    with pytest.raises(ParameterError, match="max_memory"):
        DensityTree(0.01, bounds=(-1, 1), max_memory=1e6).plan(2)
    assert DensityTree(0.01, bounds=(-1, 1), max_memory=2e8).plan(2)


@pytest.mark.parametrize("d", [12, 100])
def test_many_columns_are_refused(d):
    with pytest.raises(ParameterError, match=f"{d} columns needs more memory"):
        DensityTree(bounds=(-1, 1)).plan(d)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
def test_numbers_of_columns(d):
    model = fitted(three_hills(4000, d), epsilon=3)
    assert model.n_features_in_ == d
    assert len(model.histogram_.grid.shape) == d
    assert model.n_clusters_ >= 1
    assert (model.predict(np.full((1, d), -0.6)) >= 0).all()


@pytest.mark.parametrize("max_memory", [2e4, 1e5, 1e9])
@pytest.mark.parametrize("n", [0, 10, 100_000])
def test_grids_keep_to_the_memory(max_memory, n):
    model = fitted(np.zeros((n, 2)), max_memory=max_memory)
    assert model.histogram_.grid.n_cells * _BYTES_PER_FINE_CELL <= max_memory


def test_grids_are_finer_for_more_rows_and_more_budget():
    by_rows = [fitted(three_hills(n)).histogram_.grid.n_cells for n in (100, 1000, 10_000)]
    by_budget = [fitted(epsilon=epsilon).histogram_.grid.n_cells for epsilon in (0.1, 1, 10)]
    assert by_rows == sorted(set(by_rows))
    assert by_budget == sorted(set(by_budget))


def test_outline_of_a_small_table_is_finer_with_less_noise():
    outlines = [
        fitted(three_hills(300, 2), epsilon=epsilon).histogram_.nested.coarse.n_cells for epsilon in (1, 1e4)
    ]
    assert outlines[0] <= 80
    assert 200 <= outlines[1] <= 300


def test_a_given_cell_saves_the_number_of_rows():
    model = fitted(cell=0.1)
    assert [record.step for record in model.privacy_.steps] == ["cells"]
    np.testing.assert_allclose(model.histogram_.grid.widths, 0.1)
    assert [record.step for record in fitted().privacy_.steps] == ["rows", "outline", "cells"]


def test_spans():
    model = fitted()
    assert model.n_clusters_ == len(model.spans_) == 3
    assert [span.count for span in model.spans_] == pytest.approx([2000, 1000, 500], rel=0.1)
    assert model.predict([[-0.6, -0.6], [0.6, -0.5], [0.0, 0.7], [0.9, 0.9]]).tolist() == [0, 1, 2, -1]
    for span in model.spans_:
        np.testing.assert_array_equal(span.cells, model.cells_[model.cell_labels_ == span.label])
        assert span.count_low <= span.count <= span.count_high
    assert (model.tree_.heights[model.tree_.parents[model.tree_.parents >= 0]] > 0).all()


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.1}], ids=str)
def test_no_rows_give_clusters_seldom(budget):
    """At most 2 % on an empty domain."""
    n, no_rows = 100, np.empty((0, 2))
    found = [fitted(no_rows, cell=0.1, random_state=seed, **budget).n_clusters_ > 0 for seed in range(n)]
    assert np.mean(found) <= 0.02 + 3 * math.sqrt(0.02 / n)
    assert fitted(no_rows, **budget).n_clusters_ == 0


@pytest.mark.parametrize("epsilon", [30, 1e3, 1e6])
def test_hardly_any_noise(epsilon):
    assert fitted(epsilon=epsilon).n_clusters_ == 3
    assert fitted(np.empty((0, 2)), epsilon=epsilon).n_clusters_ == 0


def test_cut_is_free_and_leaves_the_original(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1), allow_seeded=True)
    model = fitted(ledger=ledger)
    before = model.release_.to_dict()
    for parameters in ({"n_clusters": 1}, {"n_clusters": 2}, {"level": 3.0}):
        cut = model.cut(**parameters)
        same = fitted().cut(**parameters)
        assert cut.release_.to_dict()["model"] == same.release_.to_dict()["model"] != before["model"]
        assert cut.privacy_ is model.privacy_
        assert cut.labels_.shape == model.labels_.shape
    assert model.release_.to_dict() == before
    assert model.cut(n_clusters=2).cut().release_.to_dict()["model"] == before["model"]
    assert len(ledger.history()) == 1


def test_cut_into_so_many():
    model = fitted()
    for n in (1, 2, 3):
        assert model.cut(n_clusters=n).n_clusters_ == n
    assert 3 < model.cut(n_clusters=10**6).n_clusters_ <= len(model.tree_.heights)


def test_cut_at_levels():
    model = fitted()
    sizes = [len(model.cut(level=level).cells_) for level in (1.0, 4.0, 16.0, 1e9)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "`n_clusters` must be an integer"),
        ({"n_clusters": 2.0}, "`n_clusters` must be an integer"),
        ({"n_clusters": 10**7}, "`n_clusters` must be an integer"),
        ({"level": 0}, "`level` must be a positive number"),
        ({"level": math.nan}, "`level` must be a positive number"),
        ({"n_clusters": 2, "level": 1.0}, "use `n_clusters` or `level`, not both"),
    ],
    ids=str,
)
def test_bad_cuts(parameters, message):
    with pytest.raises(ParameterError, match=message):
        fitted().cut(**parameters)


def test_release_round_trip(tmp_path):
    rows = np.random.default_rng(1).uniform(-1, 1, size=(500, 2))
    for model in (fitted(), fitted(np.empty((0, 2))), fitted().cut(n_clusters=2)):
        loaded = Release.load(model.release_.save(tmp_path / "release.json"))
        np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
        assert loaded.checksum() == model.release_.checksum()
        np.testing.assert_array_equal(
            loaded.model.cut(2).predict(rows), model.cut(n_clusters=2).predict(rows)
        )
        np.testing.assert_array_equal(loaded.model.tree.heights, model.tree_.heights)


def test_pickles_keep_their_spans():
    model = fitted()
    again = pickle.loads(pickle.dumps(model))
    assert [str(span) for span in again.spans_] == [str(span) for span in model.spans_]
    assert again.cut(n_clusters=2).n_clusters_ == 2


@pytest.mark.parametrize("budget", [{"rho": 0.2}, {"epsilon": 0.5, "delta": 1e-3}, {"epsilon": 3.0}], ids=str)
def test_budgets(budget):
    assert fitted(**budget).n_clusters_ == 3


FAR = np.full((1000, 2), [40.0, 40.0])


def test_rows_outside_the_bounds_are_left_out():
    rows = np.concatenate([FAR, three_hills()])
    model = fitted(rows)
    assert model.n_clusters_ == 3
    assert (model.labels_[: len(FAR)] == -1).all()
    assert len(model.labels_) == len(rows)


def test_rows_outside_the_bounds_count_at_their_border_if_clipped():
    model = fitted(np.concatenate([three_hills(), FAR]), outside="clip")
    far = model.predict([[40.0, 40.0], [1.0, 1.0], [1e300, 1e300]])
    assert far[0] == far[1] == far[2] >= 0
    assert model.predict([[-40.0, 40.0]]).tolist() == [-1]


def test_bounds_that_are_a_ball():
    assert fitted(bounds=Ball(1.5)).n_clusters_ == 3


def test_columns_of_other_units():
    rows = three_hills() * [1.0, 1e6]
    model = fitted(rows, bounds=([-1, -1e6], [1, 1e6]))
    assert model.n_clusters_ == 3
    assert max(model.histogram_.grid.shape) <= 40 * min(model.histogram_.grid.shape)


def test_maps(tmp_path):
    low, high = [-122.6, 37.55], [-122.3, 37.85]
    rng = np.random.default_rng(0)
    crowds = [rng.normal(c, [0.004, 0.003], size=(3000, 2)) for c in ([-122.40, 37.79], [-122.44, 37.62])]
    model = fitted(np.concatenate(crowds), cell=500, bounds=(low, high), metric="geo")
    assert model.n_clusters_ == 2
    metres = model.histogram_.grid.widths * 6_371_008.8 * math.pi / 180 * [math.cos(math.radians(37.7)), 1]
    np.testing.assert_allclose(metres, 500, rtol=1e-6)
    collection = model.to_geojson(tmp_path / "spans.geojson")
    assert json.loads((tmp_path / "spans.geojson").read_text()) == collection
    assert len(collection["features"]) == 2
    found = fitted(np.concatenate(crowds), bounds=(low, high), metric="geo")
    assert found.n_clusters_ == 2
    width, height = found.histogram_.grid.widths * [math.cos(math.radians(37.7)), 1]
    assert width == pytest.approx(height, rel=0.1)


@pytest.mark.parametrize(
    "data",
    [
        make_moons(2000, noise=0.05, random_state=30),
        make_circles(2000, factor=0.5, noise=0.05, random_state=30),
    ],
    ids=["moons", "circles"],
)
def test_accuracy(data):
    rows, labels = StandardScaler().fit_transform(data[0]), data[1]
    models = [fitted(rows, bounds=(-2.5, 2.5), random_state=seed) for seed in range(5)]
    assert np.mean([adjusted_rand_score(labels, model.labels_) for model in models]) >= 0.9


def test_an_even_cloud_is_one_cluster():
    found = [
        fitted(np.random.default_rng(seed).uniform(-0.8, 0.8, size=(3000, 2)), random_state=seed).n_clusters_
        for seed in range(10)
    ]
    assert np.mean(np.array(found) == 1) >= 0.8


@needs_data
def test_accuracy_on_real_data():
    rows, labels = datasets.load("cluto_t4_8k")
    models = [fitted(rows, bounds=([0, 0], [650, 350]), random_state=seed) for seed in range(3)]
    assert np.mean([adjusted_rand_score(labels, model.labels_) for model in models]) >= 0.75


def test_where_and_when():
    """A place that is busy around midnight is one cluster, and another one in the morning."""
    rng = np.random.default_rng(0)
    kind = rng.choice(3, 20_000, p=[0.5, 0.3, 0.2])
    rows = pd.DataFrame(
        {
            "x": rng.normal(np.take([2, 2, 7], kind), 0.6),
            "y": rng.normal(np.take([2, 2, 6], kind), 0.6),
            "hour": rng.normal(np.take([23.5, 9, 13], kind), 1.2) % 24,
        }
    )
    bounds = {"x": (0, 10), "y": (0, 10), "hour": {"cycle": (0, 24)}}
    model = DensityTree(epsilon=1.0, bounds=bounds, random_state=0).fit(rows)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(kind, model.labels_) > 0.95


@pytest.mark.parametrize("method", [DensityTree, MorseClustering])
def test_a_corridor_is_a_map(method):
    assert "as on a map" in str(method(bounds=([0, 0], [820, 170])).plan(2))
    assert "in units of their bounds" in str(method(bounds=([0, 0], [820, 17])).plan(2))


def test_outline_and_leaves_add_up_to_the_budget():
    for d in (1, 2, 3, 5):
        steps = DensityTree(epsilon=1.5, bounds=(-1, 1)).plan(d)
        assert [step.step.name for step in steps.steps] == ["rows", "outline", "cells"]
        assert sum(step.step.share for step in steps.steps) == 1


def test_leaves_are_smaller_where_the_outline_shows_rows():
    model = fitted(three_hills(20_000))
    nested = model.histogram_.nested
    seen = model.histogram_.outline
    assert (
        nested.depths[seen > np.quantile(seen, 0.9)].min()
        > nested.depths[seen < np.quantile(seen, 0.1)].max()
    )


def test_edges_move_inwards():
    model = fitted()
    sizes = [len(model.cut(edge=edge).cells_) for edge in (0.1, 0.5, 0.9)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[2] > 0


def test_strengths_are_larger_inside():
    model, rows = fitted(), three_hills(4000)
    found, labels = model.strengths(rows), model.predict(rows)
    assert ((found == 0) == (labels < 0)).mean() > 0.99
    assert found.min() >= 0
    assert found.max() == 1


def test_min_rows():
    assert fitted().n_clusters_ == 3
    assert all(span.count_high >= 1500 for span in fitted(min_rows=1500).spans_)
