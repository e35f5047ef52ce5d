"""Steps with a threshold: their delta is priced, recorded, summed, and never above the promise."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato.budget import Budget, Plan, PrivacyStatement, Record, Step, calibrate
from sfumato.budget.costs import _plain_epsilon_at, epsilon_at, pure_epsilon
from sfumato.budget.plan import composed
from sfumato.budget.records import Sensitivity
from sfumato.domain import Unit
from sfumato.errors import ParameterError, PlanError

TWO_COLUMNS = Sensitivity(l1=2, l2_squared=2, spread=1, coordinates=2)
LEVELS = Step("levels", "1/10", sensitivity=TWO_COLUMNS, threshold=True)
PLANS = {
    "alone": Plan(replace(LEVELS, share=1)),
    "and a count": Plan(LEVELS, Step("rows", "9/10")),
    "and many": Plan(LEVELS, Step("rows", "1/10"), Step("sums", "8/10", 5, Sensitivity(3, 3, 1, 3))),
    "twice": Plan(LEVELS, replace(LEVELS, name="more"), Step("choice", "8/10", 3, selection=True)),
}
BUDGETS = [Budget(e, d) for e in ("0.01", "1", "10") for d in ("1e-10", "1e-6", "0.05")]


def exact_total(records, budget):
    """Basic composition of the thresholds, and the rest by itself: epsilon and delta."""
    shown = [record for record in records if record.delta]
    others = [record for record in records if not record.delta]
    delta = sum(record.delta for record in shown)
    epsilon = sum(Fraction(record.sensitivity.l1) / record.scale for record in shown)
    rest = epsilon_at(others, float(budget.delta - delta)) if others else 0.0
    return float(epsilon) + rest, delta


@pytest.mark.parametrize("max_rows", [1, 7])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("name", PLANS)
def test_recorded_and_summed_is_what_was_promised(name, budget, max_rows):
    plan = calibrate(PLANS[name], budget, max_rows)
    epsilon, delta = exact_total(plan.records(), budget)
    assert delta == budget.delta * (1 if name == "alone" else Fraction(1, 2))
    # Where noise is just too coarse for the law of continuous noise, less is spent: 0.89 of 1 at delta 0.05.
    least = 0.999 if budget != Budget(1, "0.05") else 0.85
    assert least * float(budget.epsilon) <= epsilon <= float(budget.epsilon) * (1 + 1e-9)
    assert least * float(budget.epsilon) <= float(plan.cost().epsilon)
    assert plan.cost() <= budget
    assert [priced.step for priced in plan.steps] == list(PLANS[name].steps)


def test_the_price_of_a_threshold_does_not_depend_on_the_steps_after_it():
    first = {name: calibrate(plan, Budget(1, 1e-6)).steps[0] for name, plan in PLANS.items()}
    assert first["and a count"] == first["and many"]


def test_a_person_counts_once_however_many_rows():
    one, many = (calibrate(PLANS["and a count"], Budget(1, 1e-6), rows) for rows in (1, 9))
    assert one.records()[0] == many.records()[0]
    assert many.records()[1].sensitivity.l1 == 9


@pytest.mark.parametrize("budget", [Budget(1), Budget(rho=1)], ids=str)
def test_delta_is_needed(budget):
    with pytest.raises(ParameterError, match="need a budget with `epsilon` and `delta`"):
        calibrate(PLANS["and a count"], budget)


def test_a_threshold_has_no_pure_cost_and_none_in_rho():
    (record,) = calibrate(PLANS["alone"], Budget(1, 1e-6)).records()
    assert pure_epsilon([record]) is None
    for budget in (Budget(1), Budget(rho=1)):
        with pytest.raises(PlanError, match="threshold"):
            composed([record], budget)


def test_no_epsilon_below_the_delta_of_the_thresholds():
    record = Record("levels", "discrete Laplace", Sensitivity(), Fraction(4), Fraction(1, 10**6))
    plain = Record("rows", "discrete Laplace", Sensitivity(), Fraction(2))
    assert epsilon_at([record], 9.9e-7) == math.inf
    assert epsilon_at([record], Fraction(1, 10**6)) == 0.25
    assert epsilon_at([record, plain], Fraction(1, 10**6)) == 0.75
    assert epsilon_at([record, record, plain], 1.9e-6) == math.inf


def test_statement_and_file():
    plan = calibrate(PLANS["and many"], Budget(1, 1e-6))
    statement = PrivacyStatement(plan.budget, Unit(), plan.records(), False)
    assert statement.spent == plan.budget
    assert "threshold at delta 5e-07" in str(statement)
    assert "delta 5e-07" in str(plan)
    written = json.loads(json.dumps(statement.to_dict()))
    assert PrivacyStatement.from_dict(written) == statement
    assert ["delta" in step for step in written["steps"]] == [True] + [False] * 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": "1"}, "a delta below 1"),
        ({"delta": "-1/2"}, "a delta below 1"),
        ({"mechanism": "exponential"}, "must have additive noise"),
        ({"delta": "1e-5"}, "must fit into delta"),
    ],
)
def test_files_that_cannot_be(change, message):
    plan = calibrate(PLANS["alone"], Budget(1, 1e-6))
    written = PrivacyStatement(plan.budget, Unit(), plan.records(), False).to_dict()
    written["steps"][0] |= change
    with pytest.raises(ParameterError, match=message):
        PrivacyStatement.from_dict(written)


def test_it_adds_to_a_pure_fit_and_not_to_one_in_rho():
    plan = calibrate(PLANS["alone"], Budget("0.1", 1e-6))
    bought = PrivacyStatement(plan.budget, Unit(), plan.records(), False)
    pure = calibrate(Plan(Step("rows", 1)), Budget(1))
    total = PrivacyStatement(pure.budget, Unit(), pure.records(), False).after(bought)
    assert total.spent == total.budget == Budget("1.1", 1e-6)
    with pytest.raises(ParameterError, match="delta"):
        PrivacyStatement(Budget(rho=1), Unit(), (), False).after(bought)


TERMS = Step("terms", "2/5", sensitivity=Sensitivity(32, 32, 6, 32), threshold=True, joint=True)
JOINT = Plan(TERMS, Step("people", "1/20"), Step("counts", "11/20", sensitivity=Sensitivity(9, 9, 1, 9)))


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_a_joint_threshold_is_composed_with_what_follows(budget):
    plan = calibrate(JOINT, budget)
    records = plan.records()
    assert [bool(record.delta) for record in records] == [True, False, False]
    assert records[0].mechanism == "discrete Gaussian"
    assert records[0].delta == budget.delta / 2
    noise = [replace(record, delta=Fraction(0)) for record in records]
    alone = _plain_epsilon_at(noise, float(budget.delta / 2), 1e-4, smooth=False)
    assert 0.999 * float(budget.epsilon) <= alone <= float(budget.epsilon) * (1 + 1e-6)
    assert plan.cost() <= budget
    assert math.isinf(epsilon_at(records, budget.delta / 3))


def test_a_joint_threshold_adds_to_levels_and_to_a_fit():
    levels, terms = (calibrate(p, Budget(1, 1e-6)) for p in (PLANS["and a count"], JOINT))
    both = (*levels.records(), *terms.records())
    together = epsilon_at(both, 2e-6)
    assert together <= 2 * (1 + 1e-6)
    assert together >= 1
    statement = PrivacyStatement(Budget(2, 2e-6), Unit(), both, False)
    assert PrivacyStatement.from_dict(json.loads(json.dumps(statement.to_dict()))) == statement


@pytest.mark.parametrize("budget", [Budget(1), Budget(rho=1)], ids=str)
def test_joint_thresholds_need_delta(budget):
    with pytest.raises(ParameterError, match="terms that are not public need a budget with `epsilon` and"):
        calibrate(JOINT, budget)
