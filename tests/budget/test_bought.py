"""What was bought follows its values into every statement, or the values are refused."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler

from sfumato import Ball, Budget, GridKMeans, Ledger, estimate_bounds, estimate_levels, suggest_max_rows
from sfumato.budget import PrivacyStatement, Record, Sensitivity
from sfumato.budget.bought import Bought, plain, purchases
from sfumato.domain import Unit
from sfumato.errors import ParameterError
from sfumato.projection import RandomProjection

ROWS = np.random.default_rng(0).normal([3.0, -40.0, 8.0], [0.3, 4.0, 1.0], size=(3000, 3))


def statement(epsilon):
    step = Record("step", "discrete Laplace", Sensitivity(), 1 / Fraction(epsilon))
    return PrivacyStatement(Budget(epsilon), Unit(), (step,), False)


HALF, THIRD = statement("1/2"), statement("1/3")
X, Y = Bought(2.0, (HALF,)), Bought(3.0, (THIRD,))


@pytest.fixture(scope="module")
def bounds():
    return estimate_bounds(ROWS, epsilon=0.5, random_state=0)


def stated(bounds, rows=ROWS, **parameters):
    return GridKMeans(3, epsilon=1, bounds=bounds, random_state=0, **parameters).fit(rows).privacy_.epsilon


def test_arithmetic_keeps_the_cost():
    assert [(X + 1).value, (1 - X).value, (X * 3).value, (np.float64(8) / X).value] == [3.0, -1.0, 6.0, 4.0]
    assert (-X).value == -2.0
    assert round(Bought(2.345, (HALF,)), 1).value == 2.3
    for result in (X + 1, 1 - X, np.float64(8) / X, -X, round(X, 1), max(X, 1.0)):
        assert purchases(result) == (HALF,)
    assert purchases(X * Y - X) == (HALF, THIRD)


def test_it_compares_and_prints_as_its_value():
    assert X == 2
    assert X < 3
    assert X >= 2
    assert Y > X
    assert hash(X) == hash(2.0)
    assert {X: 1}[2.0] == 1
    assert (repr(X), str(X), f"{X:.2f}", repr(Bought("a", ()))) == ("2.0", "2.0", "2.00", "'a'")
    assert bool(X)
    assert not Bought(0, (HALF,))


@pytest.mark.parametrize(
    "strip",
    [
        lambda: np.array([X, Y]),
        lambda: np.asarray((X, 1.0), dtype=float),
        lambda: np.ones(3) * X,
        lambda: X * np.ones(3),
        lambda: np.sqrt(X) and float(X),
        lambda: float(X),
        lambda: int(X),
        lambda: pd.Series([1.0, 2.0]) / X,
        lambda: MinMaxScaler().fit([(X, X), (Y, Y)]),
    ],
)
def test_what_would_lose_the_cost_is_refused(strip):
    with pytest.raises((ParameterError, TypeError), match=r"hide its cost|does not support ufuncs"):
        strip()


def test_purchases_count_once_and_by_identity():
    equal = statement("1/2")
    assert purchases(X, {"a": (X, Y)}, Ball(X, (Y, 1.0)), None, "text") == (HALF, THIRD)
    assert len(purchases(X, Bought(1.0, (equal,)))) == 2  # equal, but paid for twice
    assert purchases(*copy.deepcopy([X, X + 1])) == (HALF,)
    assert len(purchases(*pickle.loads(pickle.dumps([X, X + 1])))) == 1


def test_plain_values():
    public = {"x": (0, 1), "y": ["a"]}
    assert plain(public) is public
    assert plain({"x": (X, Y), "y": [1]}) == {"x": (2.0, 3.0), "y": [1]}
    assert type(plain((X,))[0]) is float
    assert plain(Ball(X, (Y, 1.0))) == Ball(2.0, (3.0, 1.0))


def test_bounds_follow_a_projection(tmp_path):
    """The release used to state epsilon 1 where the ledger had 1.5."""
    ledger = Ledger.create(tmp_path / "ledger.db", "rows", Budget(1.5), allow_seeded=True)
    bounds = estimate_bounds(ROWS, epsilon=0.5, ledger=ledger, random_state=0)
    projection = RandomProjection(bounds=bounds).fit(ROWS)
    epsilon = stated(projection.bounds_, projection.transform(ROWS), ledger=ledger)
    assert epsilon == ledger.spent().epsilon == 1.5
    public = RandomProjection(bounds=bounds.value).fit(ROWS)
    assert stated(public.bounds_, public.transform(ROWS)) == 1
    with pytest.raises(ParameterError, match=r"cost epsilon=0.5\. `bounds` must carry this"):
        stated(public.bounds_, projection.transform(ROWS))


def test_bounds_follow_tuples_single_numbers_and_factors(bounds):
    low, high = bounds
    for same in (bounds, tuple(bounds), [low, high], (bounds.low, bounds.high), (low, (100.0,) * 3)):
        assert stated(same) == 1.5
    assert stated((min(low), max(high))) == 1.5
    assert stated((tuple(x / 1.0 - 1 for x in low), tuple(1 + x for x in high)), ROWS) == 1.5
    assert stated(Ball(max(high) - min(low), 0.0)) == 1.5
    frame = pd.DataFrame(ROWS[:, :2], columns=["x", "y"])
    assert stated({"x": (low[0], high[0]), "y": (-100, 100)}, frame) == 1.5
    assert stated(bounds.value) == 1


def test_copies_of_an_estimator_count_a_purchase_once(bounds):
    model = GridKMeans(3, bounds=bounds, random_state=0)
    for copied in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert copied.fit(ROWS).privacy_.epsilon == 1.5


def test_an_array_of_bounds_is_refused(bounds):
    for strip in (np.array, lambda b: MinMaxScaler().fit([b.low, b.high]), lambda b: ROWS / b.high):
        with pytest.raises(ParameterError, match="hide its cost"):
            strip(bounds)


def test_caps_levels_and_bounds_add_up_each_once():
    people = pd.DataFrame(ROWS[:, :1], columns=["x"]).assign(
        who=np.arange(len(ROWS)) // 3, job=np.where(np.arange(len(ROWS)) % 2, "baker", "judge")
    )
    shared = {"delta": 1e-6, "random_state": 0}
    cap = suggest_max_rows(people, "who", epsilon=0.25, **shared)
    shared |= {"unit": "who", "max_rows_per_unit": cap.max_rows}
    bounds = estimate_bounds(people, ["x"], epsilon=0.5, **shared)
    levels = estimate_levels(people, ["job"], epsilon=2.0, **shared)["job"]
    both = {"x": (bounds.low[0], bounds.high[0]), "job": list(levels)}
    privacy = GridKMeans(3, bounds=both, epsilon=1, **shared).fit(people).privacy_
    assert privacy.budget == Budget(0.25 + 0.5 + 2 + 1, 4e-6)
    only_cap = GridKMeans(3, bounds={"x": (0, 5)}, epsilon=1, **shared).fit(people).privacy_
    assert only_cap.budget == Budget(1.25, 2e-6)
    of_cap = GridKMeans(
        3, bounds={"x": (bounds.low[0], 9.0)}, epsilon=1, **(shared | {"max_rows_per_unit": 1})
    )
    assert of_cap.fit(people).privacy_.budget == Budget(1.75, 3e-6)  # the bounds depend on the cap
