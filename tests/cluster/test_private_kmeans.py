"""PrivateKMeans: near k-means in narrow and wide tables, and what it asks whatever the table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

from sfumato import Ball, Budget, Ledger, PrivateKMeans
from sfumato.cluster import private_kmeans
from sfumato.cluster.private_kmeans import DIRECTIONS_SEED, MOMENT_COLUMNS, PURE_COLUMNS, _lifted, _merged
from sfumato.cluster.shared.components import Frame
from sfumato.cluster.shared.rounds import Cells
from sfumato.datasets import separated_gaussians
from sfumato.errors import ParameterError
from sfumato.metrics import inertia
from sfumato.projection import orthonormal
from sfumato.public.kmeans import merged_into

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.NoiseWarning")

slow = pytest.mark.slow
BUDGETS = [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.1}]
EMPTY = np.empty((0, 4))
TABLES = {
    "no rows": EMPTY,
    "one row": np.full((1, 4), 0.3),
    "one place": np.full((500, 4), 0.3),
    "the middle": np.zeros((500, 4)),
    "outside": np.full((200, 4), 1e12),
    "a constant column": np.hstack([np.random.default_rng(0).uniform(-1, 1, (300, 3)), np.zeros((300, 1))]),
    "one column": np.random.default_rng(0).uniform(-1, 1, (300, 1)),
    "many columns": np.random.default_rng(0).uniform(-1, 1, (60, 300)),
}


def model(n_clusters=3, **parameters):
    return PrivateKMeans(n_clusters, **{"bounds": (-1, 1), "random_state": 0, **parameters})


def unit_vectors(n=15_000, d=128, k=10, seed=0):
    """Directions around `k` others, as of embedded texts."""
    rng = np.random.default_rng(seed)
    middles = rng.normal(size=(k, d)) / np.sqrt(d)
    rows = middles[rng.integers(k, size=n)] + rng.normal(size=(n, d)) * 0.5 / np.sqrt(d)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def ratios(rows, k, n_seeds=3, **parameters):
    """Inertia relative to that of k-means, for several seeds."""
    best = KMeans(k, n_init=5, random_state=0).fit(rows).inertia_
    usual = {"epsilon": 1.0, "delta": 1e-6} | parameters
    fits = [model(k, **usual | {"random_state": seed}).fit(rows) for seed in range(n_seeds)]
    return np.array([inertia(rows, fitted.cluster_centers_) for fitted in fits]) / best


def check_centres(fitted, k, d):
    assert fitted.n_clusters_ == k
    assert fitted.cluster_centers_.shape == (k, d)
    assert fitted.cluster_sizes_.shape == (k,)
    assert np.isfinite(fitted.cluster_centers_).all()
    assert (fitted.cluster_sizes_ >= 0).all()
    domain = fitted.release_.domain
    assert (fitted.cluster_centers_ >= np.array(domain.low)).all()
    assert (fitted.cluster_centers_ <= np.array(domain.high)).all()


@pytest.mark.parametrize(("d", "most"), [(2, 1.1), (10, 1.05), pytest.param(100, 1.05, marks=slow)])
def test_blobs_are_found(d, most):
    rows, _ = separated_gaussians(20_000, n_clusters=8, n_features=d, random_state=1)
    assert np.median(ratios(rows, 8)) < most


def test_unit_vectors_are_found_in_a_ball():
    assert ratios(unit_vectors(), 10, bounds=Ball(1.0)).max() < 1.1


@pytest.mark.parametrize("d", [3, 10])
def test_bounds_that_are_much_too_wide_cost_little(d):
    rows, _ = separated_gaussians(20_000, n_clusters=6, n_features=d, random_state=2)
    tight, wide = (np.median(ratios(rows, 6, bounds=bounds)) for bounds in ((-1, 1), (-16, 16)))
    assert wide < 1.1 * tight


@pytest.mark.parametrize(("d", "most"), [(2, 1.2), (PURE_COLUMNS, 1.3), (PURE_COLUMNS + 8, 1.6)])
def test_pure_budgets(d, most):
    """In few columns moments are affordable. In more, directions are random and public."""
    rows, _ = separated_gaussians(30_000, n_clusters=4, n_features=d, random_state=0)
    steps = {step.step.name for step in model(4, epsilon=2.0).plan(d).steps}
    assert ("moments" in steps) == (d <= PURE_COLUMNS)
    assert np.median(ratios(rows, 4, epsilon=2.0, delta=0.0)) < most


def test_tables_too_wide_for_moments_have_random_directions():
    for budget in BUDGETS[1:]:
        for d, asks in ((MOMENT_COLUMNS, True), (MOMENT_COLUMNS + 1, False)):
            assert ("moments" in {s.step.name for s in model(**budget).plan(d).steps}) == asks


def test_public_points_to_start_from():
    """No cells are looked for then: what that would cost goes to the rounds."""
    rows, _ = separated_gaussians(20_000, n_clusters=6, n_features=5, random_state=0)
    start = KMeans(6, n_init=1, random_state=0).fit(rows[:500]).cluster_centers_
    assert np.median(ratios(rows, 6, init=start)) < 1.05
    steps = {priced.step.name: priced.step.share for priced in model(6, init=start).plan(5).steps}
    assert not steps.keys() & {"spread", "halves"}
    assert sum(steps.values()) == 1


@pytest.mark.parametrize(
    "init", [np.zeros((2, 4)), np.zeros((5, 3)), np.full((5, 4), np.nan), np.zeros(4), 7]
)
def test_points_that_no_fit_can_start_from(init, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    with pytest.raises(ParameterError, match="`init` must"):
        PrivateKMeans(3, bounds=(-1, 1), ledger=ledger, init=init).fit(np.zeros((9, 4)))
    assert ledger.history() == []


def test_the_number_of_clusters_is_found_and_others_are_free():
    rows, _ = separated_gaussians(20_000, n_clusters=5, n_features=4, random_state=0)
    fitted = model("auto", epsilon=2.0, delta=1e-6).fit(rows)
    assert fitted.n_clusters_ == 5
    assert len(fitted.at(3).cluster_centers_) == 3
    assert fitted.inertia_ > 0


def test_sizes_are_those_of_the_clusters():
    rows, labels = separated_gaussians(20_000, n_clusters=4, n_features=5, random_state=0)
    fitted = model(4, epsilon=1.0, delta=1e-6).fit(rows)
    assert np.sort(fitted.cluster_sizes_) == pytest.approx(np.sort(np.bincount(labels)), rel=0.05)
    assert (fitted.cluster_size_stds_ > 0).all()
    assert fitted.cluster_center_stds_.shape == (4, 5)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "approximate", "zcdp"])
def test_all_steps_are_asked_whatever_the_table(name, budget):
    table = TABLES[name]
    d = table.shape[1]
    fitted = model(**budget).fit(table)
    check_centres(fitted, 3, d)
    planned = sorted(record.step for record in fitted.plan(d).records())
    assert sorted(record.step for record in fitted.privacy_.steps) == planned
    assert fitted.privacy_.spent <= fitted.privacy_.budget


@pytest.mark.parametrize("epsilon", ["0.005", "0.1", "1e50"])
def test_budgets_beyond_reason(rows, epsilon):
    check_centres(model(epsilon=epsilon).fit(rows), 3, 2)


@pytest.mark.parametrize("bounds", [(-1e139, 1e139), (-1e-139, 1e-139), (1e9, 1e9 + 1), Ball(2.0, [0.5, 0])])
@pytest.mark.parametrize("budget", BUDGETS[:2], ids=["pure", "approximate"])
def test_extreme_bounds(rows, bounds, budget):
    for table in (rows, rows[:1].repeat(300, axis=0), EMPTY[:, :2]):
        check_centres(model(bounds=bounds, **budget).fit(table), 3, 2)


@pytest.mark.parametrize("k", [1, 2, 40, 100])
def test_more_clusters_than_the_noise_can_show(k):
    rng = np.random.default_rng(0)
    for rows in (rng.uniform(-1, 1, (30, 2)), np.zeros((5000, 12))):
        check_centres(model(k, delta=1e-6).fit(rows), k, rows.shape[1])


@pytest.mark.parametrize("n_components", [1, 3, "auto"])
def test_directions_are_at_most_those_asked_for(n_components):
    rows, _ = separated_gaussians(5000, n_clusters=3, n_features=6, random_state=0)
    fitted = model(n_components=n_components, delta=1e-6)
    check_centres(fitted.fit(rows), 3, 6)
    planned = {step.step.name: step.step.sensitivity for step in fitted.plan(6).steps}
    asked = {record.step: record.sensitivity for record in fitted.privacy_.steps}
    for name in ("halves", "cell means", "centre means"):
        assert asked[name].coordinates <= planned[name].coordinates
    if n_components != "auto":
        assert planned["cell means"].coordinates == 2 + n_components


def test_named_columns_and_categories():
    rng = np.random.default_rng(0)
    kind = rng.choice(3, 20_000, p=[0.5, 0.3, 0.2])
    table = pd.DataFrame(
        {
            "age": rng.normal(np.take([70, 45, 30], kind), 6),
            "days": rng.gamma(np.take([9, 4, 2], kind)),
            "ward": np.take(["medicine", "surgery", "maternity"], kind),
        }
    )
    bounds = {"age": (0, 100), "days": (0, 30), "ward": ["medicine", "surgery", "maternity"]}
    fitted = model(3, bounds=bounds, delta=1e-6).fit(table)
    found = [np.bincount(kind[fitted.labels_ == c], minlength=3).max() for c in range(3)]
    assert sum(found) > 0.95 * len(table)
    assert fitted.profiles_ is not None
    of_levels = fitted.cluster_centers_[:, 2:]
    assert (of_levels >= -1e-9).all()


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_clusters": 1001},
        {"n_clusters": 0},
        {"n_components": 0},
        {"n_components": 65},
        {"n_components": "a"},
    ],
)
def test_bad_parameters(parameters, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        PrivateKMeans(bounds=(-1, 1), ledger=ledger, **parameters).fit(np.zeros((3, 2)))
    assert ledger.history() == []


@pytest.mark.parametrize("d", [1, 2, 63, 64, 384, 3000])
@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "approximate", "zcdp"])
def test_shares_are_all_of_the_budget(d, budget):
    for k in (1, 8, 1000):
        plan = model(k, **budget).plan(d)
        assert sum(priced.step.share for priced in plan.steps) == 1
        assert plan.cost() <= Budget(**budget)


def test_merging_keeps_the_number_and_the_rows():
    rng = np.random.default_rng(0)
    sizes = np.append(rng.uniform(10, 100, 38), [0.0, 0.0])
    cells = Cells(rng.normal(size=(40, 3)), sizes, np.full(40, 0.2), np.zeros(40), 1.0)
    for k in (1, 5, 39):
        merged = _merged(cells, merged_into(cells.centers, cells.sizes, k)[0])
        assert merged.centers.shape == (k, 3)
        assert merged.sizes.sum() == pytest.approx(sizes.sum(), rel=0.01)
        assert (merged.scales >= 0.2 * (1 - 1e-9)).all()
    assert _merged(cells, cells.centers) is cells


def test_lifted_centres_project_to_what_was_lifted():
    rng = np.random.default_rng(0)
    projection, frame = orthonormal(3, 20, DIRECTIONS_SEED), Frame(rng.normal(size=20), 1.0, 100.0)
    centers = rng.normal(size=(5, 3))
    lifted = _lifted(centers, frame, projection)
    assert lifted @ projection.T == pytest.approx(centers)
    moves = lifted - frame.middle
    assert moves - moves @ projection.T @ projection == pytest.approx(np.zeros((5, 20)))


def test_the_same_seed_gives_the_same_centres(rows):
    one, other = (model(delta=1e-6).fit(rows).cluster_centers_ for _ in range(2))
    assert (one == other).all()
    assert private_kmeans.DIRECTIONS_SEED == 2026  # public: it must never follow the data
