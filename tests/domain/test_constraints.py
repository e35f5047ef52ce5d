"""Checks of parameters: what passes, what is refused, and with which words."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.cluster.shared.checks import MOST_CLUSTERS, check_flag, check_positive, check_whole
from sfumato.errors import ParameterError


@pytest.mark.parametrize("value", [1, 2, 10**18, np.int64(3), np.uint8(7)])
def test_whole_numbers_pass(value):
    check_whole("k", value)


@pytest.mark.parametrize(
    "value",
    [0, -1, 10**18 + 1, 1.0, 1.5, np.float64(2), Fraction(3), np.nan, np.inf, True, False, "3", None, [3]],
    ids=repr,
)
def test_other_things_are_not_whole_numbers(value):
    with pytest.raises(ParameterError) as error:
        check_whole("n_clusters", value)
    assert str(error.value) == f"`n_clusters` must be an integer >= 1 and at most 1e+18, got {value!r}"


def test_the_limit_is_part_of_the_message():
    check_whole("n_clusters", MOST_CLUSTERS, most=MOST_CLUSTERS)
    with pytest.raises(ParameterError, match=r"`depth` must be an integer >= 1 and at most 12, got 13$"):
        check_whole("depth", 13, most=12)
    with pytest.raises(ParameterError, match=r"at most 1e\+06, got 1000001$"):
        check_whole("n_clusters", MOST_CLUSTERS + 1, most=MOST_CLUSTERS)


@pytest.mark.parametrize(
    "value", [1, 0.5, 5e-324, 1e300, Fraction(1, 3), np.float32(0.1), np.float64(3), np.int64(2)]
)
def test_positive_numbers_pass(value):
    check_positive("alpha", value)


@pytest.mark.parametrize(
    "value",
    [0, 0.0, -0.0, -1e-300, -1, np.nan, np.inf, -np.inf, True, False, np.True_, 1j, "1", None, [1.0]],
    ids=repr,
)
def test_other_things_are_not_positive_numbers(value):
    with pytest.raises(ParameterError) as error:
        check_positive("alpha", value)
    assert str(error.value) == f"`alpha` must be a positive number, got {value!r}"


@pytest.mark.parametrize("value", [True, False])
def test_flags_pass(value):
    check_flag("refine", value)


@pytest.mark.parametrize("value", [0, 1, None, "yes", "", 1.0, [], np.bool_(0)], ids=repr)
def test_other_things_are_not_flags(value):
    with pytest.raises(ParameterError) as error:
        check_flag("refine", value)
    assert str(error.value) == f"`refine` must be True or False, got {value!r}"
