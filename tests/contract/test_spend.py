"""What a fit records adds up to what it promised, by an accountant that shares no code with the library.

The records say which noise ran on which sensitivity. From them this file computes the spend anew: exact sums
for pure and zCDP budgets, and for (epsilon, delta) the hockey-stick divergence of the exact discrete laws.
"""

import inspect
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.signal import fftconvolve
from scipy.stats import norm

from sfumato.budget import Record
from sfumato.budget.records import Sensitivity
from sfumato.cluster import DPMoG, LloydKMeans, dbscan
from sfumato.cluster.shared import density_base
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.public.models import MorseModel

slow = pytest.mark.slow
PURE = ["1", *(pytest.param(epsilon, marks=slow) for epsilon in ("0.01", "10"))]
RHO = ["0.3", pytest.param("0.001", marks=slow)]
APPROXIMATE = [("0.01", "1e-4"), ("0.1", "1e-6"), ("1", "1e-2"), ("10", "1e-9")]
WORLDS = [(d, k) for d in (1, 2, 10, 100) for k in (1, 2, 64)]
WORLDS_OF_CELLS = [(d, None) for d in (1, 2, 3, 6)]  # of methods whose cells have a given width
PRECISION = 1e-13  # of the Fourier transform


def size(record):
    """Sensitivity over scale, exact: the pure cost of Laplace noise and of selections."""
    sensitivity = (
        record.sensitivity.l1 if record.mechanism == "discrete Laplace" else record.sensitivity.spread
    )
    return Fraction(sensitivity) / record.scale


def pure_sum(records):
    if any(record.mechanism == "discrete Gaussian" for record in records):
        return math.inf
    return sum(map(size, records))


def rho_of(record):
    if record.mechanism == "discrete Gaussian":
        return Fraction(record.sensitivity.l2_squared) / (2 * record.scale**2)
    return size(record) ** 2 / (8 if record.mechanism == "exponential" else 2)


def law(record):
    """Privacy losses ln p(x)/q(x) and their probabilities under p, for the worst pair of neighbours.

    The noise is symmetric, so adding and removing a unit give the same losses. Anything pure but the
    noise on a single entry is dominated by randomised response.
    """
    shift, scale = record.sensitivity.l1, float(record.scale)
    scalar = record.sensitivity.coordinates == 1
    if record.mechanism == "discrete Gaussian":
        assert scalar, "a vector of discrete Gaussians has no such law: use renyi_epsilon"
        x = np.arange(-math.ceil(12 * scale) - shift, math.ceil(12 * scale) + shift + 1, dtype=np.float64)
        weights = np.exp(-(x**2) / (2 * scale**2))
        return (shift**2 - 2 * shift * x) / (2 * scale**2), weights / weights.sum()
    if record.mechanism == "discrete Laplace" and scalar:
        x = np.arange(
            0, shift + 1, dtype=np.float64
        )  # all x <= 0 have the first loss, all x >= shift the last
        weights = np.exp(-x / scale)
        weights[[0, -1]] /= -math.expm1(-1 / scale)
        return (shift - 2 * x) / scale, weights / weights.sum()
    epsilon = float(size(record))
    likely = 1 / (1 + math.exp(-epsilon))
    return np.array([epsilon, -epsilon]), np.array([likely, 1 - likely])


def on_grid(losses, probabilities, step, rounding):
    """Probabilities of losses rounded to multiples of `step`, and the least multiple."""
    multiples = rounding(losses / step).astype(np.int64)
    low = multiples.min()
    return int(low), np.bincount(multiples - low, probabilities)


def composed_delta(records, epsilon, rounding):
    """Delta at which the records together satisfy `epsilon`, with the loss of each rounded on a fine grid.

    Rounded up it bounds the true delta from above, rounded down from below.
    """
    step = float(epsilon) / 4e4
    low, total = 0, np.ones(1)
    for record in records:
        first, probabilities = on_grid(*law(record), step, rounding)
        low, total = low + first, fftconvolve(total, probabilities)
    losses = step * (low + np.arange(len(total)))
    above = losses > epsilon
    return float(np.maximum(total[above], 0) @ -np.expm1(epsilon - losses[above]))


def renyi_epsilon(records, delta):
    """Bound by Rényi orders, for vectors of Gaussians (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    order = np.geomspace(1.0001, 1e9, 20_000)
    divergence = sum(order * float(rho_of(record)) for record in records)
    return float((divergence + np.log1p(-1 / order) - np.log(delta * order) / (order - 1)).min())


def gaussian_delta(records, epsilon):
    """Delta of continuous noise, a little smaller than the discrete (docs/proofs/composition.md)."""
    mu = math.sqrt(sum(r.sensitivity.l2_squared / (float(r.scale) ** 2 - 9) for r in records))
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def check_spend(records, *, epsilon=None, delta=None, rho=None):
    """The records cost what was promised: not more, and hardly less."""
    assert records
    if rho is not None:
        total = sum(map(rho_of, records))
        assert Fraction(rho) * (1 - Fraction(1, 10**8)) <= total <= Fraction(rho)
        return
    total = pure_sum(records)
    if delta is None:
        assert Fraction(epsilon) * (1 - Fraction(1, 10**8)) <= total <= Fraction(epsilon)
        return
    target, delta = float(epsilon), float(delta)
    vectors = [r for r in records if r.mechanism == "discrete Gaussian" and r.sensitivity.coordinates > 1]
    if vectors and all(r.mechanism == "discrete Gaussian" and r.scale >= 6 for r in records):
        assert gaussian_delta(records, target) <= delta * (1 + 1e-6)
        assert gaussian_delta(records, 0.98 * target) > delta
        return
    if vectors:
        assert 0.98 * target < renyi_epsilon(records, delta) <= target * (1 + 1e-6)
        return
    assert composed_delta(records, target, np.floor) <= delta * (1 + 1e-6) + PRECISION
    assert composed_delta(records, 1.001 * target, np.ceil) <= delta * (1 + 1e-6) + PRECISION
    nothing_to_gain = 1 - Fraction(1, 10**6) <= total / Fraction(epsilon) <= 1
    assert composed_delta(records, 0.98 * target, np.ceil) > delta or nothing_to_gain


@pytest.fixture(autouse=True)
def no_post_processing(monkeypatch):
    """Centres from a noisy grid cost time and no budget: take the first cells. Nor are mixtures merged."""

    def first_cells(self, n_clusters):
        return np.resize(self.grid.centers(), (n_clusters, len(self.grid.shape))), np.ones(n_clusters)

    monkeypatch.setattr(GridSynopsis, "cluster", first_cells)
    monkeypatch.setattr(MorseModel, "cut", lambda self, n_clusters=None: self)
    monkeypatch.setattr(MorseModel, "attributes", lambda self: self.base.attributes())


# Two ways of asking: a number of rows that is private or public, a grid that is found or given, all cells of
# a grid or those that stand out, a mixture from centres or from a grid, a base with covariances or without.
VARIANTS = {
    "start": [{"start": "centers"}, {"start": "grid"}],
    "base": [{"base": DPMoG(5)}, {"base": LloydKMeans(5)}],
    "n_public": [{}, {"n_public": 60}],
    "cell": [{}, {"cell": 1.0}],
    "radius": [{}, {"max_memory": 1.0}],
}


@pytest.fixture(params=[0, 1])
def fits(request, estimator_class, monkeypatch):
    """Fit the estimator in all worlds; yield what was promised of each."""
    known = inspect.signature(estimator_class).parameters
    variants = next((pair for name, pair in VARIANTS.items() if name in known), [{}])
    if request.param >= len(variants):
        pytest.skip("asks in one way only")
    monkeypatch.setattr(dbscan, "block_bytes", lambda _: -10 * density_base.BYTES_PER_LISTED)
    monkeypatch.setattr(density_base, "N_FALSE", 10)

    def run(**budget):
        shared = {"max_cells": 1000, "bounds": (-1, 1), "radius": 2.0, "min_samples": 10**6} | budget
        by_width = "cell" in known or "radius" in known
        worlds = WORLDS[::2] if "delta" in budget else WORLDS  # to compose with delta takes long
        for d, k in WORLDS_OF_CELLS if by_width else worlds:
            parameters = shared | {"n_clusters": k, "n_components": k} | variants[request.param]
            if ("max_cells" in known or parameters.get("start") == "grid") and 2**d > 1000:
                continue  # a grid is for few columns
            if parameters.get("base") is not None:
                parameters["n_clusters"] = 2
            model = estimator_class(**{name: value for name, value in parameters.items() if name in known})
            model.fit(np.random.default_rng(d).uniform(-1, 1, size=(60, d)))
            assert "max_memory" not in variants[request.param] or not model.histogram_.is_dense
            yield model

    return run


@pytest.mark.parametrize("epsilon", PURE)
def test_pure(fits, epsilon):
    for model in fits(epsilon=epsilon):
        check_spend(model.privacy_.steps, epsilon=epsilon)
        assert model.privacy_.spent <= model.privacy_.budget
        assert model.privacy_.epsilon == pytest.approx(float(epsilon), rel=1e-8)


@pytest.mark.parametrize("rho", RHO)
def test_zcdp(fits, rho):
    for model in fits(rho=rho):
        check_spend(model.privacy_.steps, rho=rho)
        assert model.privacy_.spent <= model.privacy_.budget


@slow
@pytest.mark.parametrize(("epsilon", "delta"), APPROXIMATE)
def test_approximate(fits, epsilon, delta):
    checked = set()
    for model in fits(epsilon=epsilon, delta=delta):
        steps = model.privacy_.steps
        if steps not in checked:
            check_spend(steps, epsilon=epsilon, delta=delta)
            assert model.privacy_.spent <= model.privacy_.budget
        checked.add(steps)
    assert checked


def test_approximate_in_one_world(make):
    model = make(epsilon="1", delta="1e-6").fit(np.zeros((60, 2)))
    check_spend(model.privacy_.steps, epsilon="1", delta="1e-6")
    assert model.privacy_.spent <= model.privacy_.budget


def test_the_accountant_itself():
    """Known answers: one Laplace is randomised response, and a wide Gaussian is a continuous one."""

    def check(records, epsilon, expected, rel=1e-3):
        low, high = (composed_delta(records, epsilon, rounding) for rounding in (np.floor, np.ceil))
        assert low <= high
        assert low == pytest.approx(expected, rel=rel, abs=1e-12)
        assert high == pytest.approx(expected, rel=rel, abs=1e-5)

    laplace = Record("a", "discrete Laplace", Sensitivity(), Fraction(2))
    response = math.exp(0.5) / (1 + math.exp(0.5))
    check([laplace], 0.1, response - math.exp(0.1) * (1 - response))
    check([laplace], 0.5, 0.0)
    check([laplace, laplace], 0.3, response**2 - math.exp(0.3) * (1 - response) ** 2)
    wide = Record("b", "discrete Gaussian", Sensitivity(l1=100, l2_squared=10_000), Fraction(100))
    check([wide], 0.7, norm.cdf(0.5 - 0.7) - math.exp(0.7) * norm.cdf(-0.5 - 0.7))
    check([wide] * 4, 0.7, norm.cdf(1 - 0.35) - math.exp(0.7) * norm.cdf(-1 - 0.35))
    three = Record("c", "discrete Laplace", Sensitivity(l1=3, l2_squared=9, spread=3), Fraction(3))
    x = np.arange(-400, 404)
    p, q = np.exp(-np.abs(x) / 3), np.exp(-np.abs(x - 3) / 3)
    check([three], 0.2, np.maximum(p - math.exp(0.2) * q, 0).sum() / p.sum())


def overspent(records, factor):
    return [replace(record, scale=record.scale * Fraction(factor)) for record in records]


@pytest.mark.of_base
@pytest.mark.parametrize("factor", ["1/2", "95/100", "105/100", "2"])
@pytest.mark.parametrize(
    "budget",
    [{"epsilon": "1"}, {"epsilon": "1", "delta": "1e-5"}, {"rho": "1"}, {"epsilon": "0.1", "delta": "1e-2"}],
)
def test_a_wrong_scale_would_be_seen(make, budget, factor):
    steps = make(**budget).fit(np.zeros((10, 2))).privacy_.steps
    check_spend(steps, **budget)
    with pytest.raises(AssertionError):
        check_spend(overspent(steps, factor), **budget)
