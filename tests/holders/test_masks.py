"""Masks cancel, and one masked state alone is random integers."""

from dataclasses import replace
from secrets import token_bytes

import numpy as np
import pytest
from scipy.stats import chisquare

from sfumato import DPDBSCAN, GridKMeans, LloydKMeans, holders
from sfumato.errors import ParameterError

from .conftest import joint, parted

ROWS = np.random.default_rng(0).uniform(-1, 1, (400, 2))
pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.NoiseWarning")


def shared_secrets(names, seed=0):
    """For each holder, the secrets that it shares with the others."""
    rng = np.random.default_rng(seed)
    pairs = {frozenset((a, b)): rng.bytes(32) for a in names for b in names if a < b}
    return {a: {b: pairs[frozenset((a, b))] for b in names if b != a} for a in names}


@pytest.mark.parametrize("n_holders", [2, 5])
@pytest.mark.parametrize("method", [GridKMeans(2), LloydKMeans(2, n_iter=1)], ids=["grid", "lloyd"])
def test_the_same_bits_with_masks(method, n_holders):
    tables = parted(ROWS, n_holders)
    own = shared_secrets([*tables])
    method.set_params(epsilon=1.0, bounds=(-1, 1), random_state=0)
    plain = joint(method, tables, 2)
    hidden = joint(method, tables, 2, change=lambda state: holders.masked(state, own[state.holder]))
    assert len(plain.rounds) == len(hidden.rounds) > 1
    for one, other in zip(plain.rounds, hidden.rounds, strict=True):
        assert all(map(np.array_equal, one, other))


@pytest.fixture
def transcript():
    return holders.declare(GridKMeans(2, epsilon=1.0, bounds=(-1, 1)), ["east", "north", "south"], columns=2)


@pytest.fixture
def states(transcript):
    return [holders.fold(transcript, ROWS, name) for name in transcript.holders]


def test_one_masked_state_is_uniform(states):
    """Over random secrets, every bit of a state of zeros and of one of rows is as often 0 as 1."""
    for values in (np.zeros(40, dtype=np.int64), np.full(40, 12_345)):
        state = replace(states[0], values=values)
        drawn = [holders.masked(state, {"north": token_bytes(32)}).values for _ in range(500)]
        bits = np.unpackbits(np.concatenate(drawn).view(np.uint8))  # 1.28 million
        assert chisquare(np.bincount(bits)).pvalue > 1e-6
        assert chisquare(np.bincount(np.concatenate(drawn).view(np.uint8), minlength=256)).pvalue > 1e-6


def test_a_mask_is_a_bijection_of_states(states):
    """With any mask, any state gives any masked state: what is seen excludes no state."""
    secret = {"north": bytes(32)}
    zero = holders.masked(replace(states[0], values=np.zeros(3, dtype=np.int64)), secret).values
    for wanted in (np.zeros(3, dtype=np.int64), np.array([1, -5, 2**63 - 1])):
        found = holders.masked(replace(states[0], values=wanted - zero), secret).values
        assert np.array_equal(found, wanted)


def test_masks_change_with_the_round_the_fit_and_the_transcript(states):
    secret = {"north": bytes(32)}
    seen = {
        holders.masked(replace(states[0], **change), secret).values.tobytes()
        for change in ({}, {"round": 1}, {"fit": "other"}, {"transcript": "other"})
    }
    assert len(seen) == 4


def test_masks_that_do_not_cancel_are_noticed(transcript, states):
    own = shared_secrets(transcript.holders)
    hidden = [holders.masked(state, own[state.holder]) for state in states]
    assert holders.combine(transcript, hidden).round == 1
    other = shared_secrets(transcript.holders, seed=1)
    fewer = holders.masked(states[0], {"north": own["east"]["north"]})
    more = holders.masked(states[0], own["east"] | {"west": bytes(32)})
    for spoilt in (states[0], holders.masked(states[0], other["east"]), fewer, more):
        with pytest.raises(ParameterError, match=r"must cancel.*Nothing was released"):
            holders.combine(transcript, [spoilt, *hidden[1:]])
    with pytest.raises(ParameterError, match="'south' is missing"):
        holders.combine(transcript, hidden[:2])


def test_what_cannot_be_masked(states):
    secrets = shared_secrets(["east", "north", "south"])["east"]
    with pytest.raises(ParameterError, match="masked once"):
        holders.masked(holders.masked(states[0], secrets), secrets)
    with pytest.raises(ParameterError, match="32 bytes"):
        holders.masked(states[0], {"north": b"short"})
    for wrong in ({}, {"east": bytes(32)}):
        with pytest.raises(ParameterError, match="each other holder"):
            holders.masked(states[0], wrong)


def test_lists_of_cells_cannot_be_masked():
    method = DPDBSCAN(radius=0.1, min_samples=150, epsilon=2.0, bounds=(-1, 1))
    transcript = holders.declare(method, ["north", "south"], columns=6)
    state = holders.fold(transcript, np.hstack([ROWS] * 3), "north")
    assert state.form == "cells"
    with pytest.raises(ParameterError, match="lists cells"):
        holders.masked(state, {"south": bytes(32)})
