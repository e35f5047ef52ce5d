import copy
import inspect
import pickle
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import FrozenInstanceError
from datetime import datetime, timedelta

import joblib
import pytest
from sklearn.base import BaseEstimator, clone

from sfumato.budget import ledger as ledger_module
from sfumato.budget.amounts import Budget
from sfumato.budget.ledger import Ledger
from sfumato.budget.ledger_lines import Charge
from sfumato.domain import Unit
from sfumato.errors import BudgetExceededError, LedgerError, ParameterError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    return Ledger.create(path, "patients", Budget(1))


def charge(ledger, spend, **keywords):
    return ledger.charge(spend, **{"method": "DPM", "plan": "plan", **keywords})


def test_a_new_ledger_has_spent_nothing(ledger):
    assert ledger.total() == Budget(1)
    assert ledger.remaining() == Budget(1)
    assert ledger.spent() == Budget.zero()
    assert not ledger.spent()
    assert ledger.history() == []


def test_ten_tenths_fit_and_the_eleventh_does_not(ledger):
    for _ in range(10):
        charge(ledger, Budget(0.1))
    assert ledger.spent() == Budget(1)
    assert not ledger.remaining()
    with pytest.raises(
        BudgetExceededError, match=r"requested epsilon=0\.1, remaining epsilon=0, difference epsilon=0\.1"
    ):
        charge(ledger, Budget(0.1))
    assert len(ledger.history()) == 10


def test_history(ledger):
    plan = {"rows": 0.05, "steps": ["a", "b"]}
    first = charge(ledger, Budget(0.25), plan=plan)
    second = charge(ledger, Budget(0.5), method="GridKMeans", plan="by hand")
    ledger.settle(first, "released")
    a, b = ledger.history()
    assert (a.id, a.method, a.plan, a.spend, a.seeded, a.outcome) == (
        first,
        "DPM",
        plan,
        Budget(0.25),
        False,
        "released",
    )
    assert (b.id, b.plan, b.outcome) == (second, "by hand", "open")
    assert datetime.fromisoformat(a.time).utcoffset() == timedelta(0)
    assert len({a, b}) == 2
    with pytest.raises(FrozenInstanceError):
        a.outcome = "failed"


@pytest.mark.parametrize("outcome", ["released", "failed"])
def test_no_outcome_gives_budget_back(ledger, outcome):
    number = charge(ledger, Budget(0.75))
    ledger.settle(number, outcome)
    ledger.settle(number, outcome)
    assert ledger.spent() == Budget(0.75)
    assert ledger.history()[0].outcome == outcome


def test_a_settled_charge_stays_settled(ledger):
    number = charge(ledger, Budget(0.75))
    ledger.settle(number, "failed")
    with pytest.raises(LedgerError, match="was settled as 'failed'"):
        ledger.settle(number, "released")
    with pytest.raises(LedgerError, match="Charge 7 of 'patients' is not known"):
        ledger.settle(7, "released")
    with pytest.raises(ParameterError, match="`outcome` must be"):
        ledger.settle(number, "open")


def test_charges_of_another_data_set_cannot_be_settled(ledger, path):
    other = Ledger.create(path, "visits", Budget(1))
    number = charge(ledger, Budget(0.5))
    with pytest.raises(LedgerError, match="is not known"):
        other.settle(number, "released")


def test_data_sets_share_a_file_and_no_budget(ledger, path):
    other = Ledger.create(path, "visits", Budget(rho=0.5))
    charge(ledger, Budget(1))
    charge(other, Budget(rho=0.25))
    assert Ledger.datasets(path) == ["patients", "visits"]
    assert not ledger.remaining()
    assert other.remaining() == Budget(rho=0.25)


def test_create_refuses_a_known_data_set(ledger, path):
    charge(ledger, Budget(0.5))
    with pytest.raises(LedgerError, match="'patients' already exists"):
        Ledger.create(path, "patients", Budget(100))
    assert ledger.total() == Budget(1)
    assert ledger.spent() == Budget(0.5)


def test_closed_is_closed(ledger):
    number = charge(ledger, Budget(0.5))
    assert not ledger.is_closed()
    ledger.close()
    ledger.close()
    assert ledger.is_closed()
    with pytest.raises(LedgerError, match="closed"):
        charge(ledger, Budget(0.1))
    ledger.settle(number, "released")
    assert ledger.spent() == Budget(0.5)


def test_seeded_charges_need_permission(ledger, path):
    with pytest.raises(LedgerError, match="allow_seeded=True"):
        charge(ledger, Budget(0.5), seeded=True)
    assert ledger.history() == []
    charge(Ledger(path, "patients", allow_seeded=True), Budget(0.5), seeded=True)
    assert ledger.history()[0].seeded is True


@pytest.mark.parametrize(
    ("total", "spends", "spent"),
    [
        (Budget(2), [Budget(0.5), Budget(1)], Budget(1.5)),
        (Budget(2, 1e-5), [Budget(1), Budget(0.5, 1e-6), Budget(0.5, 9e-6)], Budget(2, 1e-5)),
        (Budget(rho=1), [Budget(rho=0.5), Budget(1)], Budget(rho=1)),
        (Budget(rho=1), [Budget("1/3")], Budget(rho="1/18")),
    ],
    ids=["pure", "approximate", "zcdp", "zcdp of pure"],
)
def test_composition(path, total, spends, spent):
    ledger = Ledger.create(path, "patients", total)
    for spend in spends:
        charge(ledger, spend)
    assert ledger.spent() == spent
    assert ledger.remaining() == total - spent
    assert [line.spend for line in ledger.history()] == spends


@pytest.mark.parametrize(
    ("total", "spend", "advice"),
    [
        (Budget(1), Budget(0.1, 1e-6), "Budget(epsilon), because"),
        (Budget(1), Budget(rho=0.1), "Budget(epsilon), because"),
        (Budget(1, 1e-5), Budget(rho=0.1), "Budget(epsilon) or Budget(epsilon, delta), because"),
        (Budget(rho=1), Budget(0.1, 1e-6), "Budget(epsilon) or Budget(rho=...), because"),
    ],
)
def test_kinds_that_do_not_add_are_refused(path, total, spend, advice):
    ledger = Ledger.create(path, "patients", total)
    with pytest.raises(ParameterError, match=re.escape(f"`spend` must be {advice}")):
        charge(ledger, spend)
    assert ledger.history() == []


def test_delta_alone_can_be_exceeded(path):
    ledger = Ledger.create(path, "patients", Budget(5, 1e-6))
    charge(ledger, Budget(1, 1e-6))
    with pytest.raises(BudgetExceededError, match="difference epsilon=0, delta=1e-07"):
        charge(ledger, Budget(1, 1e-7))
    charge(ledger, Budget(4))
    assert not ledger.remaining()


def test_requests_beyond_any_delta_are_only_refused(path):
    ledger = Ledger.create(path, "patients", Budget(5, 0.5))
    charge(ledger, Budget(1, 0.4))
    with pytest.raises(BudgetExceededError):
        charge(ledger, Budget(1, 0.9))


def test_pure_charges_in_rho_are_refused_in_rho(path):
    ledger = Ledger.create(path, "patients", Budget(rho=0.1))
    with pytest.raises(
        BudgetExceededError, match=r"requested rho=0\.5, remaining rho=0\.1, difference rho=0\.4"
    ):
        charge(ledger, Budget(1))


def test_tiny_overdrafts_are_seen(path):
    ledger = Ledger.create(path, "patients", Budget(1))
    charge(ledger, Budget("1/3"))
    charge(ledger, Budget("1/3"))
    with pytest.raises(BudgetExceededError):
        charge(ledger, Budget("0.33333333333333333333333333333333333334"))
    charge(ledger, Budget("1/3"))
    assert not ledger.remaining()


@pytest.mark.parametrize("spend", [0.5, None, Budget.zero()])
def test_only_budgets_above_zero_are_charged(ledger, path, spend):
    with pytest.raises(ParameterError, match="`spend` must be a Budget above zero"):
        charge(ledger, spend)
    with pytest.raises(ParameterError, match="`total` must be a Budget above zero"):
        Ledger.create(path, "visits", spend)


@pytest.mark.parametrize("plan", [{"x": float("nan")}, {"x": object()}, {(1, 2): 3}, 5, None, ["step"]])
def test_plans_must_be_json(ledger, plan):
    with pytest.raises(ParameterError, match="`plan` must be"):
        charge(ledger, Budget(0.5), plan=plan)
    assert ledger.history() == []


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\udcff", 5, None])
def test_names_must_be_printable(ledger, path, name):
    with pytest.raises(ParameterError, match="`dataset` must be a printable name"):
        Ledger(path, name)
    with pytest.raises(ParameterError, match="`method` must be a printable name"):
        charge(ledger, Budget(0.5), method=name)


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), "30", None, True])
def test_timeouts_must_be_seconds(path, timeout):
    with pytest.raises(ParameterError, match="`timeout` must be"):
        Ledger(path, "patients", timeout=timeout)


@pytest.mark.parametrize("bad", ["", "a\0b", None, 3])
def test_paths_must_be_paths(bad):
    with pytest.raises(ParameterError, match="`path` must be"):
        Ledger(bad, "patients")


def test_odd_names_are_kept_apart(tmp_path):
    for name in ("a?mode=memory.db", "b#c.db", "d%20e.db", "déjà vu.db"):
        Ledger.create(tmp_path / name, "d'oh; --", Budget(1))
        assert Ledger.datasets(tmp_path / name) == ["d'oh; --"]
        assert (tmp_path / name).is_file()


def test_a_relative_path_is_fixed_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("ledger.db", "patients", Budget(1))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    charge(ledger, Budget(0.5))
    assert Ledger(tmp_path / "ledger.db", "patients").spent() == Budget(0.5)


def test_order_does_not_trust_the_clock(ledger, monkeypatch):
    times = iter(["2030-01-01T00:00:00+00:00", "1970-01-01T00:00:00+00:00", "2001-01-01T00:00:00+00:00"])
    monkeypatch.setattr(ledger_module, "_now", lambda: next(times))
    numbers = [charge(ledger, Budget(0.25)) for _ in range(3)]
    assert [line.id for line in ledger.history()] == sorted(numbers)
    assert ledger.history()[1].time.startswith("1970")
    assert ledger.spent() == Budget(0.75)


class Estimator(BaseEstimator):
    def __init__(self, ledger=None):
        self.ledger = ledger


def copies(ledger):
    yield pickle.loads(pickle.dumps(ledger))
    yield copy.copy(ledger)
    yield copy.deepcopy(ledger)
    yield clone(Estimator(ledger)).ledger


def test_a_ledger_is_a_value(ledger):
    for twin in copies(ledger):
        assert twin == ledger
        assert hash(twin) == hash(ledger)
        charge(twin, Budget(0.1))
    assert ledger.spent() == Budget(0.4)
    assert ledger != Ledger(ledger.path, "visits")
    with pytest.raises(FrozenInstanceError):
        ledger.dataset = "visits"


def test_workers_of_joblib_draw_on_one_budget(ledger):
    job = joblib.delayed(ledger.charge)(Budget(0.25), method="DPM", plan="plan")
    numbers = joblib.Parallel(n_jobs=2)([job] * 4)
    assert len(set(numbers)) == 4
    assert not ledger.remaining()


def test_threads_draw_on_one_budget(ledger):
    def attempt(_):
        try:
            return charge(ledger, Budget(0.1))
        except BudgetExceededError:
            return None

    with ThreadPoolExecutor(8) as pool:
        numbers = [number for number in pool.map(attempt, range(24)) if number is not None]
    assert len(set(numbers)) == 10
    assert ledger.spent() == Budget(1)


def query(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return [connection.execute(statement).fetchall() for statement in statements]


def test_amounts_on_disk_are_exact_text(ledger, path):
    charge(ledger, Budget(0.1))
    ((row,),) = query(path, "SELECT epsilon, typeof(epsilon), delta, rho FROM charge")
    assert row == ("1/10", "text", None, None)


def test_the_file_says_what_it_is(ledger, path):
    ((application,),), ((version,),), ((journal,),) = query(
        path, "PRAGMA application_id", "PRAGMA user_version", "PRAGMA journal_mode"
    )
    assert (application.to_bytes(4, "big"), version, journal) == (b"Sfum", 2, "delete")


def test_every_connection_is_durable(ledger):
    with ledger_module.transaction(ledger.path, 1.0) as connection:
        settings = [
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "foreign_keys")
        ]
    assert settings == [3, 1]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE charge SET epsilon = '1/100'",
        "UPDATE charge SET method = 'other'",
        "DELETE FROM charge",
        "INSERT OR REPLACE INTO charge VALUES (1, 1, '', '', '', 0, '', '', '1/9', NULL, NULL)",
        "UPDATE checksum SET sha256 = ''",
        "DELETE FROM checksum",
        "INSERT OR REPLACE INTO checksum (line, sha256) VALUES ('charge 1', '')",
        "UPDATE dataset SET epsilon = '100'",
        "UPDATE OR REPLACE dataset SET name = 'patients'",
        "DELETE FROM dataset",
        "INSERT OR REPLACE INTO dataset (name, time, epsilon) VALUES ('patients', '', '100')",
        "UPDATE settlement SET outcome = 'failed'",
        "DELETE FROM settlement",
        "INSERT OR REPLACE INTO settlement VALUES (1, '', 'failed')",
    ],
)
def test_the_file_is_append_only(ledger, path, statement):
    ledger.settle(charge(ledger, Budget(0.5)), "released")
    before = ledger.total(), ledger.history()
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        query(path, statement)
    assert (ledger.total(), ledger.history()) == before


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM closure",
        "UPDATE closure SET dataset = 2",
        "INSERT INTO charge (dataset, time, method, plan, seeded, epsilon) VALUES (1, '', '', '', 0, '1/9')",
    ],
)
def test_a_closed_data_set_cannot_be_opened_by_hand(ledger, path, statement):
    ledger.close()
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        query(path, statement)
    assert ledger.is_closed()


def test_public_records_are_documented():
    names = {"id", "time", "method", "plan", "spend", "seeded", "outcome", "unit", "part"}
    assert names == set(Charge.__dataclass_fields__)
    assert "Privacy\n-------" in inspect.getdoc(Ledger)


LAX = "DROP TRIGGER charge_update"
EDITS = {
    "a rule is gone": [LAX],
    "a table is gone": ["DROP TABLE closure"],
    "a table more": ["CREATE TABLE others (id INTEGER)"],
    "a view": ["ALTER TABLE closure RENAME TO others", "CREATE VIEW closure AS SELECT * FROM others"],
    "a rule that forgets": ["CREATE TRIGGER forget AFTER INSERT ON charge BEGIN DELETE FROM charge; END"],
}


def every_read(ledger):
    return [ledger.total, ledger.spent, ledger.remaining, ledger.history, ledger.is_closed]


@pytest.mark.parametrize("name", EDITS)
def test_another_schema_is_refused(ledger, path, name):
    charge(ledger, Budget(0.1))
    query(path, *EDITS[name])
    for call in [*every_read(ledger), lambda: charge(ledger, Budget(0.1))]:
        with pytest.raises(LedgerError, match="damaged or was edited"):
            call()


def test_a_lost_charge_is_seen(ledger, path):
    """One byte says how many rows a page holds: with one fewer, the last charge would not count."""
    for _ in range(3):
        charge(ledger, Budget(0.1))
    with closing(sqlite3.connect(path)) as connection:
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'charge'").fetchall()
        ((size,),) = connection.execute("PRAGMA page_size").fetchall()
    content = bytearray(path.read_bytes())
    place = (page - 1) * size + 4
    assert content[place] == 3
    content[place] = 2
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="damaged"):
        ledger.spent()


def test_a_name_that_is_no_text_is_damage(ledger, path):
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE closure", b"CREATE TABL\xc2 closure"))
    with pytest.raises(LedgerError, match="damaged"):
        ledger.spent()


MONTHS = ["January", "February", "March"]


def by_month(path, total=Budget(2), unit=Unit(), **declared):  # noqa: B008
    declared = {"parts_by": "month of admission", "parts": MONTHS, **declared}
    return Ledger.create(path, "stays", total, unit=unit, **declared)


def month(ledger, name):
    return Ledger(ledger.path, ledger.dataset, part=name)


def test_parts_of_rows_count_as_their_maximum(path):
    stays = by_month(path)
    charge(month(stays, "January"), Budget(1))
    charge(month(stays, "February"), Budget(1.5))
    charge(stays, Budget(0.25))
    assert stays.spent() == Budget(1.75)
    assert stays.remaining() == Budget(0.25)
    assert month(stays, "January").spent() == Budget(1.25)
    assert month(stays, "March").remaining() == Budget(1.75)
    with pytest.raises(
        BudgetExceededError, match=r"this charge to part 'January': requested epsilon=0\.8, rem"
    ):
        charge(month(stays, "January"), Budget(0.8))
    charge(month(stays, "January"), Budget(0.75))
    charge(month(stays, "March"), Budget(1.75))
    assert [line.part for line in stays.history()] == ["January", "February", None, "January", "March"]
    assert {line.unit for line in stays.history()} == {None}
    assert stays.unit() == "one row"
    assert stays.parts().max_per_unit == 1


def test_parts_of_a_person_count_as_often_as_a_person_may_be_in_them(path):
    stays = by_month(path, Budget(2), Unit("patient"), max_parts_per_unit=2)
    charge(month(stays, "January"), Budget(1))
    charge(month(stays, "February"), Budget(1))
    assert stays.spent() == Budget(2)
    assert not stays.remaining()
    assert month(stays, "March").remaining() == Budget(1)
    with pytest.raises(BudgetExceededError):
        charge(month(stays, "January"), Budget(0.1))


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"unit": Unit("patient")}, "`max_parts_per_unit` must be declared when the unit is a person"),
        ({"unit": None}, "`unit` must be given with `parts_by`"),
        ({"max_parts_per_unit": 2}, "must be 1 when the unit is a row"),
        ({"unit": Unit("patient"), "max_parts_per_unit": 0}, "must be an integer >= 1"),
        ({"unit": Unit("patient"), "max_parts_per_unit": True}, "must be an integer >= 1"),
        ({"parts": ["May", "may "]}, "must be different names"),
        ({"parts": []}, "must be different names, at least one"),
        ({"parts": "May"}, "must be a list of names"),
        ({"parts": [5]}, "must be a list of names"),
        ({"parts_by": " "}, "must be printable texts"),
        ({"parts_by": None}, "`parts_by` must be given with `parts`"),
        ({"unit": "patient"}, "`unit` must be sfumato.Unit"),
    ],
)
def test_parts_that_cannot_be_declared(path, declared, words):
    with pytest.raises(ParameterError, match=re.escape(words)):
        by_month(path, **declared)
    assert not path.exists()


def test_only_declared_parts_can_be_charged(ledger, path):
    stays = by_month(path)
    for call in (lambda part: charge(part, Budget(1)), Ledger.spent, Ledger.remaining):
        with pytest.raises(ParameterError, match=r"by month of admission: 'January', .*, got 'january'"):
            call(month(stays, "january"))
        with pytest.raises(ParameterError, match="'patients' was created without parts, got 'January'"):
            call(month(ledger, "January"))
    assert stays.history() == ledger.history() == []


def test_the_first_run_says_who_is_protected(ledger):
    assert ledger.unit() is None
    charge(ledger, Budget(0.1))
    assert ledger.unit() is None
    charge(ledger, Budget(0.1), unit=Unit("patient", 5))
    assert ledger.unit() == "one person (column 'patient')"
    charge(ledger, Budget(0.1), unit=Unit("patient", 2))  # a cap is a matter of each run
    charge(ledger, Budget(0.1))
    for other in (Unit(), Unit("doctor")):
        with pytest.raises(
            ParameterError, match=r"which protects one person \(column 'patient'\), got a run"
        ):
            charge(ledger, Budget(0.1), unit=other)
    with pytest.raises(ParameterError, match=r"`unit` must be sfumato\.Unit"):
        charge(ledger, Budget(0.1), unit="patient")
    assert len(ledger.history()) == 4


def test_a_declared_unit_holds_from_the_first_run(path):
    ledger = Ledger.create(path, "patients", Budget(1), unit=Unit())
    with pytest.raises(ParameterError, match="which protects one row, got a run that protects one person"):
        charge(ledger, Budget(0.1), unit=Unit("patient"))
    charge(ledger, Budget(0.1), unit=Unit())
    assert [line.unit for line in ledger.history()] == ["one row"]


def test_a_column_named_like_a_row_is_a_person(path):
    ledger = Ledger.create(path, "patients", Budget(1), unit=Unit("row"))
    with pytest.raises(ParameterError, match="which protects one person"):
        charge(ledger, Budget(0.1), unit=Unit())
