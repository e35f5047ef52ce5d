"""How often the interval of a span holds the true number of rows in it, and how far the estimate is off."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from sfumato import DPDBSCAN, DensityTree

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")

N_SEEDS = 60
BOUNDS = ([-1.5, -1.2], [2.5, 1.8])


def blobs():
    rng = np.random.default_rng(0)
    centers, sizes = np.array([[-0.8, -0.4], [0.6, 1.0], [1.6, -0.4]]), [300, 1500, 5000]
    clouds = [rng.normal(c, 0.15, size=(n, 2)) for c, n in zip(centers, sizes, strict=True)]
    return np.concatenate([*clouds, rng.uniform(*BOUNDS, size=(500, 2))]).clip(*BOUNDS)


def moons():
    return make_moons(5000, noise=0.1, random_state=0)[0].clip(*BOUNDS)


DATA = {"blobs": blobs(), "moons": moons()}
METHODS = {
    "DPDBSCAN": lambda **parameters: DPDBSCAN(0.2, 40, **parameters),
    "DensityTree": lambda **parameters: DensityTree(**parameters),
}


def measured(method, rows, **budget):
    """Shares of spans whose true count is below, in and above the interval; errors in half intervals."""
    places, errors = [], []
    for seed in range(N_SEEDS):
        model = METHODS[method](bounds=BOUNDS, random_state=seed, **budget).fit(rows)
        labels = model.labels_
        for span in model.spans_:
            true = np.count_nonzero(labels == span.label)
            low, high = span.count_low, span.count_high
            places.append((true < low, low <= true <= high, true > high))
            errors.append((span.count - true) / max((high - low) / 2, 1))
    return np.mean(places, axis=0), np.array(errors)


OTHERS = [{"epsilon": 0.3}, {"rho": 0.05}]
BUDGETS = [{"epsilon": 1.0}, *(pytest.param(budget, marks=pytest.mark.slow) for budget in OTHERS)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("method", METHODS)
def test_intervals_hold_the_true_count(method, data, budget):
    """In about 95 % of spans; those of DPDBSCAN more often, for cells that a span cuts."""
    (_, inside, _), errors = measured(method, DATA[data], **budget)
    assert len(errors) >= N_SEEDS
    assert inside >= 0.88
    assert abs(errors.mean()) < 0.4
    assert np.sqrt(np.mean(errors**2)) < 0.7


@pytest.mark.parametrize("method", METHODS)
def test_intervals_are_not_wide_for_nothing(method):
    """A quarter of the width would be too small, so that the test above has power."""
    _, errors = measured(method, DATA["blobs"], epsilon=1.0)
    assert np.mean(np.abs(errors) < 0.25) < 0.8


def test_intervals_of_a_sparse_histogram():
    rows = np.random.default_rng(0).normal(0, 0.02, size=(5000, 2))
    inside = []
    for seed in range(15):
        model = DPDBSCAN(0.005, 100, bounds=BOUNDS, max_memory=6e7, random_state=seed).fit(rows)
        assert not model.histogram_.is_dense
        true = np.bincount(model.labels_[model.labels_ >= 0], minlength=model.n_clusters_)
        inside += [s.count_low <= true[s.label] <= s.count_high for s in model.spans_]
    assert len(inside) >= 15
    assert np.mean(inside) > 0.9
