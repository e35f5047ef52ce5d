import pytest

from sfumato.budget import Budget, Ledger, PlannedFit
from sfumato.domain import Unit
from sfumato.errors import BudgetExceededError, LedgerError, ParameterError


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.db", "trips", Budget(2, 1e-6))


def test_equal_shares_can_be_charged_one_by_one(ledger):
    ledger.charge(Budget(0.5), method="DPM", plan="")
    batch = ledger.plan(3)
    assert [fit.spend for fit in batch.fits] == [Budget("1/2", "1/3000000")] * 3
    assert (batch.before, batch.after, batch.total) == (Budget(0.5), Budget(2, 1e-6), Budget(2, 1e-6))
    assert len(ledger.history()) == 1
    for fit in batch.fits:
        ledger.charge(fit.spend, method="DPM", plan="")
    assert not ledger.remaining()


def test_fits_with_a_budget_come_first(ledger):
    batch = ledger.plan([PlannedFit(), Budget(1, 1e-7), PlannedFit()])
    assert [str(fit.spend) for fit in batch.fits] == [
        "epsilon=0.5, delta=4.5e-07",
        "epsilon=1, delta=1e-07",
        "epsilon=0.5, delta=4.5e-07",
    ]


def test_a_batch_prints_amounts_that_fit(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "trips", Budget(1))
    said = str(ledger.plan(3)).splitlines()
    assert said[1].split() == ["1", "epsilon=0.333333"]
    assert said[-1] == "spent: epsilon=0 now, epsilon=1 after these fits, of epsilon=1 in all"


def test_what_does_not_fit_is_refused_by_number(ledger):
    with pytest.raises(
        BudgetExceededError, match=r"charge 3 of 3: requested epsilon=1, remaining epsilon=0\.5"
    ):
        ledger.plan([Budget(1), Budget(0.5), Budget(1)])
    with pytest.raises(ParameterError, match="`spend` must be"):
        ledger.plan([Budget(rho=1)])
    with pytest.raises(BudgetExceededError, match="leaves nothing to share"):
        ledger.plan([Budget(2), PlannedFit()])
    assert ledger.history() == []


def test_a_closed_data_set_has_no_plan(ledger):
    ledger.close()
    with pytest.raises(LedgerError, match="closed for good"):
        ledger.plan(2)


def test_pure_fits_in_a_total_of_rho(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "trips", Budget(rho=1))
    batch = ledger.plan([Budget(1), PlannedFit(), PlannedFit()])
    assert [fit.spend for fit in batch.fits] == [Budget(1), Budget(rho=0.25), Budget(rho=0.25)]
    assert batch.after == Budget(rho=1)


def test_a_batch_over_parts(tmp_path):
    path = tmp_path / "ledger.db"
    declared = {"unit": Unit("cab"), "parts_by": "month", "parts": ["1", "2", "3"], "max_parts_per_unit": 2}
    ledger = Ledger.create(path, "trips", Budget(2), **declared)
    ledger.charge(Budget(0.5), method="DPM", plan="")
    batch = ledger.plan([PlannedFit(part=part) for part in ("1", "2", "3", "3")])
    assert {fit.spend for fit in batch.fits} == {Budget(0.5)}
    assert batch.after == Budget(2)
    assert ledger.plan([PlannedFit(part="1"), PlannedFit(part="2")]).fits[0].spend == Budget(0.75)
    in_one = Ledger(path, "trips", part="2").plan(2)
    assert in_one.fits == (PlannedFit(Budget(0.75), "2"),) * 2


@pytest.mark.parametrize(
    "fits", [0, -1, 10_001, True, [], "3", 2.5, None, [0.5], [PlannedFit(Budget.zero())]]
)
def test_fits_must_be_a_number_or_a_list(ledger, fits):
    with pytest.raises(ParameterError, match="`fits` must be"):
        ledger.plan(fits)
