"""DPDBSCAN as a user meets it: parameters, spans, re-clustering, maps, and accuracy on known shapes.

The guarantee itself is tested in test_sandwich.py, the intervals in test_intervals.py.
"""

import json
import math
import pickle
import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from sfumato import DPDBSCAN, Ball, Budget, Ledger, Release, datasets
from sfumato.errors import GuaranteeWarning, ParameterError

SAN_FRANCISCO = ([-122.6, 37.55], [-122.3, 37.85])
weak = pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")
needs_data = pytest.mark.skipif(datasets.data_home() is None, reason="SFUMATO_DATA is not set")


def two_clumps(n=3000, d=2, seed=0):
    """Rows around -0.5 and, half as many, around 0.5 along every column."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(-0.5, 0.05, size=(n, d)), rng.normal(0.5, 0.05, size=(n // 2, d))])


def fitted(rows=None, radius=0.2, min_samples=200, **parameters):
    rows = two_clumps() if rows is None else rows
    return DPDBSCAN(radius, min_samples, **{"bounds": (-1, 1), "random_state": 0} | parameters).fit(rows)


BAD = [
    ({"radius": 0}, "`radius` must be a positive number"),
    ({"radius": -0.1}, "`radius` must be a positive number"),
    ({"radius": math.nan}, "`radius` must be a positive number"),
    ({"radius": math.inf}, "`radius` must be a positive number"),
    ({"radius": "1"}, "`radius` must be a positive number"),
    ({"radius": True}, "`radius` must be a positive number"),
    ({"radius": 2.5}, "`radius` must be at most the width of the domain, 2, got 2.5"),
    ({"radius": 1e-12}, "more than 2^62 cells"),
    ({"radius": 1e-300}, "more than 2^62 cells"),
    ({"radius": 5e-324}, "`radius`"),
    ({"eta": 1e-300}, "`eta` must be"),
    ({"min_samples": 0}, "`min_samples` must be an integer"),
    ({"min_samples": 2.0}, "`min_samples` must be an integer"),
    ({"min_samples": True}, "`min_samples` must be an integer"),
    ({"eta": 0}, "`eta` must be a positive number"),
    ({"eta": 4.1}, "`eta` must be a positive number"),
    ({"eta": math.nan}, "`eta` must be a positive number"),
    ({"beta": 0}, "`beta` must be a positive number"),
    ({"beta": 1}, "`beta` must be a positive number"),
    ({"beta": math.nan}, "`beta` must be a positive number"),
    ({"valleys": 1}, "`valleys` must be True or False"),
    ({"metric": "cosine"}, "`metric` must be"),
    ({"metric": None}, "`metric` must be"),
    ({"metric": "geo", "bounds": (0, 200)}, "longitude and latitude"),
    ({"metric": "geo", "bounds": (0, 80)}, "cut the map"),
    ({"max_memory": 0}, "`max_memory` must be a positive number"),
    ({"max_memory": math.nan}, "`max_memory` must be a positive number"),
    ({"radius": 0.001, "max_memory": 1e5}, "raise `max_memory` from 100000 bytes"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=lambda value: str(value)[:40])
def test_bad_parameters_cost_nothing(tmp_path, parameters, message):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    model = DPDBSCAN(**{"bounds": (-1, 1), "ledger": ledger} | parameters)
    with pytest.raises(ParameterError, match=re.escape(message)):
        model.fit(np.zeros((3, 2)))
    assert ledger.history() == []


@pytest.mark.parametrize(("d", "radius"), [(1, 1e-20), (2, 1e-11), (3, 1e-8), (6, 1e-4)])
def test_the_radius_that_an_error_names_fits(d, radius):
    bounds = (np.zeros(d), np.arange(1, d + 1) * 10.0)
    with pytest.raises(ParameterError, match="cells") as error:
        DPDBSCAN(radius, bounds=bounds, max_memory=1e12).plan(d)
    named = float(re.search(r"at least ([\d.e+-]+)", str(error.value)).group(1))
    assert DPDBSCAN(named, bounds=bounds, max_memory=1e12).plan(d)
    with pytest.raises(ParameterError):
        DPDBSCAN(named / 2, bounds=bounds, max_memory=1e12).plan(d)  # it is about the smallest


@pytest.mark.parametrize("d", [2, 6])
def test_more_memory_helps(d):
    radius = {2: 1e-4, 6: 0.3}[d]
    with pytest.raises(ParameterError, match=r"needs about .* GB") as error:
        DPDBSCAN(radius, bounds=(-1, 1), max_memory=1e6).plan(d)
    predicted = float(re.search(r"about ([\d.e+-]+) GB", str(error.value)).group(1))
    assert DPDBSCAN(radius, bounds=(-1, 1), max_memory=1.01e9 * predicted).plan(d)


@pytest.mark.parametrize("d", [8, 10, 12])
def test_memory_of_small_grids_in_many_columns_is_predicted_too(d):
    """Few cells, but a ball meets very many of them."""
    with pytest.raises(ParameterError, match="max_memory"):
        DPDBSCAN(2.0, bounds=(-1, 1)).plan(d)


def test_a_weak_guarantee_is_told():
    with pytest.warns(GuaranteeWarning) as told:
        model = fitted(min_samples=3)
    (warning,) = told
    tau = model.guarantee_.tau
    assert f"`min_samples`=3 is below tau={tau}" in str(warning.message)
    assert f"at least {3 + tau} neighbours" in str(warning.message)
    assert warning.filename == __file__.replace(".pyc", ".py") or "sfumato" not in warning.filename
    with pytest.warns(GuaranteeWarning, match="`min_samples`=4 is below"):
        model.at(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.at(1000)


def test_the_guarantee_in_words():
    guarantee = fitted(beta=0.25).guarantee_
    text = str(guarantee)
    assert "at least 75%" in text
    assert f"at least {200 + guarantee.tau}" in text
    assert f"tau = {guarantee.tau}, beta = 0.25" in text
    assert (guarantee.radius, guarantee.min_samples) == (0.2, 200)


@weak
@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.1}])
def test_no_rows_give_spans_at_the_stated_confidence_only(budget):
    beta, n = 0.3, 100
    found = [
        fitted(np.empty((0, 2)), min_samples=1, beta=beta, random_state=seed, **budget).n_clusters_ > 0
        for seed in range(n)
    ]
    assert np.mean(found) <= 0.75 * beta + 2 * math.sqrt(0.75 * beta / n)
    assert fitted(np.empty((0, 2))).spans_ == ()


@weak
@pytest.mark.parametrize(("d", "radius"), [(1, 0.1), (2, 0.2), (3, 0.25), (4, 0.8), (6, 1.0)])
def test_numbers_of_columns(d, radius):
    n = 3000 if d < 6 else 60_000
    model = fitted(two_clumps(n, d), radius=radius, min_samples=10)
    assert model.n_features_in_ == d
    assert model.spans_[0].grid.n_cells == model.histogram_.grid.n_cells * (2**d if d <= 3 else 1)
    clumps = model.predict(np.full((2, d), [[-0.5], [0.5]]))
    assert clumps[0] == 0
    assert clumps[1] >= 0
    if d <= 3:
        assert model.n_clusters_ == 2
        assert clumps[1] == 1
        assert model.predict(np.full((1, d), 0.95)).tolist() == [-1]
    assert model.spans_[0].boxes.shape[1:] == (2, d)


def test_spans_and_cells():
    model = fitted()
    assert model.n_clusters_ == len(model.spans_) == 2
    assert [span.label for span in model.spans_] == [0, 1]
    assert model.spans_[0].count == pytest.approx(3000, rel=0.1)
    assert model.spans_[1].count == pytest.approx(1500, rel=0.1)
    for span in model.spans_:
        np.testing.assert_array_equal(span.cells, model.cells_[model.cell_labels_ == span.label])
        assert span.count_low <= span.count <= span.count_high
        assert (model.predict(span.grid.centers()[span.cells]) == span.label).all()
    assert set(np.unique(model.labels_)) <= {-1, 0, 1}


FAR = np.full((2000, 2), [50.0, -50.0])


def test_rows_outside_the_bounds_are_left_out():
    model = fitted(np.concatenate([two_clumps(), FAR]))
    assert model.n_clusters_ == 2
    assert model.predict([[50.0, -50.0], [1.0, -1.0], [1e300, -1e300]]).tolist() == [-1, -1, -1]


def test_rows_outside_the_bounds_count_at_their_border_if_clipped():
    model = fitted(np.concatenate([two_clumps(), FAR]), outside="clip")
    assert model.n_clusters_ == 3
    far = model.predict([[50.0, -50.0], [1.0, -1.0], [1e300, -1e300], [-50.0, 50.0]])
    assert far[0] == far[1] == far[2] >= 0
    assert far[3] == -1


@weak
def test_bounds_that_are_a_ball():
    model = fitted(bounds=Ball(1.5))
    assert model.n_clusters_ == 2


def test_at_is_free_and_equals_a_fresh_fit(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1), allow_seeded=True)
    model = fitted(ledger=ledger, epsilon=0.5)
    before = model.release_.to_dict()
    again = model.at(900)
    fresh = fitted(min_samples=900, epsilon=0.5)
    assert again.release_.to_dict()["model"] == fresh.release_.to_dict()["model"]
    assert again.min_samples == again.guarantee_.min_samples == 900
    assert again.release_.parameters["min_samples"] == 900
    assert again.privacy_ is model.privacy_
    assert (again.labels_ == fresh.labels_).all()
    assert model.release_.to_dict() == before
    assert model.min_samples == 200
    assert len(ledger.history()) == 1
    assert again.at(200).release_.to_dict()["model"] == before["model"]


def test_fewer_rows_are_in_spans_of_a_higher_density():
    model = fitted()
    sizes = [len(model.at(n).cells_) for n in (150, 300, 600, 1200, 10**6)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0


@pytest.mark.parametrize("min_samples", [0, 2.5, "3", None])
def test_at_checks_its_argument(min_samples):
    with pytest.raises(ParameterError, match="`min_samples` must be an integer"):
        fitted().at(min_samples)


def test_release_round_trip(tmp_path):
    model = fitted()
    loaded = Release.load(model.release_.save(tmp_path / "release.json"))
    rows = np.random.default_rng(1).uniform(-1.5, 1.5, size=(500, 2))
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
    assert loaded.checksum() == model.release_.checksum()
    assert loaded.model.guarantee == model.guarantee_
    assert [str(span) for span in loaded.model.spans] == [str(span) for span in model.spans_]
    again, other = loaded.model.at(900), model.at(900)
    np.testing.assert_array_equal(again.predict(rows), other.predict(rows))


@weak
def test_release_round_trip_of_a_sparse_histogram_and_of_nothing(tmp_path):
    sparse = fitted(radius=0.002, min_samples=30, max_memory=6e7)
    assert not sparse.histogram_.is_dense
    for model in (sparse, fitted(np.empty((0, 2)))):
        loaded = Release.load(model.release_.save(tmp_path / "release.json"))
        rows = two_clumps(200)
        np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
        assert loaded.model.histogram.threshold == model.histogram_.threshold


def test_pickles_keep_their_spans():
    model = fitted()
    again = pickle.loads(pickle.dumps(model))
    assert [str(span) for span in again.spans_] == [str(span) for span in model.spans_]
    assert again.at(900).n_clusters_ == model.at(900).n_clusters_


@weak
def test_sparse_and_dense_agree_without_noise():
    rows = two_clumps(800)
    dense = fitted(rows, radius=0.02, min_samples=10, epsilon=100, valleys=False, max_memory=1e9)
    sparse = fitted(rows, radius=0.003, min_samples=3, epsilon=100, valleys=False, max_memory=6e7)
    same = fitted(rows, radius=0.003, min_samples=3, epsilon=100, valleys=False, max_memory=1e9)
    assert dense.histogram_.is_dense
    assert same.histogram_.is_dense
    assert not sparse.histogram_.is_dense
    more = sparse.guarantee_.tau - sparse.guarantee_.tau // 2  # the allowance above, which is 1 and not 0
    np.testing.assert_array_equal(sparse.cells_, same.at(3 + more).cells_)
    listed = np.flatnonzero(same.histogram_.counts)
    np.testing.assert_array_equal(sparse.histogram_.cells, listed)


@pytest.mark.parametrize("budget", [{"rho": 0.2}, {"epsilon": 1.0, "delta": 1e-6}, {"epsilon": 3.0}], ids=str)
def test_budgets(budget):
    model = fitted(**budget)
    assert model.n_clusters_ == 2
    assert [record.step for record in model.privacy_.steps] == ["cells"]
    assert model.histogram_.mechanism == model.privacy_.steps[0].mechanism
    assert model.histogram_.scale == float(model.privacy_.steps[0].scale)


def test_more_budget_gives_a_stronger_guarantee():
    taus = [fitted(epsilon=epsilon, min_samples=10**5).guarantee_.tau for epsilon in (0.1, 0.5, 2)]
    assert taus == sorted(taus, reverse=True)
    betas = [fitted(beta=beta, min_samples=10**5).guarantee_.tau for beta in (0.01, 0.5)]
    assert betas[0] > betas[1]
    rhos = [fitted(eta=eta, min_samples=10**5).guarantee_.rho for eta in (1, 2, 4)]
    assert rhos == sorted(rhos)


def city():
    """Two crowds some 150 m wide, and strollers."""
    rng = np.random.default_rng(0)
    degrees = np.array([1 / 88_000, 1 / 111_195]) * 50
    crowds = [rng.normal(c, degrees, size=(4000, 2)) for c in ([-122.40, 37.79], [-122.44, 37.62])]
    return np.concatenate([*crowds, rng.uniform(*SAN_FRANCISCO, size=(2000, 2))])


def test_maps_are_in_degrees_and_radii_in_metres(tmp_path):
    model = fitted(city(), radius=300, min_samples=400, bounds=SAN_FRANCISCO, metric="geo")
    assert model.n_clusters_ == 2
    assert sorted(model.predict([[-122.40, 37.79], [-122.44, 37.62]])) == [0, 1]
    assert model.predict([[-122.5, 37.7]]).tolist() == [-1]
    metres = model.histogram_.grid.widths * 6_371_008.8 * math.pi / 180 * [math.cos(math.radians(37.7)), 1]
    np.testing.assert_allclose(metres, 300 / math.sqrt(2), rtol=1e-6)
    collection = model.to_geojson(tmp_path / "spans.geojson")
    assert json.loads((tmp_path / "spans.geojson").read_text()) == collection
    assert [feature["properties"]["label"] for feature in collection["features"]] == [0, 1]
    for feature, span in zip(collection["features"], model.spans_, strict=True):
        corners = np.concatenate([ring for polygon in feature["geometry"]["coordinates"] for ring in polygon])
        assert (corners >= np.array(SAN_FRANCISCO[0]) - 0.01).all()
        assert (corners <= np.array(SAN_FRANCISCO[1]) + 0.01).all()
        assert feature["properties"]["count"] == span.count


def test_geojson_needs_two_columns():
    with pytest.raises(ParameterError, match="2 columns"):
        fitted(two_clumps(d=1), radius=0.1).to_geojson()


def standardised(rows):
    return StandardScaler().fit_transform(rows)


@weak
@pytest.mark.parametrize(
    ("rows", "parameters", "least"),
    [
        (make_moons(2000, noise=0.05, random_state=30), {"min_samples": 7}, 0.9),
        (make_circles(2000, factor=0.5, noise=0.05, random_state=30), {"min_samples": 10}, 0.85),
    ],
    ids=["moons", "circles"],
)
def test_accuracy(rows, parameters, least):
    table, labels = standardised(rows[0]), rows[1]
    models = [fitted(table, bounds=(-2.5, 2.5), random_state=seed, **parameters) for seed in range(5)]
    assert np.mean([adjusted_rand_score(labels, model.labels_) for model in models]) >= least


@weak
@needs_data
def test_accuracy_on_real_data():
    rows, labels = datasets.load("cluto_t4_8k")
    given = {"radius": 9, "min_samples": 11, "bounds": ([0, 0], [650, 350])}
    models = [fitted(rows, random_state=seed, **given) for seed in range(3)]
    assert np.mean([adjusted_rand_score(labels, model.labels_) for model in models]) >= 0.65
