"""Plans: steps, shares and prices."""

from fractions import Fraction

import pytest

from sfumato.budget import Budget, Plan, Record, Step, calibrate, composed
from sfumato.budget.records import Sensitivity
from sfumato.errors import ParameterError, PlanError

PLAN = Plan(
    Step("rows", share=0.1), Step("grid", share=0.4, repeats=2), Step("best", share=0.5, selection=True)
)


def test_shares_are_exact_decimals():
    assert Step("a", share=0.1).share == Fraction(1, 10)
    assert Step("a", share="1/3").share == Fraction(1, 3)
    assert Step("a", share=0.3, repeats=3).share_per_ask == Fraction(1, 10)
    Plan(*[Step(str(i), share=0.1) for i in range(10)])  # ten tenths are one


@pytest.mark.parametrize("share", [0, -0.1, 1.5, "x", None, float("nan"), True])
def test_bad_shares(share):
    with pytest.raises(ParameterError, match="share"):
        Step("a", share=share)


@pytest.mark.parametrize("repeats", [0, -1])
def test_bad_repeats(repeats):
    with pytest.raises(ParameterError, match="`repeats` of step 'a'"):
        Step("a", share=1, repeats=repeats)


@pytest.mark.parametrize(
    ("steps", "word"),
    [
        ((), "distinct names"),
        ((Step("a", share="1/2"), Step("a", share="1/2")), "distinct names"),
        ((Step("a", share="1/2"),), "sum to 1"),
        ((Step("a", share="2/3"), Step("b", share="2/3")), "sum to 1"),
        ((Step("a", share=0.3), Step("b", share=0.6999999999999)), "sum to 1"),
    ],
)
def test_bad_plans(steps, word):
    with pytest.raises(ParameterError, match=word):
        Plan(*steps)


def test_plans_are_values():
    again = Plan(
        Step("rows", share=0.1), Step("grid", share=0.4, repeats=2), Step("best", share=0.5, selection=True)
    )
    assert again == PLAN
    assert hash(again) == hash(PLAN)
    assert calibrate(again, Budget(1)) is calibrate(PLAN, Budget(1.0))  # and calibrated once


def test_unknown_steps_are_named():
    with pytest.raises(PlanError, match="'colour' is not in the plan, which declares 'rows', 'grid', 'best'"):
        calibrate(PLAN, Budget(1))["colour"]


def test_pure_prices():
    priced = calibrate(PLAN, Budget(2), max_rows=3)
    rows, grid, best = (priced[name] for name in ("rows", "grid", "best"))
    assert (rows.mechanism, rows.cost) == ("discrete Laplace", Fraction(1, 5))
    assert (grid.mechanism, grid.cost) == ("discrete Laplace", Fraction(2, 5))
    assert (best.mechanism, best.cost) == ("permute-and-flip", 1)
    assert priced.nominal(rows) == Record("rows", "discrete Laplace", Sensitivity(3, 9, 3, 3), Fraction(15))
    assert priced.nominal(best).scale == 3
    assert [record.step for record in priced.records()] == ["rows", "grid", "grid", "best"]
    assert priced.cost() == Budget(2)


def test_zcdp_prices():
    priced = calibrate(PLAN, Budget(rho=2), max_rows=3)
    rows, best = priced["rows"], priced["best"]
    assert (rows.mechanism, rows.cost) == ("discrete Gaussian", Fraction(1, 5))
    assert best.mechanism == "exponential"
    assert best.cost**2 / 8 <= 1
    assert float(best.cost**2) == pytest.approx(8)
    sigma = priced.nominal(rows).scale
    assert Fraction(9) / (2 * sigma**2) <= Fraction(1, 5)
    assert float(sigma) == pytest.approx((9 / 0.4) ** 0.5)
    assert Budget(rho=2) - priced.cost() <= Budget(rho=1e-7)


def test_a_table_of_the_plan():
    text = str(calibrate(PLAN, Budget(2), max_rows=3))
    lines = text.splitlines()
    assert lines[0].split() == ["step", "times", "mechanism", "sensitivity", "noise", "scale", "cost"]
    assert lines[2].split() == ["grid", "2", "discrete", "Laplace", "3", "(L1)", "7.5", "epsilon", "0.8"]
    assert lines[3].split() == ["best", "1", "permute-and-flip", "3", "(spread)", "3", "epsilon", "1"]
    assert lines[4].split() == ["total", "epsilon=2"]
    assert "3 (L2)" in str(calibrate(PLAN, Budget(rho=2), max_rows=3))


def test_pure_budgets_cannot_pay_for_gaussians():
    record = Record("a", "discrete Gaussian", Sensitivity(), Fraction(10))
    with pytest.raises(PlanError, match="pure budget"):
        composed([record], Budget(1))


@pytest.mark.parametrize("budget", [Budget(1), Budget(1, 1e-6), Budget(rho=1)])
def test_nothing_asked_costs_nothing(budget):
    nothing = composed([], budget)
    assert (nothing.epsilon or 0) == (nothing.rho or 0) == 0
    assert nothing.kind == budget.kind


def test_a_delta_that_covers_everything():
    record = Record("a", "discrete Laplace", Sensitivity(), Fraction(1000))
    assert composed([record], Budget(1, "1/100")) == Budget.from_dict({"epsilon": "0", "delta": "1/100"})


def test_the_promise_is_reported_if_it_is_reached_up_to_rounding_and_only_then():
    budget = Budget(1, 1e-6)
    exact = calibrate(Plan(Step("a", share=1)), budget).records()
    assert composed(exact, budget) == budget
    less = [Record("a", r.mechanism, r.sensitivity, r.scale * 2) for r in exact]
    assert composed(less, budget).epsilon < Fraction(3, 5)
    more = [Record("a", r.mechanism, r.sensitivity, r.scale / 2) for r in exact]
    assert composed(more, budget).epsilon > 1
