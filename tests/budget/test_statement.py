"""The statement is computed from what ran, and reads as a guarantee."""

import json
import math
import pickle
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from sfumato.budget import Budget, PrivacyStatement, Record, epsilon_at
from sfumato.budget.records import Sensitivity
from sfumato.domain import Unit
from sfumato.errors import ParameterError

LAPLACE = Record("rows", "discrete Laplace", Sensitivity(), Fraction(4))
GAUSSIAN = Record("sums", "discrete Gaussian", Sensitivity(5, 9, 3, 2), Fraction(10))
CHOICE = Record("splits", "exponential", Sensitivity(1, 1, 2, 1), Fraction(8))


def statement(*steps, budget, unit=None, seeded=False):
    return PrivacyStatement(budget, unit or Unit(), steps, seeded)


PURE = statement(LAPLACE, CHOICE, budget=Budget("1/2"))
ZCDP = statement(LAPLACE, GAUSSIAN, CHOICE, budget=Budget(rho=1), unit=Unit("person", 3), seeded=True)
APPROXIMATE = statement(LAPLACE, GAUSSIAN, budget=Budget(3, 1e-6))
BOUGHT = APPROXIMATE.after(PURE)
ALL = [PURE, ZCDP, APPROXIMATE, BOUGHT]


def test_pure_sums():
    assert (PURE.epsilon, PURE.delta, PURE.rho) == (0.5, 0.0, None)
    assert PURE.spent == Budget("1/2")


def test_zcdp_sums():
    assert ZCDP.rho == float(Fraction(1, 32) + Fraction(9, 200) + Fraction(1, 128))
    assert (ZCDP.epsilon, ZCDP.delta) == (None, 0.0)
    assert ZCDP.epsilon_at(1e-6) > ZCDP.epsilon_at(1e-3) > 0


def test_it_says_what_was_spent_and_not_what_was_promised():
    assert APPROXIMATE.epsilon < 3
    assert APPROXIMATE.epsilon == APPROXIMATE.epsilon_at(1e-6)
    assert statement(LAPLACE, budget=Budget(100)).epsilon == 0.25
    assert statement(LAPLACE, budget=Budget("1/10")).epsilon == 0.25  # and an overspent one, too


def test_promises_of_several_runs_are_added_up():
    """What a fit asks may depend on a purchase: tables of the laws that were chosen would prove too much."""
    fit, purchase = (statement(*[LAPLACE] * 20, budget=Budget(5, delta)) for delta in (1e-6, 1e-7))
    both = fit.after(purchase)
    assert both.n_runs == 2
    assert both.spent == both.budget == Budget(10, "11e-7")
    assert both.epsilon_at(1e-5) == 10.0
    assert both.epsilon_at(1e-6) == math.inf
    assert epsilon_at(both.steps, 1.1e-6) < 8  # by tables, which is not proved
    assert both.after(purchase).n_runs == 3
    assert both.attack_power(1e-5) == pytest.approx(math.exp(10) * 1e-5 + 1.1e-6)


def test_more_than_the_promises_of_several_runs_is_stated_too():
    forged = {**statement(LAPLACE, budget=Budget("1/10", 1e-9)).to_dict(), "n_runs": 2}
    assert PrivacyStatement.from_dict(forged).epsilon > 0.2


@pytest.mark.parametrize("budget", [Budget(5), Budget(rho=1)], ids=str)
def test_costs_of_several_runs_add_up_and_are_composed_without_tables(budget):
    one = statement(*[LAPLACE] * 20, budget=budget)
    both = one.after(one)
    whole = statement(*both.steps, budget=both.budget)
    assert both.spent == whole.spent
    assert whole.epsilon_at(1e-6) < both.epsilon_at(1e-6) < 1.2 * whole.epsilon_at(1e-6)
    assert whole.attack_power(0.01) < both.attack_power(0.01) < 1


@pytest.mark.parametrize("n_runs", [0, -1, "2", None, 1.5])
def test_the_number_of_runs_is_a_positive_integer(n_runs):
    with pytest.raises(ParameterError, match="`n_runs` must be a positive integer"):
        PrivacyStatement.from_dict(PURE.to_dict() | {"n_runs": n_runs})


def test_a_run_that_asked_nothing():
    for budget in (Budget(1), Budget(1, 1e-6), Budget(rho=1)):
        nothing = statement(budget=budget)
        assert (nothing.epsilon or 0) == (nothing.rho or 0) == 0
        assert "protecting one row" in str(nothing)


def test_words():
    assert "Differential privacy with epsilon=0.5, protecting one row." in str(PURE)
    assert "factor of at most 1.65." in str(PURE)
    assert "rows: discrete Laplace, scale 4 on sensitivity 1 (L1)" in str(PURE)
    assert "splits: exponential, scale 8 on sensitivity 2 (spread)" in str(PURE)
    assert "seeded" not in str(PURE)
    assert "except with probability 1e-06." in str(APPROXIMATE)
    assert str(ZCDP).startswith("seeded: do not publish\n")
    assert "one person (column 'person', at most 3 rows each)" in str(ZCDP)
    assert "sums: discrete Gaussian, scale 10 on sensitivity 3 (L2)" in str(ZCDP)
    assert "at delta 1e-06" in str(ZCDP)


@pytest.mark.parametrize("scale", ["1/3", "3", "17", "999", "12345"])
def test_odds_are_never_understated(scale):
    words = str(statement(Record("a", "discrete Laplace", Sensitivity(), Fraction(scale)), budget=Budget(1)))
    stated = float(words.split("at most ")[1].split(".\n")[0])
    assert math.exp(1 / float(Fraction(scale))) <= stated <= 1.01 * math.exp(1 / float(Fraction(scale)))


def test_no_privacy_is_not_called_some():
    words = str(
        statement(Record("a", "discrete Laplace", Sensitivity(), Fraction(1, 10**4)), budget=Budget(10**4))
    )
    assert "at most exp(10000)." in words


@pytest.mark.parametrize("one", ALL, ids=["pure", "zcdp", "approximate", "bought"])
def test_round_trips(one):
    text = json.dumps(one.to_dict(), allow_nan=False)
    assert PrivacyStatement.from_dict(json.loads(text)) == one
    assert pickle.loads(pickle.dumps(one)) == one
    assert hash(one) == hash(PrivacyStatement.from_dict(json.loads(text)))


def test_sums_in_a_file_are_not_believed():
    forged = {**PURE.to_dict(), "spent": {"epsilon": "1/1000"}, "statement": "perfectly private"}
    assert PrivacyStatement.from_dict(forged).epsilon == 0.5


DAMAGES = {
    "a step without a name": {"step": 5},
    "an unknown mechanism": {"mechanism": "none"},
    "no sensitivity": {"sensitivity": {"l1": 0}},
    "a sensitivity of text": {"sensitivity": {"l1": "1"}},
    "a sensitivity beyond numbers": {"sensitivity": {"l1": 10**400}},
    "no noise": {"scale": "0"},
    "noise beyond numbers": {"scale": "1e999999999"},
    "noise that cannot be drawn": {"scale": str(2**60)},
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_step_that_cannot_have_run(name):
    stated = PURE.to_dict()
    stated["steps"][0] |= DAMAGES[name]
    with pytest.raises(ParameterError, match="must"):
        PrivacyStatement.from_dict(stated)


def test_a_pure_budget_with_gaussian_noise_is_no_statement():
    stated = APPROXIMATE.to_dict() | {"budget": {"epsilon": "1"}}
    with pytest.raises(ParameterError, match="cannot pay for Gaussian noise"):
        PrivacyStatement.from_dict(stated)


@pytest.mark.parametrize("seeded", [None, 0, "false"])
def test_whether_there_was_a_seed_is_true_or_false(seeded):
    with pytest.raises(ParameterError, match="`seeded` must be true or false"):
        PrivacyStatement.from_dict(PURE.to_dict() | {"seeded": seeded})


@pytest.mark.parametrize("epsilon", ["1/3", "0.0123456", "1.2", "7", "25"])
def test_no_figure_reads_better_than_it_is(epsilon):
    exact = Fraction(epsilon)
    told = statement(replace(LAPLACE, scale=1 / exact), budget=Budget(exact))
    assert Fraction(repr(told.epsilon)) >= exact
    assert Fraction(re.search(r"epsilon=([\d.e+-]+),", str(told))[1]) >= exact
    assert Decimal(re.search(r"at most ([\d.e+]+)\.", str(told))[1]) >= Decimal(float(exact)).exp()
