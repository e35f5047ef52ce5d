"""Recommendations: functions of public numbers."""

import numpy as np
import pytest

from sfumato import DPM, GridKMeans, LloydKMeans, LocalSearchKMeans, PrivateKMeans, recommend
from sfumato.errors import ParameterError
from sfumato.planner import budget_for, forecast, plan


@pytest.mark.parametrize(
    ("numbers", "method"),
    [
        ({"n": 1_600, "d": 2, "k": 8}, GridKMeans),
        ({"n": 10**9, "d": 2, "k": 8}, GridKMeans),
        ({"n": 1_600, "d": 6, "k": 8}, GridKMeans),
        ({"n": 100_000, "d": 6, "k": 8}, DPM),
        ({"n": 100_000, "d": 6, "k": 8, "epsilon": 0.01}, GridKMeans),
        ({"n": 100_000, "d": 20, "k": 8}, DPM),
        ({"n": 100_000, "d": 20, "k": 8, "epsilon": 0.01}, LloydKMeans),
        ({"n": 100_000, "d": 20, "k": 8, "rho": 0.5}, PrivateKMeans),
        ({"n": 100_000, "d": 6, "k": 8, "delta": 1e-6}, PrivateKMeans),
        ({"n": 1_600, "d": 6, "k": 8, "delta": 1e-6}, PrivateKMeans),
        ({"n": 1_600, "d": 4, "k": 8, "delta": 1e-6}, GridKMeans),
        ({"n": 100_000, "d": 2, "k": 8, "delta": 1e-6}, PrivateKMeans),
        ({"n": 10**7, "d": 20, "k": 5_000, "delta": 1e-6}, LloydKMeans),
        ({"n": 100, "d": 1000, "k": 10}, LloydKMeans),
        ({"n": 1_600, "d": 2}, PrivateKMeans),
        ({"n": 1_600, "d": 3}, DPM),
        ({"n": 10**6, "d": 300, "epsilon": 1, "delta": 1e-9}, PrivateKMeans),
    ],
)
def test_what_is_recommended(numbers, method):
    found = recommend(**numbers)
    assert found.method is method
    assert method.__name__ in str(found)
    assert found.reason in str(found)


@pytest.mark.parametrize("k", [None, "auto", 8])
@pytest.mark.parametrize("budget", [{}, {"delta": 1e-6}, {"epsilon": None, "rho": 0.5}])
@pytest.mark.parametrize("d", [2, 6, 40])
def test_without_a_number_of_rows_there_are_enough(d, k, budget):
    found, large = recommend(d=d, k=k, **budget), recommend(n=10**12, d=d, k=k, **budget)
    assert (found.method, found.parameters) == (large.method, large.parameters)


def test_more_rows_count_like_more_budget():
    for n, epsilon in ((10_000, 1.0), (100_000, 0.1), (1_000_000, 0.01)):
        assert recommend(n, 20, 10, epsilon).method is recommend(10_000, 20, 10, 1.0).method


@pytest.mark.parametrize(
    ("d", "k", "budget"),
    [(2, 3, {"rho": 0.3}), (20, 3, {"epsilon": 1.0, "delta": 1e-6}), (20, None, {"epsilon": 2.0})],
)
def test_the_estimator_that_is_made_runs_with_the_same_budget(d, k, budget):
    made = recommend(n=500, d=d, k=k, **budget).make(bounds=(-1, 1), random_state=0)
    assert made.n_clusters == k
    rows = np.random.default_rng(0).uniform(-1, 1, size=(500, d))
    promised = made.fit(rows).privacy_.budget
    for name, value in budget.items():
        assert float(getattr(promised, name)) == pytest.approx(value)


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ({"n": 0}, "n"),
        ({"n": "many"}, "n"),
        ({"d": 0}, "d"),
        ({"d": 2.5}, "d"),
        ({"k": 0}, "k"),
        ({"epsilon": -1}, "epsilon"),
        ({"rho": 1.0, "epsilon": 2.0}, "rho"),
        ({"rho": 1.0, "epsilon": 1.0}, "rho"),
    ],
)
def test_bad_numbers(numbers, name):
    with pytest.raises(ParameterError, match=f"`{name}`"):
        recommend(**{"n": 1000, "d": 3, "k": 4, **numbers})


@pytest.mark.parametrize(
    "numbers",
    [
        {"n": 2_000, "d": 2, "k": 8},
        {"n": 100_000, "d": 20, "k": 8},
        {"n": 3_000, "d": 20, "k": 10, "epsilon": 0.5},
        {"n": 100_000, "d": 4, "k": 5, "delta": 1e-6},
        {"n": 100_000, "d": 4, "rho": 0.1},
    ],
)
def test_a_plan_is_for_the_method_that_is_recommended(numbers):
    found = recommend(**numbers)
    planned = plan(**numbers)
    assert planned.method == found.method.__name__
    assert planned == forecast(found.make(bounds=(-1, 1)), numbers["n"], numbers["d"], k=numbers.get("k"))


MIXED = {
    "age": (0, 100),
    "income": (0, 200_000),
    "job": [f"job {i}" for i in range(20)],
    "at": {"cycle": "day"},
}


def test_the_least_budget_is_for_the_method_of_its_kind_of_budget():
    numbers = {"n": 50_000, "d": 6, "k": 5}
    assert budget_for(**numbers, size_error=100).method == "DPM"
    assert budget_for(**numbers, size_error=100, delta=1e-6).method == "PrivateKMeans"
    assert budget_for(**numbers, size_error=100, in_rho=True).method == "PrivateKMeans"


def test_bounds_say_how_many_columns_there_are():
    """A category has a coordinate for each level and one for others, a cycle has two."""
    numbers = {"n": 5_000, "k": 8}
    found = recommend(**numbers, bounds=MIXED)
    assert found == recommend(**numbers, d=4, bounds=MIXED) == recommend(**numbers, d=25, bounds=MIXED)
    assert found.method is DPM  # levels part the rows
    numeric = recommend(**numbers, bounds={"age": (0, 9), "income": (0, 99), "hours": (0, 9)})
    assert numeric.method is LocalSearchKMeans  # clusters touch
    assert plan(**numbers, bounds=MIXED).method == recommend(**numbers, bounds=MIXED).method.__name__
    assert recommend(**numbers, delta=1e-6, bounds=MIXED).method is PrivateKMeans
    assert recommend(**numbers, bounds=([0, 0], [1, 2])) == recommend(**numbers, d=2)
    for call in (recommend, plan):
        with pytest.raises(ParameterError, match="`d` must be 4, the number of columns in `bounds`, got 3"):
            call(**numbers, d=3, bounds=MIXED)
        with pytest.raises(ParameterError, match="`d` must be given"):
            call(**numbers)
    private = {"age": (0, 100), "job": {"levels": "private"}}
    assert recommend(**numbers, bounds=private) == recommend(**numbers, d=30, bounds=private)
    assert recommend(**numbers, bounds={"x": (0, 1), "y": (0, 1)}) == recommend(**numbers, d=2)
