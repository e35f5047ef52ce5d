from itertools import product

import numpy as np
import pytest

from sfumato.domain import ALL_ROWS, LATTICE_RADIUS, Domain
from sfumato.domain.partitions import Tree
from sfumato.private.aggregates.limbs import LIMB_BITS, as_floats, carried
from sfumato.private.aggregates.sums import COUNT_WEIGHT, GroupedSums

HALF, NOISE = 2 ** (LIMB_BITS - 1), 2**62  # no draw of noise is larger, see docs/proofs/samplers.md
LOWS = [0, 1, -1, HALF - 1, -HALF, HALF // 3, -HALF // 3]
HIGHS = [0, 1, -1, 5, -5, ALL_ROWS]
SUMS = GroupedSums(Tree.root(), np.zeros((1, 2)), np.ones(1))


def limbs(low, high):
    return np.array([[low], [high]], dtype=np.int64)


def entry(state):
    low, high = state.astype(object)
    return (low + high * 2**LIMB_BITS).ravel().tolist()


def limbs_of(value):
    high = (value + HALF) >> LIMB_BITS
    return [[value - (high << LIMB_BITS)], [high]]


@pytest.mark.parametrize(("low", "high"), list(product(LOWS, HIGHS)))
def test_a_carry_keeps_the_entry_and_has_one_form(low, high):
    """Whatever is added, of the size of another limb or of noise: the form is that of the exact entry."""
    for change in (0, 1, -1, HALF - 1, -HALF, NOISE, -NOISE):
        found = carried(limbs(low + change, high))
        assert found.tolist() == limbs_of(low + change + (high << LIMB_BITS))


@pytest.mark.parametrize("other", list(product(LOWS, HIGHS)))
def test_merging_is_exact(other):
    for one in product(LOWS, HIGHS):
        a, b = limbs(*one), limbs(*other)
        assert [entry(a)[0] + entry(b)[0]] == entry(SUMS.merge(a, b))


def test_neighbours_on_both_sides_of_a_carry_give_the_same_floats():
    """The same noisy entry, of raw entries with other high limbs: what comes out must not tell them apart."""
    below, above = limbs(HALF - 1, 0), carried(limbs(HALF, 0))
    assert above[1] == 1
    for draw in (3, -3, 2**40 + 1, -(2**40) - 1, NOISE - 1):
        below_noisy, above_noisy = below.copy(), above.copy()
        below_noisy[0] += draw
        above_noisy[0] += draw - 1
        found, other = as_floats(carried(below_noisy)), as_floats(carried(above_noisy))
        assert found == other == pytest.approx(HALF - 1 + draw, rel=2**-52)


def test_entries_of_one_limb_are_converted_as_int64():
    values = np.array([0, 1, -1, 2**53 + 1, -(2**53) - 1, HALF - 1, -HALF])
    floats = as_floats(np.stack([values, np.zeros_like(values)]))
    assert (floats == values.astype(np.float64)).all()


def test_one_limb_up_to_two_to_the_32_rows():
    """States of such tables are the sums themselves."""
    assert 2**32 * max(LATTICE_RADIUS, COUNT_WEIGHT) <= HALF


@pytest.mark.parametrize("n_rows", [2**33, 10**11, ALL_ROWS])
def test_the_largest_tables_block_by_block(n_rows):
    """States of n - 1 rows at the corner take one row more: sums and counts are exact."""
    rows = np.array([[1.0, 0.0]])
    one = [int(v) for v in SUMS.add(SUMS.zero(), rows)[0, 0]]
    state = np.array([limbs_of(v * (n_rows - 1)) for v in one])[:, :, 0].T[:, None]
    state = SUMS.add(np.ascontiguousarray(state), rows)
    assert entry(state) == [v * n_rows for v in one]
    (size,), _, ((x, y),) = SUMS.unpack(as_floats(state))
    assert size == n_rows
    assert x == pytest.approx(n_rows, rel=1e-8)
    assert y == 0.0


def test_a_block_leaves_room():
    """The largest block of an engine, added to the largest low limb."""
    domain, rows = Domain.from_bounds((-1, 1), 1), np.ones((2**17, 1))
    sums = GroupedSums(Tree.root(), np.zeros((1, 1)), np.ones(1), domain)
    state = sums.zero()
    state[0] = HALF - 1
    one = sums.add(sums.zero(), rows[:1])[0].astype(object)
    assert entry(sums.add(state, rows)) == (HALF - 1 + one * len(rows)).ravel().tolist()
