"""ColumnTerms that stand out, and those that do not."""

import numpy as np
import pytest

from sfumato.errors import ParameterError, ReleaseError
from sfumato.public.models import decode, encode
from sfumato.public.models.column_terms import ColumnTerms

SIZES = np.array([100.0, 50.0, -3.0])
SUMS = np.array([[50.0, 0.1, 30.0, 0.0], [25.0, 20.0, 0.0, 0.0], [0.3, 0.0, 0.0, -0.2]])


@pytest.fixture
def terms():
    return ColumnTerms.of(SIZES, SUMS, 2.0, 1.0, ("the", "cat", "dog", "bird"))


def test_means_that_stand_out_are_kept(terms):
    expected = [[0.5, 0, 0.3, 0], [0.5, 0.4, 0, 0], [0, 0, 0, 0]]
    assert np.allclose(terms.centers(), expected)
    assert terms.sizes.tolist() == [100, 50, 0]
    assert np.allclose(terms.stds, [0.01, 0.02, 0.25])


def test_top_terms_set_a_cluster_apart(terms):
    assert [term.name for term in terms.top(0)] == ["dog"]  # "the" is as frequent elsewhere
    assert [term.name for term in terms.top(1)] == ["cat"]
    assert terms.top(2) == []
    (dog,) = terms.top(0, 1)
    assert (dog.column, dog.mean, dog.std) == (2, 0.3, 0.01)
    assert dog.others == pytest.approx(0.2)


def test_noise_alone_has_hardly_any_terms():
    noise = np.random.default_rng(0).normal(size=(20, 50_000))
    assert len(ColumnTerms.of(np.full(20, 1000.0), noise, 1.0, 1.0).means) <= 3


def test_a_cluster_that_does_not_exist(terms):
    with pytest.raises(ParameterError, match="`cluster` must be from 0 to 2"):
        terms.top(3)


def test_a_file_keeps_them_and_damage_is_refused(terms):
    written = encode(terms)
    again = decode(written)
    assert np.array_equal(again.centers(), terms.centers())
    assert again.names == terms.names
    for name, value in [("columns", 4), ("clusters", -1)]:
        damaged = encode(terms)
        damaged[name]["values"][0] = value
        with pytest.raises((ParameterError, ReleaseError)):
            decode(damaged)
