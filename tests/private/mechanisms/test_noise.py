from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.private.mechanisms import samplers
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.laws import gaussian_table, laplace_table
from sfumato.private.mechanisms.noise import discrete_gaussian, discrete_laplace, drawn

NOISES = [discrete_laplace, discrete_gaussian]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("size", [0, 1, 1000])
def test_shape_and_type(noise, size):
    draws = noise(Fraction(7, 2), size, Entropy())
    assert draws.shape == (size,)
    assert draws.dtype == np.int64


@pytest.mark.parametrize("noise", NOISES)
def test_integers_are_scales_too(noise):
    expected = noise(Fraction(10), 50, Entropy(seed=1))
    np.testing.assert_array_equal(noise(10, 50, Entropy(seed=1)), expected)
    np.testing.assert_array_equal(noise(np.int64(10), 50, Entropy(seed=1)), expected)


@pytest.mark.parametrize("noise", NOISES)
def test_seed_reproduces_and_the_system_does_not(noise):
    scale = Fraction(2**30)
    np.testing.assert_array_equal(noise(scale, 99, Entropy(seed=4)), noise(scale, 99, Entropy(seed=4)))
    assert (noise(scale, 99, Entropy()) != noise(scale, 99, Entropy())).any()


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("scale", [Fraction(2**52), Fraction(2**52, 2**52 - 1), Fraction(1, 2**52)], ids=str)
def test_largest_terms_do_not_overflow(noise, scale):
    draws = noise(scale, 20_000, Entropy(seed=6))
    assert abs(draws).max() <= 40 * scale
    if scale > 2:
        assert 0.5 * scale < draws.std() < 2 * scale


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    "scale", [Fraction(0), Fraction(-1), 1.0, "1", Fraction(2**52 + 1), Fraction(1, 2**52 + 1)], ids=str
)
def test_bad_scale(noise, scale):
    with pytest.raises(ParameterError, match=r"must be .* got "):
        noise(scale, 1, Entropy())


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("size", [-1, 2.0])
def test_bad_size(noise, size):
    with pytest.raises(ParameterError, match="`size` must be"):
        noise(Fraction(1), size, Entropy())


@pytest.mark.parametrize(
    ("noise", "table", "fill"),
    [
        (discrete_laplace, laplace_table, samplers.fill_laplace),
        (discrete_gaussian, gaussian_table, samplers.fill_gaussian),
    ],
    ids=["laplace", "gaussian"],
)
@pytest.mark.parametrize(
    ("scale", "size", "tabulated"),
    [
        (Fraction(7, 2), 2**16, True),
        (Fraction(7, 2), 2**16 - 1, False),
        (Fraction(32), 2**16, True),
        (Fraction(32) + Fraction(1, 2**40), 2**16, False),
    ],
)
def test_tables_serve_many_draws_of_small_scales(noise, table, fill, scale, size, tabulated):
    draws = noise(scale, size, Entropy(seed=2))
    if tabulated:
        expected = drawn(samplers.fill_table, size, Entropy(seed=2), 16, *table(scale))
    else:
        expected = drawn(fill, size, Entropy(seed=2), 16, *scale.as_integer_ratio())
    np.testing.assert_array_equal(draws, expected)
