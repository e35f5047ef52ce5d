"""Why DPM's interval is not estimated as printed: Lemma 1 fails for two columns (docs/proofs/dpm.md).

The rank of a threshold is the number of gaps at or below it. Lemma 1 says that one row moves it by at most
2 when the gaps of all columns are averaged rank by rank. Pooling them repairs it, with 2 d.
"""

from itertools import product

import numpy as np
import pytest


def gaps(rows):
    """Distances of neighbouring values, column by column, shape (n - 1, d)."""
    return np.diff(np.sort(rows, axis=0), axis=0)


def rank_of_averaged(rows, threshold):
    return int((gaps(rows).mean(axis=1) <= threshold).sum())


def ranks_of_pooled(rows, thresholds):
    return (gaps(rows).ravel() <= np.reshape(thresholds, (-1, 1))).sum(axis=1)


def counter_example():
    """2,001 rows whose gaps are 0, 1, 0, 1, ... in one column and 1, 0, 1, 0, ... in the other."""
    x = np.concatenate([[0], np.cumsum(np.arange(2000) % 2)])
    y = np.concatenate([[0], np.cumsum((np.arange(2000) + 1) % 2)])
    return np.stack([x, y], axis=1), np.array([[x[0], y[-1]]])


def test_one_row_moves_the_rank_of_an_averaged_gap_by_a_thousand():
    rows, newcomer = counter_example()
    assert rows.shape == (2001, 2)
    assert (gaps(rows).mean(axis=1) == 0.5).all()
    before, after = (rank_of_averaged(table, 0.25) for table in (rows, np.concatenate([rows, newcomer])))
    assert (before, after) == (0, 1000)  # Lemma 1 allows 2


def test_pooled_gaps_move_by_at_most_two_per_column_there():
    rows, newcomer = counter_example()
    thresholds = [0.0, 0.25, 0.5, 1.0, 2.0]
    moves = ranks_of_pooled(np.concatenate([rows, newcomer]), thresholds) - ranks_of_pooled(rows, thresholds)
    assert moves.min() >= 0
    assert moves.max() <= 4


@pytest.mark.parametrize("d", [1, 2, 3])
def test_pooled_gaps_move_by_at_most_two_per_column(d):
    """Small random tables, with ties, and every row that may be added: the bound holds and is reached.

    With one column pooling and averaging are the same, and this is what Lemma 1 proves.
    """
    rng, largest = np.random.default_rng(d), 0
    for n, _ in product((0, 1, 2, 3, 6), range(max(60 // d**3, 8))):
        rows = rng.integers(0, 6, size=(n, d))
        before = ranks_of_pooled(rows, range(6))
        for newcomer in product(range(-1, 7), repeat=d):
            moves = ranks_of_pooled(np.vstack([rows, [newcomer]]), range(6)) - before
            assert moves.min() >= 0
            largest = max(largest, moves.max())
    assert largest == 2 * d


def test_averaged_gaps_exceed_two_on_small_tables_too():
    """Eleven rows do: the defect does not need a large table."""
    rows, _ = counter_example()
    small = rows[:11]
    newcomer = np.array([[small[0, 0], small[-1, 1]]])
    move = rank_of_averaged(np.concatenate([small, newcomer]), 0.25) - rank_of_averaged(small, 0.25)
    assert move == 5
