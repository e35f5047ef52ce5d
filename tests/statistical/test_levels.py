"""Audit of private levels: what only one person has is shown with probability delta at most, and not less.

Delta is large here, so that a few thousand runs can tell it from twice delta.
"""

import math
from fractions import Fraction

import pandas as pd
import pytest
from scipy.stats import binom

from sfumato.budget import Budget, Plan, calibrate
from sfumato.cluster.shared.levels import PRIVATE, level_steps
from sfumato.curator import open_table
from sfumato.curator.curator import Curator
from sfumato.domain import Unit
from sfumato.domain.columns import Columns, Coordinate
from sfumato.private import levels
from sfumato.private.engines.levels import LevelEngine
from sfumato.private.levels import count_levels
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.sources import open_source

DELTA, N_RUNS = Fraction(1, 20), 3000
SURE = 1e-6  # probability that a right program fails a test here
RARE = [f"rare {i}" for i in range(40)]


def tables(n_columns):
    """A table, and its neighbour with one more person, who has many rows and values that nobody else has."""
    names = [f"c{j}" for j in range(n_columns)]
    usual = pd.DataFrame({"who": [f"p{i}" for i in range(300)]} | {name: ["usual"] * 300 for name in names})
    more = pd.DataFrame({"who": ["ada"] * len(RARE)} | dict.fromkeys(names, RARE))
    return usual, pd.concat([usual, more]), names


def releases(table, names, max_rows=1, epsilon=1):
    """Many releases of the levels of one table."""
    unit = Unit("who", max_rows)
    opened = open_table(table, dict.fromkeys(names, PRIVATE), unit)
    plan = calibrate(Plan(*level_steps(len(names))), Budget(epsilon, DELTA), max_rows)
    columns = Columns(tuple(Coordinate(name, "level") for name in names), "who")
    raw = count_levels(columns, open_source(table).batches(columns))
    for _ in range(N_RUNS):
        yield Curator(LevelEngine(len(names), lambda: raw), opened.domain, plan, Entropy()).levels("levels")


def n_with_rare(released):
    return sum(any(text in RARE for texts in one.texts for text in texts) for one in released)


@pytest.mark.parametrize(("n_columns", "max_rows"), [(1, 1), (1, 8), (3, 1), (3, 8)])
def test_what_one_person_has_is_shown_with_probability_delta(n_columns, max_rows):
    _, table, names = tables(n_columns)
    n_shown = n_with_rare(releases(table, names, max_rows))
    assert binom.sf(n_shown - 1, N_RUNS, float(DELTA)) > SURE  # not more often
    # Nor much less often: the threshold is the least one, and so the test above could fail.
    one_less = float(DELTA) * math.exp(-1 / n_columns) * (1 - float(DELTA))
    assert binom.cdf(n_shown, N_RUNS, one_less) > SURE


def test_a_person_who_counts_for_every_value_would_be_seen(monkeypatch):
    monkeypatch.setattr(levels, "_smallest", lambda entries: entries)
    _, table, names = tables(1)
    assert binom.sf(n_with_rare(releases(table, names)) - 1, N_RUNS, float(DELTA)) < SURE


@pytest.mark.parametrize("wrong", [-3, 0])
def test_a_lower_threshold_would_be_seen(monkeypatch, wrong):
    from sfumato.curator import curator as module

    right = module.least_threshold
    monkeypatch.setattr(module, "least_threshold", lambda *public: right(*public) + wrong)
    _, table, names = tables(3)
    n_shown = n_with_rare(releases(table, names))
    assert (binom.sf(n_shown - 1, N_RUNS, float(DELTA)) < SURE) == (wrong < 0)


def test_values_that_nobody_has_are_never_shown():
    table, _, names = tables(1)
    assert n_with_rare(releases(table, names)) == 0


@pytest.mark.parametrize("epsilon", [0.2, 1])
def test_counts_of_neighbours_have_nearly_the_same_odds(epsilon):
    """Events on the count of a usual value, with and without one more person who has it."""
    table, _, names = tables(1)
    one_more = pd.concat([table, pd.DataFrame({"who": ["eve"], "c0": ["usual"]})])
    n_above = [
        sum(len(one.counts[0]) > 0 and one.counts[0][0] > 300 for one in releases(t, names, epsilon=epsilon))
        for t in (table, one_more)
    ]
    low, high = min(n_above) / N_RUNS, max(n_above) / N_RUNS
    error = 5 * math.sqrt(high * (1 - high) / N_RUNS) * (1 + math.exp(epsilon))
    assert high <= math.exp(epsilon) * low + float(DELTA) + error
    assert high > low  # the person does make a difference
