"""The curator of a joint fit: what holders count adds up, and a person's rows are capped over all of them."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from sfumato.budget import Budget, Plan, Step, calibrate
from sfumato.curator import open_table
from sfumato.curator.joint import AskedError, JointTable, Question, Script, first_noise, shifted
from sfumato.curator.questions import sums_sensitivity
from sfumato.domain import Domain, Grid, Unit
from sfumato.domain.partitions import Voronoi
from sfumato.errors import ParameterError, PlanError, ReleaseError
from sfumato.private.aggregates.base import Aggregate
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.private.aggregates.limbs import LimbSums
from sfumato.private.aggregates.nearest import NearestSums
from sfumato.private.aggregates.sparse_cells import SparseCells
from sfumato.private.aggregates.sums import GroupedSums
from sfumato.private.engines.memory import MemoryEngine

DOMAIN = Domain.from_bounds((-1, 1), 2)
GRID = Grid.over(DOMAIN, 4)
CENTRES = np.array([[-0.5, 0.0], [0.5, 0.0]])
BOUNDS = {"x": (-1, 1), "y": (-1, 1)}
MAX_ROWS, N_HOLDERS = 5, 2
PLAN = calibrate(
    Plan(Step("grid", "1/2"), Step("sums", "1/2", sensitivity=sums_sensitivity(DOMAIN))), Budget(1), MAX_ROWS
)
ASKS = {
    "grid": lambda curator: curator.cells("grid", GRID),
    "sums": lambda curator: curator.sums("sums", Voronoi(CENTRES), CENTRES, np.ones(2)),
}


def state_of(frame, ask, max_holders_per_unit):
    """What one holder sends, and the question."""
    sent = []

    def answer(question, engine):
        sent.append(question.folded(engine))
        raise AskedError(question)

    table = open_table(frame, BOUNDS, Unit("person", MAX_ROWS))
    curator = JointTable.of(table, Script((), answer), max_holders_per_unit).curator(PLAN, None)
    with pytest.raises(AskedError) as asked:
        ask(curator)
    return sent[0], asked.value.question


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_a_person_at_all_holders_moves_no_more_than_the_plan_pays_for(ask):
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(15):
        n = int(rng.integers(1, 40))
        frame = pd.DataFrame(rng.uniform(-1, 1, (n, 2)).round(1), columns=["x", "y"])
        frame["person"], at = rng.integers(0, 3, n), rng.integers(0, N_HOLDERS, n)
        for person in range(3):
            changes = []
            for holder in range(N_HOLDERS):
                own = frame[at == holder]
                with_them, question = state_of(own, ask, N_HOLDERS)
                without, _ = state_of(own[own.person != person], ask, N_HOLDERS)
                changes.append(with_them - without)
            change = sum(changes)
            paid = question.records[-1].sensitivity
            assert np.abs(change).sum() <= paid.l1
            assert (change.astype(object) ** 2).sum() <= paid.l2_squared
            assert np.count_nonzero(change) <= paid.coordinates
            largest = max(largest, np.abs(change).sum() / paid.l1)
    assert largest > 0.4  # the bound is not far from what people can do


def test_without_shares_the_cap_would_be_broken():
    """The mistake that `max_holders_per_unit` prevents."""
    frame = pd.DataFrame({"x": np.linspace(-1, 1, 9), "y": 0.0, "person": "a"})
    counts = {most: state_of(frame, ASKS["grid"], most)[0].sum() for most in (1, 2, 5)}
    assert counts == {1: 5, 2: 2, 5: 1}


def test_states_add_up_whatever_their_form():
    rows = np.random.default_rng(1).uniform(-1, 1, (50, 2))
    parts = [MemoryEngine(part, DOMAIN) for part in (rows[:7], rows[7:7], rows[7:])]
    whole = MemoryEngine(rows, DOMAIN)
    sums = GroupedSums(Voronoi(CENTRES), CENTRES, np.ones(2))
    for form, aggregate in {"integers": CellCounts(GRID), "cells": SparseCells(GRID), "limbs": sums}.items():
        question = Question(aggregate, (), PLAN)
        sent = [question.folded(part) for part in parts]
        before = [state.copy() for state in sent]
        assert np.array_equal(question.merged(sent), whole.fold(aggregate))
        assert all(np.array_equal(a, b) for a, b in zip(sent, before, strict=True))
        assert question.form == form


def test_answers_of_old_rounds_keep_both_limbs():
    """A script holds the noisy sums themselves, however large: a curator without rows finds them again."""
    rows = pd.DataFrame({"x": [0.5, -0.5], "y": 0.0, "person": ["a", "b"]})
    table, many = open_table(rows, BOUNDS, Unit("person", MAX_ROWS)), 2**36
    script = Script((), lambda question, engine: _times(question, engine.fold(question.aggregate), many))
    noisy = ASKS["sums"](JointTable.of(table, script, 1).curator(PLAN, None))
    assert noisy.sizes == pytest.approx([many, many])
    again = ASKS["sums"](JointTable.of(table, Script([script.drawn]), 1).curator(PLAN, None))
    assert np.array_equal(noisy.sizes, again.sizes)
    assert np.array_equal(noisy.sums, again.sums)
    assert (script.drawn[0][1] != 0).any()


def _times(question, state, n):
    """State of n copies of the same rows."""
    for _ in range(n.bit_length() - 1):
        state = question.aggregate.merge(state, state)
    return state


@pytest.mark.parametrize("form", ["integers", "limbs"])
def test_shifts_are_undone_and_pass_through_sums(form):
    rng, half = np.random.default_rng(0), 2**61
    for _ in range(200):
        random = rng.integers(-(2**63), 2**63, size=(2, 5))
        one, other = rng.integers(-half, half, size=(2, 2, 5))
        merge = Aggregate.merge if form == "integers" else LimbSums.merge
        apart = shifted(one, random, form, back=False), shifted(other, random, form, back=True)
        assert np.array_equal(merge(None, apart[0].copy(), apart[1]), merge(None, one.copy(), other))
        assert np.array_equal(shifted(apart[0], random, form, back=True), one)
        if form == "limbs":
            assert (np.abs(apart[0][0]) <= half).all()


def test_lists_of_rows_are_refused():
    """The t nearest rows are rows: nobody sends them."""
    aggregate = NearestSums(DOMAIN, CENTRES, 3)
    question = Question(aggregate, (), PLAN)
    with pytest.raises(PlanError, match="do not add up"):
        question.merged([aggregate.zero(), aggregate.zero()])
    with pytest.raises(PlanError, match="do not add up"):
        question.folded(MemoryEngine(np.zeros((2, 2)), DOMAIN))


def test_a_question_is_known_by_everything_that_decides_it():
    moved = CENTRES.copy()
    moved[0, 0] = np.nextafter(moved[0, 0], 1)
    partitions = [Voronoi(CENTRES), Voronoi(moved), GRID, Grid.over(DOMAIN, 5)]
    made = [
        Question(kind(partition), (), PLAN)
        for kind, partition in product([CellCounts, SparseCells], partitions)
    ]
    assert len({question.digest for question in made}) == len(made)
    assert made[0].digest == Question(CellCounts(Voronoi(CENTRES.copy())), (), PLAN).digest


def test_what_has_no_public_form_is_refused():
    class Unknown:
        n_cells = 3

    with pytest.raises(PlanError, match="Unknown"):
        _ = Question(CellCounts(Unknown()), (), PLAN).digest


def test_a_holder_lists_cells_in_order():
    aggregate = SparseCells(GRID)
    state = MemoryEngine(np.random.default_rng(2).uniform(-1, 1, (9, 2)), DOMAIN).fold(aggregate)
    lines = aggregate.listed(state)
    assert (np.diff(lines[:, 0]) > 0).all()
    assert np.array_equal(aggregate.from_list(lines), state)
    with pytest.raises(ParameterError):
        aggregate.from_list(lines[::-1])


def test_a_script_gives_old_answers_and_draws_new_ones():
    old, asked = np.arange(16, dtype=np.int64).reshape(4, 4).ravel(), []

    def answer(question, _):
        asked.append(question)
        return question.aggregate.zero()

    def curator(rounds):
        script = Script(rounds, answer, first_noise(0))
        table = open_table(np.empty((0, 2)), (-1, 1), Unit())
        return JointTable.of(table, script, 1).curator(PLAN, None), script

    two, script = curator([[old]])
    assert np.array_equal(two.cells("grid", GRID).values, old)
    assert not asked
    ASKS["sums"](two)
    assert len(asked) == len(script.drawn) == 1
    for rounds in ([[old[:3]]], [[]], [[old, old]]):
        other, _ = curator(rounds)
        with pytest.raises(ReleaseError, match="altered"):
            [ask(other) for ask in ASKS.values()]
