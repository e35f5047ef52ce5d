"""Samplers in plain Python read the same bits and give the same values as the compiled ones."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.private.mechanisms import interpreted, noise, selection
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.sparse_histogram import sparse_histogram
from sfumato.private.mechanisms.thresholded import thresholded_counts


@pytest.fixture
def patience(monkeypatch):
    def allow(draws):
        monkeypatch.setattr(interpreted._Patience, "left", draws)

    return allow


@pytest.mark.parametrize(
    "scale", [Fraction(1, 7), Fraction(20, 19), Fraction(2**40 + 1, 2**20), Fraction(2**52)]
)
@pytest.mark.parametrize("law", [noise.discrete_laplace, noise.discrete_gaussian])
def test_noise_has_the_same_bits(law, scale, patience):
    patience(400)
    plain = law(scale, 400, Entropy(seed=3))
    assert interpreted._Patience.left == 0
    np.testing.assert_array_equal(plain, law(scale, 400, Entropy(seed=3)))


def test_selections_are_always_compiled(patience):
    patience(100)
    for select in (selection.exponential, selection.permute_and_flip):
        select(np.arange(5), Fraction(1, 2), Entropy(seed=0))
    assert interpreted._Patience.left == 100


@pytest.mark.parametrize("n_occupied", [1, 5])
def test_secret_sizes_do_not_change_the_choice(n_occupied, patience):
    """Else which sampler the next noise takes would tell of them."""
    cells, counts = np.arange(n_occupied), np.full(n_occupied, 50)
    patience(2**30)
    sparse_histogram(cells, counts, 2**40, "discrete Laplace", Fraction(2), 60, Entropy(seed=0))
    thresholded_counts(counts, Fraction(2), 60, Entropy(seed=0))
    assert interpreted._Patience.left == 2**30


def test_many_draws_take_the_compiled_kernel(patience):
    patience(10)
    noise.discrete_laplace(Fraction(3), 11, Entropy(seed=0))
    assert interpreted._Patience.left == 10
