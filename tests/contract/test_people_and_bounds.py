"""Every estimator, for people with several rows and for bounds that it must find.

What is spent is what was promised, and noise is made for all rows of a person together.
"""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from tests.contract.test_spend import pure_sum, rho_of

from sfumato import GridKMeans, estimate_bounds, suggest_max_rows
from sfumato.budget import Budget, Ledger
from sfumato.domain import Unit
from sfumato.errors import BudgetExceededError, ParameterError

pytestmark = pytest.mark.usefixtures("quick")
KINDS = {"pure": {"epsilon": 30.0}, "approximate": {"epsilon": 30.0, "delta": 1e-6}, "zcdp": {"rho": 30.0}}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
first_kind = pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if name == "pure" else pytest.mark.slow) for name, kind in KINDS.items()],
    ids=KINDS,
)


def assert_spent(privacy, kind):
    """All of the promise, by sums over the records, up to the rounding of scales."""
    if "rho" in kind:
        spent, promised = sum(map(rho_of, privacy.steps)), Fraction(kind["rho"])
    elif "delta" in kind:
        spent, promised = privacy.spent.epsilon, Fraction(kind["epsilon"])
    else:
        spent, promised = pure_sum(privacy.steps), Fraction(kind["epsilon"])
    assert promised * Fraction(999, 1000) <= spent <= promised


def table_of(rows, d):
    columns = {f"x{j}": rows[:, j % 2] for j in range(d)}
    return pd.DataFrame(columns).assign(person=np.arange(len(rows)) % 60)


@pytest.mark.parametrize(("max_rows", "d"), [(4, 3), pytest.param(1, 1, marks=pytest.mark.slow)])
@first_kind
def test_people(make, rows, kind, max_rows, d):
    model = make(unit="person", max_rows_per_unit=max_rows, **kind).fit(table_of(rows, d))
    assert model.privacy_.unit == Unit("person", max_rows)
    assert_spent(model.privacy_, kind)
    for record in model.privacy_.steps:
        noise, row = record.sensitivity, {"l1": 1, "spread": 1, "l2_squared": max_rows}
        assert all(getattr(noise, name) % (max_rows * factor) == 0 for name, factor in row.items())


@first_kind
def test_private_bounds(make, rows, kind):
    """Rows far from the origin, of which nothing is known but that they are numbers."""
    wide = {"radius": 40.0} if "radius" in make().get_params() else {}
    model = make(bounds="private", random_state=0, **wide, **kind)
    model.fit(rows * [100, 3] + [5000, -20])
    assert_spent(model.privacy_, kind)
    found = [record.step for record in model.privacy_.steps]
    assert found[:3] == ["magnitudes", "coarse bins", "fine bins"]
    low, high = np.array(model.release_.domain.low), np.array(model.release_.domain.high)
    assert (low > [3000, -60]).all()
    assert (high < [7000, 20]).all()
    assert (low < high).all()
    assert [step.step.name for step in model.plan(2).steps[:3]] == found[:3]


@pytest.mark.of_base
def test_private_bounds_are_charged_once(make, rows, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(31), allow_seeded=True)
    make(bounds="private", epsilon=30.0, ledger=ledger, random_state=0).fit(rows)
    assert ledger.spent() == Budget(30)
    assert len(ledger.history()) == 1


@every_kind
def test_estimates_are_charged_before_anything_is_read(tmp_path, kind, rows):
    budget = Budget(**kind)
    ledger = Ledger.create(tmp_path / "ledger.db", "people", budget)
    found = estimate_bounds(rows, ledger=ledger, **kind)
    assert_spent(found.privacy, kind)
    assert ledger.spent() == budget
    with pytest.raises(BudgetExceededError):
        estimate_bounds(rows, ledger=ledger, **kind)
    assert [charge.method for charge in ledger.history()] == ["estimate_bounds"]
    persons = Ledger.create(tmp_path / "ledger.db", "persons", budget)
    found = suggest_max_rows(table_of(rows, 1), "person", ledger=persons, **kind)
    assert_spent(found.privacy, kind)
    with pytest.raises(BudgetExceededError):
        suggest_max_rows(table_of(rows, 1), "person", ledger=persons, **kind)
    assert [(charge.method, charge.unit) for charge in persons.history()] == [
        ("suggest_max_rows", "one person (column 'person')")
    ]


def test_rows_and_persons_are_not_charged_together(tmp_path, rows):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(9))
    estimate_bounds(rows, ledger=ledger, epsilon=1)
    table = table_of(rows, 1)
    for run in (
        lambda: suggest_max_rows(table, "person", ledger=ledger, epsilon=1),
        lambda: estimate_bounds(table, ["x0"], unit="person", ledger=ledger, epsilon=1),
    ):
        with pytest.raises(
            ParameterError, match="which protects one row, got a run that protects one person"
        ):
            run()
    assert len(ledger.history()) == 1


@every_kind
def test_a_release_states_the_cost_of_bounds_that_were_bought(rows, kind):
    table = table_of(rows, 3)
    bought = estimate_bounds(table, ["x1", "x0"], unit="person", max_rows_per_unit=3, random_state=0, **kind)
    model = GridKMeans(3, bounds=bought, unit="person", max_rows_per_unit=2, **kind).fit(table)
    assert model.feature_names_in_.tolist() == ["x1", "x0"]
    assert model.privacy_.budget == bought.privacy.budget + Budget(**kind)
    assert model.privacy_.spent <= model.privacy_.budget
    assert [r.step for r in model.privacy_.steps][:4] == ["magnitudes", "coarse bins", "fine bins", "rows"]
    assert model.privacy_.seeded  # as the bounds were
    with pytest.raises(ParameterError, match="must protect one row"):
        GridKMeans(3, bounds=bought, **kind).fit(table)
    other = {"epsilon": 1.0} if "rho" in kind else {"rho": 1.0}
    mixed = GridKMeans(3, bounds=bought, unit="person", **other)
    if "delta" in kind:
        with pytest.raises(ParameterError, match="delta"):
            mixed.fit(table)
    else:
        assert mixed.fit(table).privacy_.spent.kind == "zcdp"


@every_kind
def test_a_cap_costs_what_it_says(rows, kind):
    cap = suggest_max_rows(table_of(rows, 1), "person", 3, **kind)
    assert_spent(cap.privacy, kind)
    assert "one person (column 'person', with all rows)" in str(cap.privacy)
    assert 1 <= cap.max_rows <= 8  # everybody has five rows


def test_bad_estimates(rows, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    with pytest.raises(ParameterError, match="'who' must be in the table"):
        suggest_max_rows(table_of(rows, 1), "who", ledger=ledger)
    with pytest.raises(ParameterError, match="`missing` must be"):
        suggest_max_rows(table_of(rows, 1), "person", missing="ignore", ledger=ledger)
    assert ledger.history() == []
    with pytest.raises(ParameterError, match="must name the column"):
        suggest_max_rows(table_of(rows, 1), None)
    with pytest.raises(ParameterError, match="named columns"):
        estimate_bounds(rows, ["x"])
    with pytest.raises(ParameterError, match="'y' must be in the table"):
        estimate_bounds(table_of(rows, 1), ["y"])


@pytest.mark.parametrize("columns", [5, "a", [1], [["a"]]])
def test_columns_are_a_list_of_names(columns):
    with pytest.raises(ParameterError, match="`columns` must be a list of names"):
        estimate_bounds(np.zeros((5, 1)), columns)


def test_the_budget_of_a_fit_is_a_budget(rows):
    with pytest.raises(ParameterError, match="`budget` must be a Budget"):
        suggest_max_rows(table_of(rows, 1), "person", budget=5)
