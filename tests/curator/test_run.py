"""A run that is interrupted says what to count as spent."""

import numpy as np
import pytest

from sfumato import Budget, Ledger
from sfumato.budget import Plan, Step, calibrate
from sfumato.curator import open_table, run
from sfumato.domain import Unit
from sfumato.errors import DataError

TABLE = open_table(np.zeros((10, 2)), (-1, 1), Unit())
PLAN = calibrate(Plan(Step("rows", 1)), Budget("1/2"))


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "budget.db", "people", Budget(1))


def interrupt(*_, **__):
    raise KeyboardInterrupt


def notes_of(compute, kind=KeyboardInterrupt, ledger=None):
    with pytest.raises(kind) as caught:
        run(TABLE, PLAN, compute, method="test", ledger=ledger)
    return getattr(caught.value, "__notes__", [])


def test_with_a_ledger(ledger):
    assert notes_of(interrupt, ledger=ledger) == [
        "epsilon=0.5 was charged to 'people' and counts; nothing was released"
    ]
    assert [charge.outcome for charge in ledger.history()] == ["failed"]


def test_without_a_ledger():
    assert notes_of(interrupt) == ["the noise may have been drawn: count epsilon=0.5 as spent"]


def test_while_the_ledger_is_charged(ledger, monkeypatch):
    monkeypatch.setattr(Ledger, "charge", interrupt)
    assert notes_of(lambda _: None, ledger=ledger) == [
        "epsilon=0.5 may have been charged to 'people'; nothing was released"
    ]


def test_an_error_has_no_note(ledger):
    def fail(_):
        raise DataError("the table must contain numbers")

    assert notes_of(fail, DataError, ledger) == []
