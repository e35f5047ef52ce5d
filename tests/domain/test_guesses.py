"""Guesses of the nearest centre: whatever is guessed, the centre found is that of a full search."""

import numpy as np
import pytest

from sfumato.domain import guesses, walks
from sfumato.domain.guesses import guesses_of
from sfumato.domain.partitions import GUESSED_CENTERS, GUESSED_ROWS, Voronoi

K = GUESSED_CENTERS + 3


def near_borders(centers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows at centres, half way between two, one rounding beside it, and anywhere between."""
    a, b = centers[rng.integers(len(centers), size=(2, 400))]
    middle = a / 2 + b / 2
    beside = np.nextafter(middle, rng.choice([-np.inf, np.inf], size=middle.shape))
    return np.concatenate([centers, middle, beside, a + rng.uniform(0, 1, (400, 1)) * (b - a)])


@pytest.mark.parametrize("n_features", [1, 2, 3, 5, 17])
@pytest.mark.parametrize("scale", [1e-170, 1e-100, 1.0, 1e130])
@pytest.mark.parametrize("shift", [0.0, 1e3, -1e9])
def test_what_is_sure_is_what_a_full_search_finds(n_features, scale, shift):
    rng = np.random.default_rng(n_features)
    centers = scale * (shift + rng.integers(-20, 21, size=(K, n_features)))  # with ties, and some twice
    cells = Voronoi(centers)
    rows = near_borders(centers, rng)
    found = guesses_of(centers, cells._origin).index(rows)
    if found is not None:
        assert (found == cells._searched(rows))[found >= 0].all()
    assert (cells.index(rows) == cells._searched(rows)).all()


@pytest.mark.parametrize("n_features", [2, 10, 100])
def test_most_rows_of_clusters_that_are_apart_are_sure(n_features):
    rng = np.random.default_rng(0)
    centers = rng.uniform(-100, 100, size=(K, n_features))
    rows = centers[rng.integers(K, size=3000)] + rng.normal(size=(3000, n_features))
    cells = Voronoi(centers)
    found = guesses_of(centers, cells._origin).index(rows)
    assert (found >= 0).mean() > 0.8
    assert (cells.index(rows) == cells._searched(rows)).all()


def test_it_gives_up_where_rows_are_between_centres():
    rng = np.random.default_rng(0)
    centers, rows = rng.normal(size=(K, 10)), rng.normal(size=(1000, 10))
    cells = Voronoi(centers)
    assert guesses_of(centers, cells._origin).index(rows) is None
    assert (cells.index(rows) == cells._searched(rows)).all()


def test_nothing_is_sure_of_equal_centres():
    found = guesses_of(np.ones((K, 3)), np.ones(3))
    assert (found.limits == -1).all()
    assert found.index(np.ones((GUESSED_ROWS * K, 3))) is None


def test_each_centre_has_one_leaf():
    found = guesses_of(np.random.default_rng(0).normal(size=(K, 3)).round(), np.zeros(3))
    steps, node_centers = found._tree
    assert sorted(node_centers[steps.n_inner :]) == list(range(K))
    assert steps.depth < 20


def test_kernels_without_the_compiler(monkeypatch):
    rng = np.random.default_rng(0)
    centers = rng.uniform(-100, 100, size=(K, 6))
    rows = np.repeat(centers, 3, axis=0) + rng.normal(size=(3 * K, 6))
    expected = Voronoi(centers).index(rows)
    monkeypatch.setattr(walks, "take_steps", walks.take_steps.py_func)
    for kernel in ("take_steps", "_square", "_fill_sure", "_fill_nearest_squares"):
        monkeypatch.setattr(guesses, kernel, getattr(guesses, kernel).py_func)
    assert (Voronoi(centers).index(rows) == expected).all()
