"""The sandwich guarantee of DPDBSCAN (Qiu and Yi, Definition 1.2) against exact DBSCAN by brute force."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.datasets import make_circles, make_moons

from sfumato import DPDBSCAN
from sfumato.cluster import dbscan
from sfumato.cluster.shared import density_base
from sfumato.public.density import dbscan as spans_of

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")

N_SEEDS = {1: 28, 2: 28, 3: 14}  # by number of columns; a multiple of the number of shapes
RADIUS = {1: 0.02, 2: 0.1, 3: 0.25}  # in a domain of width 2


def exact_clusters(rows, radius, min_samples):
    """Places of the core rows of each cluster: open balls, a row counts as its own neighbour."""
    places, times = np.unique(rows, axis=0, return_counts=True)
    near = cdist(places, places) < radius
    core = near @ times >= min_samples
    n_clusters, labels = connected_components(csr_array(near[np.ix_(core, core)]), directed=False)
    return [places[core][labels == label] for label in range(n_clusters)]


def is_found(rows, model, more):
    """Condition 1, for clusters of so many more neighbours: the core rows of each lie in one span."""
    guarantee = model.guarantee_
    clusters = exact_clusters(rows, guarantee.radius, guarantee.min_samples + more)
    labels = [set(model.predict(cluster)) for cluster in clusters]
    return all(len(found) == 1 and -1 not in found for found in labels)


def is_there(rows, model):
    """Condition 2: each cell of a span lies in a ball around a core row, all of the same cluster."""
    radius = model.guarantee_.rho * model.guarantee_.radius
    clusters = exact_clusters(rows, radius, model.guarantee_.min_samples)
    for span in model.spans_:
        at = np.stack(np.unravel_index(span.cells, span.grid.shape), axis=1)
        centers = np.array(span.grid.low) + (at + 0.5) * span.grid.widths
        if not any(covers(cluster, centers, span.grid.widths / 2, radius) for cluster in clusters):
            return False
    return True


def covers(rows, centers, half, radius):
    """Whether each box lies whole in the ball around some row."""
    farthest = np.zeros((len(centers), len(rows)))
    for j in range(rows.shape[1]):
        farthest += (np.abs(centers[:, j, None] - rows[None, :, j]) + half[j]) ** 2
    return bool((farthest < radius**2).any(axis=1).all())


def clumps(rng, d, few, enough):
    """Rows at single places, far apart: one too few, or exactly enough."""
    places = rng.uniform(-1, 1, size=(6, d))
    return np.repeat(places, rng.choice([few, enough], size=6), axis=0)


def chain(rng, d, few, enough):
    """Heavy ends, joined by steps of hardly less than the radius, on which just enough rows lie."""
    steps = rng.normal(size=(8, d))
    steps *= 0.999 * RADIUS[d] / np.linalg.norm(steps, axis=1, keepdims=True)
    path = rng.uniform(-0.4, 0.4, size=d) + np.cumsum(steps, axis=0)
    sizes = np.full(8, enough)
    sizes[[0, -1]] *= 3
    return np.repeat(np.clip(path, -1, 1), sizes, axis=0)


def thin_line(rng, d, few, enough):
    """Places in a straight line, such that every ball holds hardly enough rows."""
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    places = np.outer(np.arange(-0.9, 0.9, RADIUS[d] / 4), direction)  # seven of them in an open ball
    return np.repeat(places, -(-enough // 7), axis=0)


def moons(rng, d, few, enough):
    rows, _ = make_moons(600, noise=0.08, random_state=int(rng.integers(2**31)))
    return _in_columns(rows / 2.2 - [0.2, 0.1], d, rng)


def circles(rng, d, few, enough):
    rows, _ = make_circles(600, noise=0.04, factor=0.5, random_state=int(rng.integers(2**31)))
    return _in_columns(rows * 0.8, d, rng)


def scattered(rng, d, few, enough):
    """An even cloud around one normal clump: as many places as can be that are nearly dense."""
    return np.concatenate([rng.uniform(-1, 1, size=(300, d)), rng.normal(scale=RADIUS[d], size=(300, d))])


def nothing(rng, d, few, enough):
    return np.empty((0, d))


def _in_columns(rows, d, rng):
    more = rng.normal(scale=0.05, size=(len(rows), d))
    more[:, : min(d, 2)] = rows[:, : min(d, 2)]
    return np.clip(more, -1, 1)


SHAPES = [clumps, chain, thin_line, moons, circles, scattered, nothing]


@pytest.fixture(params=["dense", "sparse"])
def fit(request, monkeypatch):
    """Fit with all cells released, or with those that stand out, of a grid that is small all the same."""
    memory = 1e9
    if request.param == "sparse":
        monkeypatch.setattr(density_base, "N_FALSE", 4)
        monkeypatch.setattr(dbscan, "block_bytes", lambda _: -4 * density_base.BYTES_PER_LISTED)
        memory = 1

    def run(rows, min_samples, **parameters):
        parameters = {"max_memory": memory, "bounds": (-1, 1), "random_state": 0} | parameters
        model = DPDBSCAN(RADIUS[rows.shape[1]], min_samples, **parameters).fit(rows)
        assert model.histogram_.is_dense == (memory > 1)
        return model

    return run


def failures(fit, d, min_samples, understated=0.0, **parameters):
    """Shares of runs in which a cluster is not found, and in which a span is of nothing."""
    missed, false = [], []
    no_rows = np.empty((0, d))
    taus = [fit(no_rows, min_samples, valleys=v, **parameters).guarantee_.tau for v in (False, True)]
    for seed in range(N_SEEDS[d]):
        shape, valleys = SHAPES[seed % len(SHAPES)], bool(seed // len(SHAPES) % 2)
        more = round((1 - understated) * taus[valleys])
        rows = shape(np.random.default_rng(seed), d, min_samples - 1, min_samples + more)
        model = fit(rows, min_samples, random_state=seed, valleys=valleys, **parameters)
        missed.append(not is_found(rows, model, more))
        false.append(not is_there(rows, model))
    return np.mean(missed), np.mean(false)


@pytest.mark.parametrize("min_samples", [20, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("d", RADIUS)
def test_the_guarantee_holds_as_often_as_stated(fit, d, min_samples):
    beta = 0.1
    missed, false = failures(fit, d, min_samples, beta=beta)
    assert missed + false <= beta + 2 * math.sqrt(beta / N_SEEDS[d])


@pytest.mark.parametrize(
    "budget", [{"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}, {"epsilon": 1.0, "eta": 2.0}]
)
def test_the_guarantee_holds_under_other_budgets_and_widths(fit, budget):
    assert sum(failures(fit, 2, 5, **budget)) <= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("min_samples", [1, 20])
@pytest.mark.parametrize("d", RADIUS)
def test_without_noise_it_always_holds(fit, d, min_samples):
    assert failures(fit, d, min_samples, epsilon=1e2) == (0, 0)


def test_the_check_has_power_to_see_what_is_missed(fit):
    for d in (1, 2):
        missed, _ = failures(fit, d, 5, understated=0.8)
        assert missed > 0.25


def test_the_check_has_power_to_see_spans_of_nothing(fit, monkeypatch):
    monkeypatch.setattr(spans_of, "allowances", lambda *_: (0, 0))
    for d in (1, 2):
        _, false = failures(fit, d, 1)
        assert false > 0.2


def test_without_noise_spans_of_exact_dbscan_are_met(fit):
    """Two clumps farther apart than all that the method blurs are two spans, one clump too small is none."""
    rows = np.repeat([[-0.7, -0.7], [0.7, 0.7], [-0.7, 0.7]], [30, 30, 3], axis=0)
    model = fit(rows, 10, epsilon=1e2)
    assert model.n_clusters_ == 2
    assert model.labels_.tolist() in ([0] * 30 + [1] * 30 + [-1] * 3, [1] * 30 + [0] * 30 + [-1] * 3)
