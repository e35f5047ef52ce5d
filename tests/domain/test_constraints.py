"""Checks of parameters: what passes, what is refused, and with which words."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.domain.constraints import auto_or, between, flag, none_or, one_of, positive, whole
from sfumato.errors import ParameterError


@pytest.mark.parametrize("value", [1, 2, 10**18, np.int64(3), np.uint8(7)])
def test_whole_numbers_pass(value):
    whole()("k", value)


@pytest.mark.parametrize(
    "value",
    [0, -1, 10**18 + 1, 1.0, 1.5, np.float64(2), Fraction(3), np.nan, np.inf, True, False, "3", None, [3]],
    ids=repr,
)
def test_other_things_are_not_whole_numbers(value):
    with pytest.raises(ParameterError) as error:
        whole()("n_clusters", value)
    assert str(error.value) == f"`n_clusters` must be an integer >= 1 and at most 1e+18, got {value!r}"


def test_the_limit_is_part_of_the_message():
    whole(10**6)("n_clusters", 10**6)
    with pytest.raises(ParameterError, match=r"`depth` must be an integer >= 1 and at most 12, got 13$"):
        whole(12)("depth", 13)
    with pytest.raises(ParameterError, match=r"at most 1e\+06, got 1000001$"):
        whole(10**6)("n_clusters", 10**6 + 1)


@pytest.mark.parametrize(
    "value", [1, 0.5, 5e-324, 1e300, Fraction(1, 3), np.float32(0.1), np.float64(3), np.int64(2)]
)
def test_positive_numbers_pass(value):
    positive()("alpha", value)


@pytest.mark.parametrize(
    "value",
    [0, 0.0, -0.0, -1e-300, -1, np.nan, np.inf, -np.inf, True, False, np.True_, 1j, "1", None, [1.0]],
    ids=repr,
)
def test_other_things_are_not_positive_numbers(value):
    with pytest.raises(ParameterError) as error:
        positive()("alpha", value)
    assert str(error.value) == f"`alpha` must be a positive number, got {value!r}"


@pytest.mark.parametrize("value", [True, False])
def test_flags_pass(value):
    flag("refine", value)


@pytest.mark.parametrize("value", [0, 1, None, "yes", "", 1.0, [], np.bool_(0)], ids=repr)
def test_other_things_are_not_flags(value):
    with pytest.raises(ParameterError) as error:
        flag("refine", value)
    assert str(error.value) == f"`refine` must be True or False, got {value!r}"


def refused(check, value):
    with pytest.raises(ParameterError) as error:
        check("it", value)
    return str(error.value)


def test_positive_numbers_within_limits():
    check = positive(0.5, 2)
    check("it", 0.5)
    check("it", 2)
    for value in (0.4, 2.1, 10**400):
        assert refused(check, value) == f"`it` must be a positive number from 0.5 to 2, got {value!r}"


def test_numbers_between_limits():
    for value in (0, 0.5, 1):
        between(0, 1)("it", value)
    assert refused(between(0, 1), 1.5) == "`it` must be a number from 0 to 1, got 1.5"
    open_ends = between(0, 1, open_low=True, open_high=True)
    open_ends("it", Fraction(1, 2))
    for value in (0, 1, np.nan, True, "0.5", None):
        assert refused(open_ends, value) == f"`it` must be a number between 0 and 1, got {value!r}"


def test_choices():
    one_of("hard", "soft")("it", "soft")
    for value in ("auto", "", None, ["hard"], np.array(["hard", "soft"])):
        assert refused(one_of("hard", "soft"), value).startswith("`it` must be one of hard, soft, got ")


def test_alternatives_to_a_number():
    auto_or(whole())("it", "auto")
    auto_or(whole())("it", 3)
    none_or(whole())("it", None)
    none_or(whole())("it", 3)
    for check, value in ((auto_or(whole()), None), (none_or(whole()), "auto"), (auto_or(whole()), "best")):
        assert "an integer >= 1" in refused(check, value)
