"""Terms from noisy counts: ranking, intervals, and parts of damaged files."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.errors import ParameterError, ReleaseError
from sfumato.public.models import decode, encode
from sfumato.public.terms import Terms
from sfumato.public.terms.contrasts import clear_distance, contrasts

GAUSSIAN = "discrete Gaussian"
SIZES = np.array([1000, 2000, 500])
COUNTS = np.array([[400, 3, 500, 50], [2, 900, 1000, 100], [5, 4, 250, 25]])


def told(counts=COUNTS, sizes=SIZES, std=8.0, mechanism=GAUSSIAN, **others):
    parts = {"max_terms": 8, "kept": 1.0} | others
    return Terms(("cat", "bank", "new", "old"), counts, sizes, mechanism, std, **parts)


def test_terms_of_one_cluster_are_shown_and_common_ones_are_not():
    terms = told()
    assert [[term.term for term in own] for own in terms] == [["cat"], ["bank"], []]
    assert terms[0][0].share.value == pytest.approx(0.4)
    assert terms[0][0].elsewhere.high < 0.02
    assert len(terms) == 3


def test_a_hidden_cluster_shows_nothing():
    assert told(sizes=np.array([20, 2000, 500]))[0] == []
    assert told(sizes=np.array([-5, 2000, 500]))[0] == []


def test_one_cluster_is_told_by_shares():
    terms = Terms(("aa", "bb"), np.array([[500, 900]]), np.array([1000]), GAUSSIAN, 3.0, 4, 1.0)
    assert [term.term for term in terms[0]] == ["bb", "aa"]


def test_shares_allow_for_what_did_not_count():
    assert told(kept=0.8).share(0, "cat").value == pytest.approx(0.5)
    assert told(kept=0.2).share(0, "cat") == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("mechanism", ["discrete Laplace", GAUSSIAN])
def test_intervals_hold_the_exact_share(mechanism):
    rng = np.random.default_rng(0)
    held, n_runs, std = 0, 2000, 10.0
    for _ in range(n_runs):
        draw = (
            rng.laplace(0, std / np.sqrt(2), (4, 5)) if mechanism != GAUSSIAN else rng.normal(0, std, (4, 5))
        )
        noise = np.rint(draw).astype(np.int64)
        share = told(COUNTS + noise[:3, :4], SIZES + noise[:3, 4], std, mechanism).share(0, "old")
        held += share.low <= 0.05 <= share.high
    assert 0.93 < held / n_runs < 0.985


@pytest.mark.parametrize("mechanism", ["discrete Laplace", GAUSSIAN])
def test_noise_alone_shows_few_terms(mechanism):
    rng = np.random.default_rng(1)
    k, n_terms, std = 20, 1000, 12.0
    draw = (
        rng.laplace(0, std / np.sqrt(2), (k, n_terms))
        if mechanism != GAUSSIAN
        else rng.normal(0, std, (k, n_terms))
    )
    counts = 50 + np.rint(draw).astype(np.int64)
    _, are_clear = contrasts(counts, np.full(k, 800), std, mechanism)
    assert are_clear.sum() <= 3 * k * 0.25 + 5


def test_more_terms_need_a_larger_distance():
    assert clear_distance(1, GAUSSIAN) == 3.0
    assert clear_distance(10**5, GAUSSIAN) > clear_distance(10**3, GAUSSIAN) > 3.0
    assert clear_distance(10**3, "discrete Laplace") > clear_distance(10**3, GAUSSIAN)


def test_no_terms_at_all():
    empty = Terms((), np.zeros((3, 0), dtype=np.int64), SIZES, GAUSSIAN, 8.0, 8, 1.0)
    assert [own for own in empty] == [[], [], []]  # noqa: C416
    assert "no term stands out" in str(empty)
    assert empty.rows() == []


def test_round_trip():
    terms = told(top=1, found=True)
    again = decode(encode(terms))
    assert again.rows() == terms.rows()
    assert (again.top, again.found, again.kept) == (1, True, 1.0)


@pytest.mark.parametrize(
    "change",
    [
        {"terms": ("cat", "cat", "new", "old")},
        {"terms": ("cat", "bank", "new")},
        {"terms": ("cat", "a\nb", "new", "old")},
        {"counts": COUNTS[:2]},
        {"sizes": SIZES[None]},
        {"mechanism": "none"},
        {"std": -1.0},
        {"kept": 0.0},
        {"kept": 1.5},
        {"top": 0},
        {"counts": COUNTS * 2**53},
    ],
    ids=str,
)
def test_damaged_parts_are_refused(change):
    with pytest.raises((ParameterError, ReleaseError)):
        decode(encode(replace(told(), **change)))


def test_unknown_terms_and_clusters():
    with pytest.raises(ParameterError, match="of the vocabulary"):
        told().share(0, "dog")
    with pytest.raises(IndexError, match="from 0 to 2"):
        told()[3]
