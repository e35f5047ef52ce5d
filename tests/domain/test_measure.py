"""Measured units: a map there and back, for points and for lengths."""

import math

import numpy as np
import pytest

from sfumato.domain import Domain, Measure
from sfumato.errors import ParameterError

MEASURE = Measure((17.0, -1e4, 0.0, 0.0, 0.0), (73.0, 1.01e6, 2**0.5, 2**0.5, 2**0.5))


def test_there_and_back():
    rng = np.random.default_rng(0)
    points = np.column_stack(
        [rng.uniform(17, 90, 50), rng.uniform(-1e4, 1e6, 50), rng.dirichlet([1] * 3, 50)]
    )
    assert MEASURE.of(points)[:, 0].max() <= 1
    assert MEASURE.inverse.of(MEASURE.of(points)) == pytest.approx(points, rel=1e-12, abs=1e-9)
    assert MEASURE.inverse.lengths(MEASURE.lengths(points)) == pytest.approx(points)
    assert MEASURE.of(points + points) - MEASURE.of(points) == pytest.approx(MEASURE.lengths(points))


def test_a_measure_as_they_are_changes_not_a_bit():
    points = np.random.default_rng(0).normal(size=(5, 2))
    assert Measure().of(points) is points
    assert Measure().lengths(points) is points


@pytest.mark.parametrize(
    "measure",
    [
        Measure((0.0,), (1.0, 2.0)),
        Measure((0.0,), (0.0,)),
        Measure((0.0,), (-1.0,)),
        Measure((math.nan,), (1.0,)),
        Measure((0.0,), (math.inf,)),
    ],
)
def test_measures_of_a_damaged_file(measure):
    with pytest.raises(ParameterError, match="as many positive steps"):
        measure.check()


def test_a_measure_must_have_as_many_steps_as_there_are_columns():
    with pytest.raises(ParameterError, match="a measure must have 2 steps, got 1"):
        Domain((0.0, 0.0), (1.0, 1.0), measure=Measure((0.0,), (2.0,)))
