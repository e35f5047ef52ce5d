"""Rows that were transformed at a cost are fitted only if the release will state it."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato import Ball, Budget
from sfumato.budget import PrivacyStatement, Record, Sensitivity
from sfumato.budget.bought import Bought
from sfumato.budget.paid_rows import PaidRows, check_cost_follows, paid_rows
from sfumato.domain import Unit
from sfumato.errors import ParameterError


def statement(epsilon):
    step = Record("step", "discrete Laplace", Sensitivity(), 1 / Fraction(epsilon))
    return PrivacyStatement(Budget(epsilon), Unit(), (step,), False)


HALF, THIRD = statement("1/2"), statement("1/3")
ROWS = np.arange(6.0).reshape(3, 2)


def test_rows_that_cost_nothing_stay_as_they_are():
    assert paid_rows(ROWS, ()) is ROWS
    check_cost_follows(ROWS, [None])
    check_cost_follows("rows.csv", [])


def test_slices_and_arithmetic_remember_the_cost():
    paid = paid_rows(ROWS, (HALF,))
    assert (np.asarray(paid) == ROWS).all()
    for derived in (paid[1:], paid * 2, np.abs(paid), paid.copy(), paid[:, 0], paid.astype(np.float32)):
        assert isinstance(derived, PaidRows)
        assert derived.privacy == (HALF,)
    assert type(np.asarray(paid)) is np.ndarray
    assert ROWS.view(PaidRows).privacy == ()


def test_each_cost_must_be_carried():
    paid = paid_rows(ROWS, (HALF, THIRD))
    check_cost_follows(paid, [Ball(Bought(1.0, (HALF,)), (Bought(0.0, (THIRD,)),))])
    for carried in ([], [(0, 1)], [Ball(Bought(1.0, (HALF,)))], [Bought(1.0, (statement("1/4"), THIRD))]):
        with pytest.raises(ParameterError, match=r"must carry this into the release: use the `bounds_`"):
            check_cost_follows(paid, carried)


def test_an_equal_promise_counts_once_for_each_purchase():
    check_cost_follows(paid_rows(ROWS, (HALF,)), [Bought(1.0, (statement("1/2"),))])
    twice = paid_rows(ROWS, (HALF, statement("1/2")))
    with pytest.raises(ParameterError, match=r"epsilon=0\.5"):
        check_cost_follows(twice, [Bought(1.0, (HALF,))])
    check_cost_follows(twice, [Bought(1.0, (HALF, statement("1/2")))])
