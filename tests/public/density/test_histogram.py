"""What a noisy histogram says about its own noise and its cells."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.domain import Grid
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.noise import discrete_gaussian, discrete_laplace
from sfumato.public.density.histogram import NoisyHistogram

GRID = Grid((0.0,), (1.0,), (8,))


def test_counts_of_cells():
    dense = NoisyHistogram(GRID, np.arange(8) - 2, "discrete Laplace", 1.0)
    sparse = NoisyHistogram(GRID, np.array([5, 9]), "discrete Laplace", 1.0, np.array([2, 7]), 5)
    nothing = NoisyHistogram(GRID, np.empty(0, dtype=int), "discrete Laplace", 1.0, np.empty(0, dtype=int), 5)
    asked = np.array([7, 0, 2, 2])
    assert dense.at(asked).tolist() == [5, -2, 0, 0]
    assert sparse.at(asked).tolist() == [9, 0, 5, 5]
    assert nothing.at(asked).tolist() == [0, 0, 0, 0]
    assert dense.is_dense
    assert not sparse.is_dense
    assert not nothing.is_dense


@pytest.mark.parametrize("scale", ["1", "3", "20"])
def test_variance_is_that_of_the_mechanisms(scale):
    for name, draw in (("discrete Laplace", discrete_laplace), ("discrete Gaussian", discrete_gaussian)):
        drawn = draw(Fraction(scale), 100_000, Entropy(0)).astype(float)
        stated = NoisyHistogram(GRID, np.zeros(8, dtype=int), name, float(Fraction(scale))).variance
        assert drawn.var() == pytest.approx(stated, rel=0.05)
