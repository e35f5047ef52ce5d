"""What one use of a mechanism costs, and the size of its noise."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.budget import Record, Sensitivity

ONE = Sensitivity()
MECHANISMS = ["discrete Laplace", "discrete Gaussian", "exponential", "permute-and-flip"]


def record(mechanism, scale, sensitivity=ONE):
    return Record("step", mechanism, sensitivity, Fraction(scale))


def laplace(scale):
    return record("discrete Laplace", scale)


def gaussian(sigma):
    return record("discrete Gaussian", sigma)


def test_costs_of_single_records():
    sensitivity = Sensitivity(l1=6, l2_squared=10, spread=4, coordinates=3)
    found = {m: record(m, 2, sensitivity) for m in MECHANISMS}
    assert [found[m].epsilon for m in MECHANISMS] == [3, None, 2, 2]
    assert [found[m].rho for m in MECHANISMS] == [Fraction(9, 2), Fraction(5, 4), Fraction(1, 2), 2]
    assert all(isinstance(found[m].rho, Fraction) for m in MECHANISMS)


@pytest.mark.parametrize(
    "one", [laplace("1/5"), laplace(1), laplace(30), gaussian("1/3"), gaussian(1), gaussian(30)]
)
def test_noise_std(one):
    scale = float(one.scale)
    x = np.arange(-math.ceil(60 * scale) - 60, math.ceil(60 * scale) + 61, dtype=np.float64)
    mass = np.exp(-np.abs(x) / scale if one.mechanism == "discrete Laplace" else -(x**2) / (2 * scale**2))
    assert one.noise_std == pytest.approx(math.sqrt(float(mass @ x**2) / float(mass.sum())), rel=1e-9)


def test_noise_that_is_nearly_always_zero():
    assert laplace("1/100000").noise_std == 0
    assert gaussian("1/100000").noise_std == 0
    assert record("exponential", 7).noise_std == 7
