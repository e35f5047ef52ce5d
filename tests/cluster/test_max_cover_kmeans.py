"""MaxCoverKMeans: what it asks."""

import numpy as np
import pytest

from sfumato import Budget, Ledger
from sfumato.cluster.max_cover_kmeans import MaxCoverKMeans
from sfumato.errors import ParameterError


def model(**parameters):
    return MaxCoverKMeans(**{"n_clusters": 3, "bounds": (-1, 1), "random_state": 0, **parameters})


def test_the_number_of_choices_is_public(rows):
    for table in (rows, rows[:0]):
        steps = model(n_clusters=7).fit(table).privacy_.steps
        assert sum(record.step == "cover" for record in steps) == 7


def test_selections_are_one_step_of_spread_one():
    (cover,) = [priced.step for priced in model(n_clusters=64).plan(10).steps if priced.step.selection][:1]
    assert (cover.name, cover.repeats, cover.sensitivity.spread) == ("cover", 64, 1)


@pytest.mark.parametrize(
    "parameters",
    [{"n_clusters": 1001}],
)
def test_bad_parameters(parameters, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        model(ledger=ledger, random_state=None, **parameters).fit(np.zeros((3, 2)))
    assert ledger.history() == []
