"""Whatever the widths of the columns are: bounds are refused before the charge, or the fit finishes."""

import numpy as np
import pytest
from tests.worlds import rarely

from sfumato import Budget, Ledger, Release
from sfumato.cluster import DPMoG, GridKMeans
from sfumato.errors import ParameterError

EXPONENTS = [-139, -70, -60, -22, -9, 0, 0, 0, 9, 20, 70, 139]


def draw_bounds(rng):
    """Columns of very different widths; some are far from zero."""
    width = 10.0 ** rng.choice(EXPONENTS, rng.integers(1, 4))
    far = rng.choice([0, 0, 0, 3, -1e4, 1e11], len(width))
    low = np.clip(far * width, -9e139, 9e139)
    return low, low + width


def draw_rows(rng, low, high):
    places = np.clip(rng.normal(rng.choice([0.2, 0.8], (300, 1)), 0.05, (300, len(low))), 0, 1)
    return low + places * (high - low)


def lengths(estimator, high, low):
    """Lengths of a density method, in proportion to the widest column."""
    scale = float((high - low).max())
    return {name: scale / 4 for name in ("radius", "cell") if hasattr(estimator, name)}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("seed", [*range(4), *rarely(*range(4, 40))])
def test_a_fit_finishes_or_is_refused_before_the_charge(make, seed, tmp_path):
    rng = np.random.default_rng(seed)
    low, high = draw_bounds(rng)
    rows = draw_rows(rng, low, high)
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1000, 0.5))
    estimator = make(bounds=(low, high), ledger=ledger, delta=1e-6)
    estimator.set_params(**lengths(estimator, high, low))
    try:
        estimator.fit(rows)
    except ParameterError:
        assert ledger.history() == []
    else:
        assert Release.load(estimator.release_.save(tmp_path / "release.json")).domain.low == tuple(low)


@pytest.mark.parametrize("widths", [[1, 1, 1, 1, 1, 1e-22], [1, 1e-22], [1e100, 1], [1e-130, 1, 1e130]])
def test_grids_are_denoised_whatever_the_widths(widths):
    high = np.array(widths, dtype=np.float64)
    rows = draw_rows(np.random.default_rng(0), 0 * high, high)
    scale = "bounds" if high.max() == 1 else None  # wider bounds cannot be scaled
    model = GridKMeans(3, bounds=(0 * high, high), max_cells=4 ** len(high), epsilon=1, scale=scale).fit(rows)
    assert (model.cluster_centers_ >= 0).all()
    assert (model.cluster_centers_ <= high * (1 + 1e-12)).all()


@pytest.mark.parametrize("bounds", [(0, 1e100), ([0, -1e71], [1, 0])])
def test_covariances_too_large_for_a_release_are_refused_in_the_plan(bounds):
    with pytest.raises(ParameterError, match=r"`bounds` of .* must be at most 1e.70 in size"):
        DPMoG(2, bounds=bounds).plan(2)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("zeros", [0.9, *rarely(0.5, 0.95, 0.99, 0.999)])
def test_private_bounds_of_a_column_of_mostly_zeros(make, zeros):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 2))
    rows[:, 0] = np.where(rng.random(20_000) < zeros, 0, rng.lognormal(3, 1, 20_000))
    estimator = make(bounds="private", epsilon=1, delta=1e-6)
    estimator.set_params(**lengths(estimator, np.ones(2), -np.ones(2)))
    domain = estimator.fit(rows).release_.domain
    assert (domain.half_width > 1e-20).all()
