"""Released cells: clusters for any number, their costs and silhouettes, and how many are separated."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from sfumato.domain import Measure
from sfumato.errors import ParameterError
from sfumato.public.cells import CellSynopsis
from sfumato.public.models import CentreModel, decode, encode


def table(k, d, *, n_each=1500, spread=0.05, seed=0):
    """Clusters whose neighbours are at least seven deviations apart, and twice the spread in many columns."""
    rng = np.random.default_rng(seed)
    spread = min(spread, 0.5 / np.sqrt(d))
    centers = [rng.uniform(-1, 1, d)]
    while len(centers) < k:
        new = rng.uniform(-1, 1, d)
        if min(np.linalg.norm(new - old) for old in centers) > 7 * spread:
            centers.append(new)
    sizes = (n_each * np.exp(rng.uniform(0, np.log(5), k))).astype(int)
    return np.repeat(centers, sizes, axis=0) + spread * rng.normal(size=(sizes.sum(), d))


def cells_of(rows, m, *, noise=0.0, size_std=0.0, seed=0):
    """Cells as a method releases them: means and sizes with noise, empty cells far away among them."""
    rng = np.random.default_rng(seed)
    fit = KMeans(m, n_init=1, random_state=seed).fit(rows[:: max(len(rows) // 4000, 1)])
    labels = fit.predict(rows)
    sizes = np.bincount(labels, minlength=m)
    means = np.array([rows[labels == j].mean(axis=0) for j in range(m)])
    stds = noise / np.maximum(sizes, 1)
    centers = means + stds[:, None] * rng.normal(size=means.shape)
    square = ((rows - centers[labels]) ** 2).sum(axis=1).mean()
    return CellSynopsis(
        centers, sizes + size_std * rng.normal(size=m), stds, size_std, float(square), float(0.02 * square)
    )


def cost_of(rows, centers):
    return cdist(rows, centers, "sqeuclidean").min(axis=1).sum()


@pytest.mark.parametrize(("k", "d"), [(3, 2), (7, 2), (12, 5), (3, 50), (20, 50), (5, 384)])
@pytest.mark.parametrize("seed", range(2))
def test_the_number_of_separated_clusters_is_found(k, d, seed):
    rows = table(k, d, seed=seed, n_each=600 if d > 50 else 1500)
    for m in (2 * k, 3 * k + 5):
        assert cells_of(rows, m, seed=seed).suggested == k
        found = cells_of(rows, m, noise=6.0 * np.sqrt(cells_of(rows, m).mean_square), size_std=20, seed=seed)
        assert abs(found.suggested - k) <= 1


def test_empty_cells_are_no_clusters():
    cells = cells_of(table(4, 3), 9, size_std=30)
    rng = np.random.default_rng(0)
    empty = replace(
        cells,
        centers=np.vstack([cells.centers, rng.uniform(-1, 1, (20, 3))]),
        sizes=np.concatenate([cells.sizes, 30 * rng.normal(size=20)]),
        center_stds=np.concatenate([cells.center_stds, np.full(20, 0.05)]),
    )
    assert empty.suggested == cells.suggested == 4
    assert empty.n_visible == cells.n_visible


def test_cells_lost_in_noise_are_one_cluster():
    cells = CellSynopsis(np.eye(3), np.array([3.0, -5.0, 1.0]), np.ones(3), 10.0, 0.5, 0.1)
    assert cells.suggested == 1
    assert cells.separated().shape == (1, 3)
    assert np.isfinite(cells.curve([1, 2, 3]).costs).all()


@pytest.mark.parametrize("d", [2, 20])
def test_costs_hold_without_noise(d):
    rows = table(6, d)
    cells = cells_of(rows, 24)
    curve = cells.curve()
    for k, low, high in zip(curve.numbers, *curve.cost_ends, strict=True):
        assert low <= cost_of(rows, cells.at(int(k)).centers) <= high
    assert curve.suggested == 6
    assert curve.numbers[-1] == 24
    truth = cost_of(rows, cells.centers)
    assert curve.costs[-1] == pytest.approx(truth, rel=0.02)


def test_noise_does_not_raise_the_costs():
    """The noise in centres is taken off: on average the cost is that of the rows."""
    rows = table(5, 20)
    ratios = []
    for seed in range(20):
        cells = cells_of(rows, 15, noise=60.0, size_std=20, seed=seed)
        ratios.append(cells.curve([5]).costs[0] / cost_of(rows, cells.at(5).centers))
        other = np.random.default_rng(seed).uniform(-1, 1, (5, 20))
        ratios.append(cells.cost(other).value / cost_of(rows, other))
    assert np.mean(ratios) == pytest.approx(1, abs=0.03)


def test_silhouettes_are_close_to_those_of_the_rows():
    rows = table(5, 3)
    cells = cells_of(rows, 15, noise=1.0, size_std=10)
    curve = cells.curve([1, 3, 5])
    assert curve.silhouettes[0] == 0
    for i, k in ((1, 3), (2, 5)):
        labels = cdist(rows, cells.at(k).centers).argmin(axis=1)
        truth = silhouette_score(rows[::5], labels[::5])
        assert curve.silhouette_ends[0, i] <= truth <= curve.silhouette_ends[1, i]


def test_at():
    rows = table(5, 2)
    cells = cells_of(rows, 15, size_std=10)
    for k in (1, 4, 5, 9, 15):
        found = cells.at(k)
        assert found.centers.shape == found.center_stds.shape == (k, 2)
        assert found.sizes.shape == found.size_stds.shape == (k,)
        assert found.sizes.sum() == pytest.approx(len(rows), rel=0.05)
    counts = np.bincount(cdist(rows, cells.at(5).centers).argmin(axis=1))
    assert (np.abs(counts - cells.at(5).sizes) < 4 * cells.at(5).size_stds).all()
    for k in (0, 16):
        with pytest.raises(ParameterError, match="15 cells"):
            cells.at(k)


def test_other_units_change_nothing():
    cells = cells_of(table(4, 2), 10, noise=1.0, size_std=10)
    measure = Measure((10.0, -3.0), (5.0, 0.25))
    moved = cells.moved(measure.inverse)
    assert moved.suggested == cells.suggested
    assert moved.at(3).centers == pytest.approx(measure.inverse.of(cells.at(3).centers))
    assert moved.at(3).center_stds == pytest.approx(cells.at(3).center_stds * measure.step)
    assert moved.curve([2, 5]).costs == pytest.approx(cells.curve([2, 5]).costs)
    assert moved.moved(measure).centers == pytest.approx(cells.centers)


def test_cells_are_saved_with_the_model():
    cells = cells_of(table(4, 2), 10)
    model = CentreModel(cells.at(4).centers, cells.at(4).sizes, cells=cells)
    again = decode(encode(model))
    assert again.cells.at(3).centers == pytest.approx(cells.at(3).centers)
    assert again.at(4) is again
    assert len(again.at(7).cluster_centers) == 7
    assert again.at(7).at(2).cluster_sizes.shape == (2,)
    broken = encode(model)
    broken["cells"]["size_std"] = -1.0
    with pytest.raises(ParameterError, match="negative"):
        decode(broken)
    with pytest.raises(ParameterError, match="refine"):
        CentreModel(np.zeros((2, 2)), np.ones(2)).at(3)
