"""DPM: what it finds, on which rows it works, its tree, and that nothing but released values decides."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from tests.worlds import curate

from sfumato import Ball, Budget, Ledger
from sfumato.budget import calibrate
from sfumato.cluster.dpm import DPM, EXTRA_LEVELS, MEANINGFUL
from sfumato.curator import Noisy, NoisySplits, NoisySums, Table
from sfumato.datasets import separated_gaussians
from sfumato.domain import Domain
from sfumato.domain.partitions import Subset
from sfumato.errors import ParameterError
from sfumato.metrics import inertia

BUDGETS = {"pure": {"epsilon": 1}, "approximate": {"epsilon": 1, "delta": 1e-6}, "zcdp": {"rho": 0.05}}
every_budget = pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)


def model(**parameters):
    return DPM(**{"bounds": (-1, 1), "random_state": 0, **parameters})


def check_fitted(fitted, d):
    """What holds whatever the rows, the noise and the budget are."""
    domain = fitted.release_.domain
    check_centers(fitted.cluster_centers_, fitted.cluster_sizes_, domain)
    assert fitted.cluster_centers_.shape == (fitted.n_clusters_, d)
    assert fitted.privacy_.spent <= fitted.privacy_.budget


def check_centers(centers, sizes, domain):
    low, high = np.array(domain.low), np.array(domain.high)
    slack = 1e-9 * (high - low)
    assert len(centers) == len(sizes) >= 1
    assert np.isfinite(centers).all()
    assert np.isfinite(sizes).all()
    assert (sizes >= 0).all()
    assert (centers >= low - slack).all()
    assert (centers <= high + slack).all()
    if domain.radius is not None:
        lengths = np.linalg.norm((centers - domain.midpoint) / domain.radius, axis=1)
        assert (lengths <= 1 + 1e-9).all()


def farthest(found, wanted):
    """Largest distance from a wanted centre to the nearest found one."""
    return np.sqrt(((np.asarray(wanted)[:, None] - found) ** 2).sum(axis=2)).min(axis=1).max()


class TestClusters:
    @pytest.mark.parametrize(("k", "d"), [(5, 2), (8, 3), (5, 10), (4, 30)])
    def test_separated_gaussians_are_counted(self, k, d):
        """The number is right for most seeds, hardly off for the others, and no cluster is missed."""
        found = []
        for seed in range(4):
            rows, labels = separated_gaussians(50_000, k, d, random_state=seed)
            fitted = model(epsilon=1, delta=1e-6, random_state=seed).fit(rows)
            found.append(fitted.n_clusters_)
            if fitted.n_clusters_ >= k:
                means = [rows[labels == label].mean(axis=0) for label in range(k)]
                assert farthest(fitted.cluster_centers_, means) < 3 * 0.16 / k ** (1 / d)
        assert max(abs(n - k) for n in found) <= 1
        assert sum(n == k for n in found) >= 2

    @pytest.mark.parametrize(("k", "d"), [(5, 5), (8, 10), (5, 50)])
    def test_blobs_are_counted(self, k, d):
        found = []
        for seed in range(4):
            rows, _ = make_blobs(20_000, d, centers=k, random_state=seed)
            fitted = model(epsilon=1, delta=1e-6, bounds=(-15, 15), random_state=seed).fit(rows)
            found.append(fitted.n_clusters_)
        assert max(abs(n - k) for n in found) <= 2  # two of the blobs overlap
        assert sum(n == k for n in found) >= 3

    @pytest.mark.parametrize("n_clusters", [1, 2, 3, 5, 40])
    def test_n_clusters_is_a_limit(self, n_clusters):
        rows, _ = separated_gaussians(10_000, 5, 2, random_state=0)
        for refine in (True, False):
            for budget in BUDGETS.values():
                fitted = model(n_clusters=n_clusters, refine=refine, **budget).fit(rows)
                assert fitted.n_clusters_ <= n_clusters
                check_fitted(fitted, 2)

    def test_a_known_number_is_used(self):
        rows, _ = separated_gaussians(20_000, 6, 2, random_state=1)
        assert model(n_clusters=6).fit(rows).n_clusters_ == 6

    @pytest.mark.parametrize(("k", "d"), [(8, 2), (5, 10), (3, 1)])
    def test_a_large_budget_is_as_good_as_k_means(self, k, d):
        for seed in range(2):
            rows, _ = separated_gaussians(20_000, k, d, random_state=seed)
            best = KMeans(k, n_init=5, random_state=0).fit(rows).inertia_
            for n_clusters in (k, None):
                fitted = model(n_clusters=n_clusters, epsilon=100, random_state=seed).fit(rows)
                assert inertia(rows, fitted.cluster_centers_) <= 1.01 * best
                assert fitted.cluster_sizes_.sum() == pytest.approx(20_000, rel=0.01)

    def test_refinement_is_more_accurate(self):
        worse = {True: [], False: []}
        for seed in range(5):
            rows, _ = separated_gaussians(20_000, 8, 2, random_state=seed)
            best = KMeans(8, n_init=5, random_state=0).fit(rows).inertia_
            for refine, losses in worse.items():
                fitted = model(n_clusters=8, delta=1e-6, refine=refine, random_state=seed).fit(rows)
                losses.append(inertia(rows, fitted.cluster_centers_) / best - 1)
        assert np.median(worse[True]) < np.median(worse[False]) / 3
        assert np.median(worse[True]) < 0.01

    @pytest.mark.parametrize("interval", [0.05, 0.2, Fraction(1, 10), np.float32(0.1)])
    def test_an_interval_in_the_units_of_the_data(self, interval):
        rows, _ = separated_gaussians(20_000, 5, 2, random_state=0)
        assert abs(model(interval=interval, delta=1e-6).fit(rows).n_clusters_ - 5) <= 1
        scaled = model(interval=1000 * float(interval), delta=1e-6, bounds=(-1000, 1000)).fit(1000 * rows)
        assert abs(scaled.n_clusters_ - 5) <= 1

    @pytest.mark.parametrize("interval", [5e-324, 1e-300, 1, 1e300])
    def test_an_interval_may_be_any_positive_number(self, interval):
        rows, _ = separated_gaussians(2000, 3, 2, random_state=0)
        check_fitted(model(interval=interval).fit(rows), 2)

    def test_depth_limits_the_number_of_leaves(self):
        """A leaf holds at least one row in two to the depth, so noise apart there are no more leaves."""
        rows, _ = separated_gaussians(20_000, 8, 2, random_state=0)
        for max_depth in (1, 2, 3):
            fitted = model(max_depth=max_depth, epsilon=10**6, refine=False).fit(rows)
            assert fitted.n_clusters_ <= 2**max_depth

    def test_sizes_are_those_of_the_clusters(self):
        rng = np.random.default_rng(0)
        at, sizes = np.array([[-0.6, 0.0], [0.6, 0.6], [0.6, -0.6]]), [10_000, 4000, 1000]
        rows = np.concatenate([rng.normal(c, 0.05, (n, 2)) for c, n in zip(at, sizes, strict=True)])
        fitted = model(n_clusters=3).fit(rows)
        assert np.sort(fitted.cluster_sizes_) == pytest.approx(sorted(sizes), abs=300)
        assert farthest(fitted.cluster_centers_, at) < 0.03


def clusters(d, n=4000):
    return separated_gaussians(n, 3, d, random_state=0)[0]


ROWS = {
    "none": np.empty((0, 2)),
    "one": np.array([[0.3, -0.4]]),
    "one place": np.full((3000, 2), 0.25),
    "a corner": np.ones((3000, 2)),
    "outside": 5 * clusters(2),
    "far outside": np.concatenate([clusters(2), [[1e300, -1e300], [np.finfo(float).max, 5e-324]]]),
    "one constant column": clusters(3) * [1, 0, 1],
    "all columns equal": np.repeat(clusters(1), 4, axis=1),
    "one column": clusters(1),
    "many columns": np.random.default_rng(0).uniform(-1, 1, size=(300, 1000)),
    "1e-15 apart": np.repeat([[0.5, 0.5], [0.5 + 1e-15, 0.5]], 2000, axis=0),
    "two places": np.repeat([[-1.0, -1.0], [1.0, 1.0]], 2000, axis=0),
    "uniform": np.random.default_rng(1).uniform(-1, 1, size=(3000, 2)),
}


class TestRows:
    @pytest.mark.parametrize("name", ROWS)
    @pytest.mark.parametrize("epsilon", [1, *(pytest.param(e, marks=pytest.mark.slow) for e in (0.01, 100))])
    def test_any_rows_at_any_budget(self, name, epsilon):
        """Warnings are errors here, so nothing is divided by nothing."""
        rows = ROWS[name]
        for parameters in ({"epsilon": epsilon}, {"rho": epsilon}, {"epsilon": epsilon, "refine": False}):
            for n_clusters in (None, 3):
                check_fitted(model(n_clusters=n_clusters, **parameters).fit(rows), rows.shape[1])

    @pytest.mark.parametrize("refine", [True, False])
    def test_any_rows_with_delta(self, refine):
        for rows in ROWS.values():
            if rows.shape[1] == 2:  # calibration takes a while for every number of columns
                check_fitted(model(delta=1e-6, refine=refine).fit(rows), 2)

    def test_all_rows_in_one_place(self):
        fitted = model(epsilon=10).fit(np.full((5000, 2), 0.25))
        nearest = fitted.cluster_centers_[fitted.predict(np.array([[0.25, 0.25]]))]
        assert nearest == pytest.approx(np.array([[0.25, 0.25]]), abs=0.02)

    def test_rows_outside_are_clipped(self):
        rows = 5 * clusters(2)
        one, other = (model().fit(table) for table in (rows, np.clip(rows, -1, 1)))
        assert (one.cluster_centers_ == other.cluster_centers_).all()

    @pytest.mark.parametrize("bound", [1e130, 1e-130])
    def test_bounds_of_any_size_give_the_same_picture(self, bound):
        fitted = model(bounds=(-bound, bound)).fit(bound * clusters(2))
        check_fitted(fitted, 2)
        unit = model().fit(clusters(2))
        assert fitted.n_clusters_ == unit.n_clusters_
        assert fitted.cluster_centers_ / bound == pytest.approx(unit.cluster_centers_, abs=1e-6)

    @pytest.mark.parametrize("bounds", [([0, -1e6, 1e-9], [1, 1e6, 2e-9]), ([1e9, 0, 0], [1e9 + 1, 1, 1])])
    def test_columns_of_different_units(self, bounds):
        low, high = (np.array(side, dtype=float) for side in bounds)
        rows = low + (clusters(3) + 1) / 2 * (high - low)
        check_fitted(model(bounds=bounds).fit(rows), 3)

    @pytest.mark.parametrize("refine", [True, False])
    @pytest.mark.parametrize("ball", [Ball(1.0), Ball(2.0, [1.0, -3.0])])
    def test_a_ball(self, ball, refine):
        directions = np.random.default_rng(0).normal(size=(3000, 2))
        rows = ball.center + 3 * directions
        for seed in range(5):
            check_fitted(model(bounds=ball, refine=refine, random_state=seed).fit(rows), 2)

    def test_clusters_in_a_ball(self):
        rows, _ = separated_gaussians(20_000, 5, 2, random_state=0)
        assert abs(model(bounds=Ball(1.5)).fit(rows).n_clusters_ - 5) <= 1

    @pytest.mark.parametrize(
        "convert",
        [
            lambda rows: rows.astype(np.int32),
            lambda rows: rows.astype(np.float32),
            lambda rows: pd.DataFrame(rows, columns=["a", "b"]),
            lambda rows: pd.DataFrame({"a": rows[:, 0].astype(np.int8), "b": rows[:, 1]}),
            lambda rows: np.asfortranarray(rows),
            lambda rows: rows.tolist(),
        ],
        ids=["int", "float32", "pandas", "pandas mixed", "Fortran", "list"],
    )
    def test_tables_of_equal_numbers_give_equal_models(self, convert):
        rows = np.rint(100 * clusters(2))
        one, other = (model(bounds=(-100, 100)).fit(table) for table in (rows, convert(rows)))
        assert (one.cluster_centers_ == other.cluster_centers_).all()
        assert (one.cluster_sizes_ == other.cluster_sizes_).all()


BAD = [
    ({"n_clusters": 0}, "`n_clusters` must be an integer >= 1 and at most 1e+06 or 'auto', got 0"),
    ({"n_clusters": 2.0}, "`n_clusters` must be an integer >= 1 and at most 1e+06 or 'auto', got 2.0"),
    ({"n_clusters": True}, "`n_clusters` must be an integer >= 1 and at most 1e+06 or 'auto', got True"),
    ({"n_clusters": 10**7}, "`n_clusters` must be an integer >= 1 and at most 1e+06 or 'auto', got 10000000"),
    ({"max_depth": 0}, "`max_depth` must be an integer >= 1 and at most 12, got 0"),
    ({"max_depth": 13}, "`max_depth` must be an integer >= 1 and at most 12, got 13"),
    ({"max_depth": 7.0}, "`max_depth` must be an integer >= 1 and at most 12, got 7.0"),
    ({"t": 0}, "`t` must be a positive number from 0 to 1, got 0"),
    ({"t": math.nan}, "`t` must be a positive number from 0 to 1, got nan"),
    ({"t": 1.01}, "`t` must be a positive number from 0 to 1, got 1.01"),
    ({"t": 0.1}, "`t` must be at least 2 q, got t=0.1 with q=0.08333333333333333"),
    ({"q": 0.2}, "`t` must be at least 2 q, got t=0.3 with q=0.2"),
    ({"t": 1.0, "q": 0.5}, "`q` must be a positive number from 0.001 to 0.499, got 0.5"),
    ({"q": -0.1}, "`q` must be a positive number from 0.001 to 0.499, got -0.1"),
    ({"q": "small"}, "`q` must be a positive number from 0.001 to 0.499, got 'small'"),
    ({"alpha": 0.0}, "`alpha` must be a positive number from 0 to 1000, got 0.0"),
    ({"alpha": math.inf}, "`alpha` must be a positive number from 0 to 1000, got inf"),
    ({"alpha": None}, "`alpha` must be a positive number from 0 to 1000, got None"),
    ({"interval": "automatic"}, "`interval` must be 'auto' or a positive number, got 'automatic'"),
    ({"interval": 0}, "`interval` must be 'auto' or a positive number, got 0"),
    ({"interval": -1.0}, "`interval` must be 'auto' or a positive number, got -1.0"),
    ({"interval": None}, "`interval` must be 'auto' or a positive number, got None"),
    ({"interval": True}, "`interval` must be 'auto' or a positive number, got True"),
    ({"refine": 1}, "`refine` must be True or False, got 1"),
    ({"refine": None}, "`refine` must be True or False, got None"),
    ({"alpha": 1e12}, "`alpha` must be a positive number from 0 to 1000, got 1000000000000.0"),
    ({"q": 1e-12}, "`q` must be a positive number from 0.001 to 0.499, got 1e-12"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=lambda value: str(value)[:30])
def test_bad_parameters_are_refused_before_anything_is_charged(parameters, message, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    with pytest.raises(ParameterError) as error:
        DPM(**parameters, bounds=(-1, 1), ledger=ledger).fit(np.zeros((5, 2)))
    assert str(error.value).startswith(message)
    assert ledger.history() == []


def curator_of(estimator, rows, seed=0, **budget):
    domain = Domain.from_bounds(estimator.bounds, rows.shape[1])
    plan = calibrate(estimator._plan(domain), Budget(**(budget or {"epsilon": 1})), 1)
    return curate(rows, domain, plan, seed)


class TestTree:
    @pytest.fixture(params=[(1, 3), (2, 5), (3, 8), (10, 5)], ids=str)
    def grown(self, request):
        d, k = request.param
        rows = separated_gaussians(20_000, k, d, random_state=0)[0]
        estimator = DPM(bounds=(-1, 1))
        curator = curator_of(estimator, rows)
        counted, count = [], curator.count
        curator.count = lambda step: counted.append(count(step)) or counted[0]
        leaves = estimator._grow(curator)
        return estimator, curator, float(counted[0].values[0]), leaves, rows

    def test_boxes_are_disjoint_and_cover_the_domain(self, grown):
        *_, leaves, rows = grown
        d = rows.shape[1]
        assert leaves.tree.n_cells == len(leaves.low) == len(leaves.high) == len(leaves.sizes) > 1
        assert (leaves.low < leaves.high).all()
        assert np.prod(leaves.high - leaves.low, axis=1).sum() == pytest.approx(2.0**d)
        points = np.concatenate([np.random.default_rng(0).uniform(-1, 1, size=(3000, d)), rows[:3000]])
        points = np.concatenate([points, (leaves.low + leaves.high) / 2, leaves.low])
        above, below = points[:, None] >= leaves.low, points[:, None] < leaves.high
        below |= (points[:, None] == 1.0) & (leaves.high == 1.0)
        inside = (above & below).all(axis=2)
        assert (inside.sum(axis=1) == 1).all()
        assert (inside.argmax(axis=1) == leaves.tree.index(points)).all()

    def test_every_leaf_is_large_enough(self, grown):
        estimator, curator, rows, leaves, _ = grown
        noise = curator.noise_of_sums("leaves") * math.sqrt(curator.domain.n_features)
        least = max(rows / 2**estimator.max_depth, MEANINGFUL * noise)
        assert (leaves.sizes >= least).all()
        assert leaves.sizes.sum() == pytest.approx(20_000, rel=0.1)

    def test_released_sizes_are_those_of_the_leaves(self, grown):
        _, curator, _, leaves, rows = grown
        true = np.bincount(leaves.tree.index(rows), minlength=leaves.tree.n_cells)
        assert np.abs(leaves.sizes - true).max() < 15 * curator.noise_std("sizes 1")

    def test_separated_clusters_are_in_different_leaves(self):
        rows, labels = separated_gaussians(20_000, 5, 3, random_state=0)
        estimator = DPM(bounds=(-1, 1))
        leaves = estimator._grow(curator_of(estimator, rows))
        index = leaves.tree.index(rows)
        main = [np.bincount(index[labels == label]).argmax() for label in range(5)]
        assert len(set(main)) == 5

    def test_no_rows_no_splits(self):
        estimator = DPM(bounds=(-1, 1))
        for seed in range(10):
            leaves = estimator._grow(curator_of(estimator, np.empty((0, 2)), seed))
            assert leaves.tree.n_cells <= 2


class MadeUp:
    """A curator without rows: it answers with invented numbers, and knows only what is public."""

    def __init__(self, domain, plan, seed):
        self.domain, self.plan, self.rng, self.asked = domain, plan, np.random.default_rng(seed), []
        self.scale = 10 ** self.rng.uniform(-2, 10)

    def _noise(self, step):
        self.asked.append(step)
        return self.plan.nominal(self.plan[step])

    def noise_std(self, step):
        return self.plan.nominal(self.plan[step]).noise_std

    def noise_of_sums(self, step):
        return self.noise_std(step) / 2**29

    def _whole(self, shape):
        return np.rint(self.rng.normal(self.scale / 3, self.scale, size=shape)).astype(np.int64)

    def count(self, step):
        return Noisy(self._whole(1), self._noise(step))

    def distances(self, step, partition, origins, edges, projection=None):
        assert len(origins) == partition.n_cells
        return Noisy(self._whole(len(edges) + 1), self._noise(step))

    def sums(self, step, partition, origins, radii, projection=None):
        self._noise(step)
        assert origins.shape == (partition.n_cells, self.domain.n_features)
        assert (radii >= 1e-290).all()
        assert np.isfinite(radii).all()
        sums = self.rng.normal(scale=self.scale, size=origins.shape) * radii[:, None]
        std = self.scale * 10 ** self.rng.uniform(-4, 1)
        sizes, clipped = self.rng.normal(scale=self.scale, size=(2, len(radii)))
        return NoisySums(sizes, clipped, sums, std, std * radii)

    def splits(self, choice_step, size_step, partition, boxes, rule, noisy_sizes):
        self._noise(choice_step), self._noise(size_step)
        (low, high), groups = boxes, np.arange(partition.n_cells)
        assert low.shape == high.shape == (len(groups), self.domain.n_features)
        assert noisy_sizes.shape == groups.shape
        columns = self.rng.integers(self.domain.n_features, size=len(groups))
        share = self.rng.integers(1, rule.n_bins, size=len(groups)) / rule.n_bins
        thresholds = low[groups, columns] + share * (high - low)[groups, columns]
        return NoisySplits(columns, thresholds, self._whole((len(groups), 2)), self.noise_std(size_step))


class TestReleasedValuesOnly:
    @pytest.mark.parametrize(
        "bounds", [(-1, 1), (-1e130, 1e130), ([0, 5, -9], [1e-9, 6, 9e9]), Ball(2.0, 7.0)]
    )
    @pytest.mark.parametrize("refine", [True, False])
    @pytest.mark.parametrize("n_clusters", [None, 4])
    def test_invented_answers_give_a_model(self, bounds, refine, n_clusters):
        """There is no table: the answers alone make the model, whatever they are."""
        several = 0
        for seed in range(20):
            max_depth = 1 + seed % 5
            estimator = DPM(n_clusters, max_depth=max_depth, refine=refine, bounds=bounds)
            domain = Domain.from_bounds(bounds, 3)
            curator = MadeUp(domain, calibrate(estimator._plan(domain), Budget(1), 1), seed)
            found = estimator._cluster(curator)
            check_centers(found.cluster_centers, found.cluster_sizes, domain)
            assert n_clusters is None or len(found.cluster_centers) <= n_clusters
            assert sorted(curator.asked) == sorted(step.step.name for step in curator.plan.steps)
            several += len(found.cluster_centers) > 1
        assert several > 3

    @every_budget
    @pytest.mark.parametrize("refine", [True, False])
    def test_two_tables_with_the_same_answers_give_the_same_model(self, budget, refine, monkeypatch):
        """Answers about the first table are played back to a fit on another one."""
        answers, opened = [], Table.curator

        def recording(table, plan, seed):
            curator = opened(table, plan, seed)
            for name in ("count", "distances", "sums", "splits"):
                ask = getattr(curator, name)
                setattr(
                    curator, name, lambda *question, ask=ask: answers.append(ask(*question)) or answers[-1]
                )
            return curator

        def playing(table, plan, seed):
            curator, tape = opened(table, plan, seed), iter(answers)
            for name in ("count", "distances", "sums", "splits"):
                setattr(curator, name, lambda *question: next(tape))
            return curator

        monkeypatch.setattr(Table, "curator", recording)
        first = model(refine=refine, **budget).fit(separated_gaussians(10_000, 5, 2, random_state=0)[0])
        assert first.n_clusters_ > 1
        monkeypatch.setattr(Table, "curator", playing)
        for other in (np.empty((0, 2)), np.full((7, 2), 0.9), clusters(2)):
            second = model(refine=refine, random_state=5, **budget).fit(other)
            assert (second.cluster_centers_ == first.cluster_centers_).all()
            assert (second.cluster_sizes_ == first.cluster_sizes_).all()

    def test_leaves_that_are_too_small_are_not_asked_about(self):
        """All levels are asked, about ever fewer leaves in the end; which ones, released sizes decide."""
        estimator = DPM(bounds=(-1, 1))
        curator = curator_of(estimator, clusters(2))
        asked, splits = [], curator.splits

        def watched(choice, size, partition, boxes, rule, noisy_sizes):
            asked.append((partition, noisy_sizes))
            return splits(choice, size, partition, boxes, rule, noisy_sizes)

        curator.splits = watched
        leaves = estimator._grow(curator)
        assert len(asked) == estimator.max_depth + EXTRA_LEVELS
        assert all(isinstance(partition, Subset) for partition, _ in asked)
        assert all(partition.n_cells == len(noisy_sizes) for partition, noisy_sizes in asked)
        assert asked[0][0].groups.tolist() == [0]
        assert asked[-1][0].n_cells < leaves.tree.n_cells


@every_budget
def test_a_seed_makes_a_fit_reproducible(budget):
    one, same, other = (model(random_state=seed, **budget).fit(clusters(2)) for seed in (3, 3, 4))
    assert (one.cluster_centers_ == same.cluster_centers_).all()
    assert one.cluster_centers_.tolist() != other.cluster_centers_.tolist()
