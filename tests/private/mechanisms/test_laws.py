"""Tables against laws computed otherwise, in more digits, and the draw near a border."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, pairwise

import numba
import numpy as np
import pytest
from tests.worlds import rarely

from sfumato.private.mechanisms import samplers
from sfumato.private.mechanisms.laws import (
    BORDER_BITS,
    N_DIGITS,
    ONE,
    as_table,
    binomial_table,
    gaussian_table,
    laplace_table,
)

MORE_DIGITS = Context(prec=540)
FINE = 2**1700  # probabilities are compared as integers in this unit
UNIT = FINE >> BORDER_BITS


def borders_of(table):
    return [int.from_bytes(border.astype(">u2").tobytes()) for border in table.borders]


def law_of(table):
    borders = [0, *borders_of(table), 2**BORDER_BITS]
    return {table.first + i: (above - below) * UNIT for i, (below, above) in enumerate(pairwise(borders))}


def symmetric_law(log_weight, reach):
    """Probabilities from one exponential each."""
    with localcontext(MORE_DIGITS):
        terms = [log_weight(x) for x in range(reach + 1)]
        weights = [(Decimal(term.numerator) / term.denominator).exp() for term in terms]
        total = weights[0] + 2 * sum(weights[1:])
        side = {x: int(weight / total * FINE) for x, weight in enumerate(weights)}
    return side | {-x: p for x, p in side.items()}


def variation(one, other):
    return sum(abs(one.get(x, 0) - other.get(x, 0)) for x in one.keys() | other.keys()) // 2


E_TO_MINUS_1000 = int(Decimal(-1000).exp(MORE_DIGITS) * FINE)


@pytest.mark.parametrize("scale", [Fraction(1, 7), *rarely(Fraction(1))], ids=str)
def test_laplace_is_closer_than_e_to_the_minus_1000(scale):
    exact = symmetric_law(lambda x: -x / scale, math.ceil(1100 * scale))
    assert variation(law_of(laplace_table(scale)), exact) < E_TO_MINUS_1000


@pytest.mark.parametrize("sigma", [Fraction(1, 7), Fraction(7, 3), *rarely(Fraction(32))], ids=str)
def test_gaussian_is_closer_than_e_to_the_minus_1000(sigma):
    exact = symmetric_law(lambda x: -(x**2) / (2 * sigma**2), math.ceil(48 * sigma))
    assert variation(law_of(gaussian_table(sigma)), exact) < E_TO_MINUS_1000


def test_a_scale_off_by_a_trifle_would_be_seen():
    close = laplace_table(Fraction(1) + Fraction(1, 10**420))
    assert variation(law_of(close), law_of(laplace_table(Fraction(1)))) > E_TO_MINUS_1000


@pytest.mark.parametrize("scale", [7, 32])
def test_wide_laplace_tables_by_their_closed_form(scale):
    """P(X <= -k) = P(X >= k) = q^k / (1 + q), at some borders."""
    table = laplace_table(Fraction(scale))
    borders, middle = borders_of(table), -table.first
    assert len(borders) < 2**16
    for k in [0, 1, 2, 33, 1000, middle - 1]:
        with localcontext(MORE_DIGITS):
            exact = (Decimal(-k) / scale).exp() / (1 + (Decimal(-1) / scale).exp())
            exact = int(exact * 2**BORDER_BITS)
        assert abs(borders[middle - k] - exact) < 2
        assert abs(2**BORDER_BITS - borders[middle + k - 1] - exact) < 3


@pytest.mark.parametrize(("n", "p"), [(1, "0.9"), (2, "0.5"), (4, "0.25"), (1000, "0.0007")])
def test_binomial_in_fractions(n, p):
    q = Fraction(p)
    exact = {k: int(math.comb(n, k) * q**k * (1 - q) ** (n - k) * FINE) for k in range(min(n, 420) + 1)}
    assert variation(law_of(binomial_table(n, Decimal(p))), exact) < E_TO_MINUS_1000


@pytest.mark.parametrize("bits", [40, 62])
def test_binomial_of_many_trials(bits):
    n, p = 2**bits, Decimal(2) ** -bits
    law = law_of(binomial_table(n, p))
    with localcontext(MORE_DIGITS):
        none = (n * (1 - p).ln()).exp()
        for k in range(5):
            exact = none * math.comb(n, k) * (p / (1 - p)) ** k
            assert abs(law[k] - int(exact * FINE)) < 2 * UNIT
    assert len(law) < 300


def test_a_rare_event_is_kept_and_an_impossible_one_is_not_made_up():
    law = law_of(binomial_table(2**62, Decimal(10) ** -420))
    assert 0 < law[1] < FINE // 10**400
    assert law_of(binomial_table(2**62, Decimal(0))) == {0: FINE}
    assert law_of(laplace_table(Fraction(1, 2**52))) == {0: FINE}


def test_weights_of_any_law():
    law = law_of(as_table(-5, [ONE, 0, 3 * ONE, ONE // 2]))
    assert list(law) == [-5, -4, -3, -2]
    assert all(
        abs(p - ninths * FINE // 9) < 2 * UNIT for p, ninths in zip(law.values(), [2, 0, 6, 1], strict=True)
    )


TABLE_INDEX = numba.njit(samplers.table_index)  # which only kernels call


def index_at(table, number):
    """Run the kernel on the digits of a number below 2**BORDER_BITS; return its value and the digits read."""
    digits = np.frombuffer(number.to_bytes(BORDER_BITS // 8), dtype=">u2").astype(np.uint16)
    cursor = np.array([0, BORDER_BITS], dtype=np.int64)
    value = TABLE_INDEX(digits.view(np.uint64), cursor, table.guide, table.borders)
    return int(value), int(cursor[0]) // 16


CROWDED = as_table(0, [ONE, *[1] * 5, ONE >> 20, ONE >> 1470, ONE >> 1471, ONE, ONE >> 17, ONE])


@pytest.mark.parametrize(
    "table",
    [CROWDED, laplace_table(Fraction(1)), binomial_table(2**30, Decimal(2) ** -31)],
    ids=["crowded", "laplace", "binomial"],
)
def test_borders_are_compared_to_the_last_digit(table):
    borders = borders_of(table)
    for border in borders:
        for number in {border - 1, border, border + 1, border ^ 1 << 700, border ^ 1 << 1450}:
            if 0 <= number < 2**BORDER_BITS:
                value, n_digits = index_at(table, number)
                assert value == sum(other <= number for other in borders)
                assert n_digits <= N_DIGITS
    assert index_at(table, borders[-1])[1] == N_DIGITS


def test_no_more_digits_are_read_than_needed():
    table = as_table(0, [ONE, ONE, ONE])  # borders 0x5555... and 0xAAAA...
    top = BORDER_BITS - 16
    assert index_at(table, 0x1234 << top) == (0, 1)
    assert index_at(table, 0x5555 << top) == (0, 2)
    assert index_at(table, (0x5555_5556 << top) >> 16) == (1, 2)
    assert index_at(table, 0xFFFF << top) == (2, 1)


def test_the_guide_counts_borders_by_their_first_digit():
    first_digits = CROWDED.borders[:, 0].astype(int)
    expected = list(accumulate(np.bincount(first_digits, minlength=2**16).tolist(), initial=0))
    assert CROWDED.guide.tolist() == expected
