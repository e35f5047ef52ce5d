"""Marginals and the score of a split: DPM's definitions, in integers, and how far one row can move them.

The twins read rows and the paper's definitions, not histograms. Boxes and rows are multiples of 1/64, so
that every comparison is exact.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.domain import ALL_ROWS
from sfumato.domain.partitions import Subset, Tree, Voronoi
from sfumato.errors import ParameterError
from sfumato.private.aggregates import splits
from sfumato.private.aggregates.splits import Marginals, SplitRule

UNIT = 1024
PAPER = {"t": 0.3, "q": 1 / 12, "alpha": 5.0}
RULES = {
    "paper": SplitRule.of(8, **PAPER, interval=0.25, width_bonus=0.0),
    "several widths": SplitRule.of(32, **PAPER, interval=None, width_bonus=0.1),
    "several widths, no bonus": SplitRule.of(16, **PAPER, interval=None, width_bonus=0.0),
    "as steep inside as outside": SplitRule.of(8, t=0.5, q=0.25, alpha=1.0, interval=0.5, width_bonus=0.0),
    "flat inside": SplitRule.of(8, t=1.0, q=1 / 3, alpha=0.25, interval=2.0, width_bonus=0.0),
    "without emptiness": SplitRule.of(4, t=0.3, q=0.1, alpha=0.0, interval=None, width_bonus=0.3),
    "two bins": SplitRule.of(2, **PAPER, interval=None, width_bonus=0.1),
}
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def unit_box(d, n_bins, n_groups=1):
    return Marginals(Tree.root(), np.zeros((n_groups, d)), np.ones((n_groups, d)), n_bins)


def fold(marginals, rows):
    return marginals.add(marginals.zero(), np.ascontiguousarray(rows, dtype=np.float64))


def scores(rule, rows, noisy_size):
    marginals = unit_box(np.shape(rows)[1], rule.n_bins)
    return rule.scores(marginals, fold(marginals, rows), np.array([noisy_size]))[0]


def table(n, d, seed):
    return np.random.default_rng(seed).integers(-8, 72, size=(n, d)) / 64


def half_widths(rule):
    """Half-widths in bins: of the interval asked for, or powers of two up to an eighth of the box."""
    if rule.interval is not None:
        return [min(max(round(rule.interval / 2 * rule.n_bins), 1), rule.n_bins)]
    return [2**i for i in range(max(1, int(math.log2(rule.n_bins)) - 2))]


def in_interval(column, split, half, n_bins):
    """Rows around a split; a side that reaches the border of the box goes on for ever."""
    low = -math.inf if split - half <= 0 else (split - half) / n_bins
    high = math.inf if split + half >= n_bins else (split + half) / n_bins
    return int(((column >= low) & (column < high)).sum())


def integer_twin(rule, rows, noisy_size):
    """The score with the rule's integer slopes, row by row."""
    size = max(int(noisy_size), 1)
    tail, out = math.floor(rule.tail * size), []
    for column in np.asarray(rows).T:
        for split in range(1, rule.n_bins):
            rank = int((column < split / rule.n_bins).sum())
            smaller = max(min(rank, size - rank), 0)
            balance = rule.tail_slope * min(smaller, tail) + rule.inner_slope * max(smaller - tail, 0)
            gains = [
                math.floor(UNIT * rule.width_bonus * i * size)
                - rule.emptiness * in_interval(column, split, half, rule.n_bins)
                for i, half in enumerate(half_widths(rule))
            ]
            out.append(balance + max(gains))
    return out


def definition_7(rows, noisy_size, n_bins, t, q, alpha, half):
    """f = centreness + alpha emptiness of Definitions 5 to 7, in fractions, without the integer slopes."""
    n, t, q, alpha = (Fraction(value) for value in (noisy_size, t, q, alpha))
    out = []
    for column in np.asarray(rows).T:
        for split in range(1, n_bins):
            rank = int((column < split / n_bins).sum())
            from_border = n / 2 - abs(rank - n / 2)
            if not 0 <= rank <= n:
                centreness = Fraction(0)
            elif n * q < rank < n - n * q:
                centreness = (t - 2 * q) / (1 - 2 * q) + from_border * (1 - t) / (n / 2 - n * q)
            else:
                centreness = from_border * t / (n * q)
            out.append(centreness + alpha * (1 - in_interval(column, split, half, n_bins) / n))
    return out


@every_rule
@pytest.mark.parametrize("noisy_size", [-3, 0, 1, 7, 40, 41, 60, 10**6])
def test_scores_agree_with_the_integer_twin(rule, noisy_size):
    for seed, n in enumerate((0, 1, 40, 200)):
        rows = table(n, 2, seed)
        found = scores(rule, rows, noisy_size)
        assert found.dtype == np.int64
        assert found.tolist() == integer_twin(rule, rows, noisy_size)


@pytest.mark.parametrize(("t", "q", "alpha"), [(0.3, 1 / 12, 5.0), (0.5, 0.25, 1.0), (0.9, 0.01, 0.3)])
@pytest.mark.parametrize("noisy_size", [100, 173, 400])
def test_scores_are_those_of_the_paper_times_the_released_size(t, q, alpha, noisy_size):
    """Rounding the slopes to integers moves a score by at most a thousandth of the size, and one row."""
    rule = SplitRule.of(8, t, q, alpha, 0.25, width_bonus=0.0)
    rows = table(200, 3, seed=0)
    exact = definition_7(rows, noisy_size, 8, t, q, alpha, half=1)
    for found, f in zip(scores(rule, rows, noisy_size), exact, strict=True):
        wanted = UNIT * noisy_size * (f - Fraction(alpha))
        slack = noisy_size / 2 + len(rows) + (rule.tail_slope - rule.inner_slope)
        assert abs(int(found) - wanted) <= slack


@pytest.mark.parametrize("t", [0.2, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.999, 1.0])
def test_valid_parameters_have_the_steeper_slope_outside(t, share):
    rule = SplitRule.of(16, t, t / 2 * share if t < 1 else 0.49 * share, 5.0, None, 0.0)
    assert rule.tail_slope >= rule.inner_slope >= 0


def changes(rule, base, rows, noisy_size):
    before = scores(rule, base, noisy_size)
    for row in rows:
        yield scores(rule, np.concatenate([base, row[None, :]]), noisy_size) - before


PLACES = [-1e300, 0.0, 5e-324, 0.25, 31 / 64, 0.5, 0.75, 63 / 64, 1.0, 1e300]
NEWCOMERS = np.array(list(product(PLACES, repeat=2)))


@every_rule
def test_one_row_moves_scores_within_the_proved_range_and_reaches_it(rule):
    """Neighbours by brute force: tables times added rows times released sizes, which may be far off."""
    a, e = rule.tail_slope, rule.emptiness
    assert rule.sensitivity.spread == 2 * a + e
    lowest = highest = spread = 0
    for seed, n in enumerate((0, 2, 30)):
        spreads_out = table(n, 2, seed)
        for base in (spreads_out, np.zeros((n, 2)), np.tile([0.0, 63 / 64], (n, 1))):
            for noisy_size in {-5, n // 2, n, n + 1, 10**5}:
                for change in changes(rule, base, NEWCOMERS, noisy_size):
                    lowest, highest = min(lowest, int(change.min())), max(highest, int(change.max()))
                    spread = max(spread, int(change.max()) - int(change.min()))
    assert lowest >= -(a + e)
    assert highest <= a
    assert spread <= 2 * a + e
    # Where an interval is as wide as the box, a row that raises the balance also lies in the interval.
    everywhere = min(half_widths(rule)) >= rule.n_bins - 1
    reached = (-(a + e), max(a - e, 0), 2 * a) if everywhere else (-(a + e), a, 2 * a + e)
    assert (lowest, highest, spread) == reached


@every_rule
def test_removing_a_row_is_adding_it_in_reverse(rule):
    rows = table(12, 2, seed=9)
    for i in range(len(rows)):
        change = scores(rule, np.delete(rows, i, axis=0), 12) - scores(rule, rows, 12)
        assert change.min() >= -rule.tail_slope
        assert change.max() <= rule.tail_slope + rule.emptiness
        assert change.max() - change.min() <= rule.sensitivity.spread


def test_all_small_histograms():
    """Two columns of four bins: every histogram of up to 3 rows, every added row, several sizes."""
    rule = SplitRule(4, tail_slope=7, inner_slope=3, emptiness=5, tail=0.34, width_bonus=0.01, interval=None)
    marginals, spread = unit_box(2, 4), 0
    columns = [np.array(c) for c in product(range(4), repeat=4) if sum(c) <= 3]
    pairs = [np.stack(pair)[None] for pair in product(columns, repeat=2) if pair[0].sum() == pair[1].sum()]
    for size in (-1, 1, 2, 3, 6):
        for raw in pairs[:: 1 if size == 3 else 7]:
            before = rule.scores(marginals, raw, np.array([size]))
            for bins in product(range(4), repeat=2):
                after = raw.copy()
                after[0, [0, 1], bins] += 1
                change = rule.scores(marginals, after, np.array([size])) - before
                assert change.min() >= -12
                assert change.max() <= 7
                spread = max(spread, int(np.ptp(change)))
    assert spread == rule.sensitivity.spread == 19


@pytest.mark.parametrize("m", [2, 4])
def test_a_person_of_several_rows(m):
    rule, rng = RULES["several widths"], np.random.default_rng(m)
    allowed, found = rule.sensitivity.times(m).spread, 0
    persons = [NEWCOMERS[rng.integers(len(NEWCOMERS), size=m)] for _ in range(300)]
    persons += [np.repeat(row[None, :], m, axis=0) for row in NEWCOMERS]
    for base in (table(30, 2, seed=4), np.tile([0.0, 63 / 64], (200, 1))):
        before = scores(rule, base, len(base))
        for person in persons:
            change = scores(rule, np.concatenate([base, person]), len(base)) - before
            found = max(found, int(np.ptp(change)))
    assert allowed / 2 < found <= allowed


def test_a_row_moves_the_scores_of_its_own_group_only():
    tree = Tree.root().split(np.array([0]), np.array([0]), np.array([0.5]))
    low, high = np.array([[0.0, 0.0], [0.5, 0.0]]), np.array([[0.5, 1.0], [1.0, 1.0]])
    marginals, rule = Marginals(tree, low, high, 8), RULES["paper"]
    rows = table(50, 2, seed=5)
    sizes = np.array([20, 25])
    before = rule.scores(marginals, fold(marginals, rows), sizes)
    for row in NEWCOMERS:
        after = rule.scores(marginals, fold(marginals, np.concatenate([rows, row[None, :]])), sizes)
        touched = (after != before).any(axis=1)
        assert not touched[1 - tree.index(row[None, :])[0]]


def test_marginals_by_eye():
    marginals = Marginals(Tree.root(), np.array([[0.0, 10.0]]), np.array([[4.0, 20.0]]), 4)
    counts = fold(marginals, [[0.0, 10.0], [0.5, 19.9], [3.0, 25.0], [-7.0, 12.5], [4.0, 12.4]])
    assert counts.dtype == np.int64
    assert counts.tolist() == [[[3, 0, 0, 2], [2, 1, 0, 2]]]


def test_split_numbers_name_a_column_and_a_border():
    marginals = Marginals(Tree.root(), np.array([[0.0, 10.0]]), np.array([[4.0, 20.0]]), 4)
    found = [marginals.split_at(np.array([choice])) for choice in range(6)]
    assert [(int(c[0]), float(x[0])) for c, x in found] == [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 12.5),
        (1, 15),
        (1, 17.5),
    ]
    assert found[0][0].dtype == np.int64


@pytest.mark.parametrize("n_bins", [2, 5, 16])
def test_sides_are_the_leaves_of_the_split_tree(n_bins):
    rng = np.random.default_rng(n_bins)
    rows = rng.uniform(-1.2, 1.2, size=(400, 3))
    tree = Tree.root().split(np.array([0]), np.array([1]), np.array([0.1]))
    low, high = np.full((2, 3), -1.0), np.ones((2, 3))
    low[1, 1] = high[0, 1] = 0.1
    marginals = Marginals(tree, low, high, n_bins)
    raw_counts = fold(marginals, rows)
    for _ in range(10):
        chosen = rng.integers(3 * (n_bins - 1), size=2)
        sides = marginals.sides(raw_counts, chosen)
        children = tree.split(np.array([0, 1]), *marginals.split_at(chosen))
        assert sides.dtype == np.int64
        assert sides.T.ravel().tolist() == np.bincount(children.index(rows), minlength=4).tolist()
        assert sides.sum(axis=1).tolist() == np.bincount(tree.index(rows), minlength=2).tolist()


def test_sides_of_a_public_choice_have_the_sensitivity_of_a_count():
    rows, marginals = table(30, 2, seed=6), unit_box(2, 8)
    whole = fold(marginals, rows)
    for choice in range(2 * 7):
        for row in NEWCOMERS[::7]:
            after = fold(marginals, np.concatenate([rows, row[None, :]]))
            change = marginals.sides(after, np.array([choice])) - marginals.sides(whole, np.array([choice]))
            assert sorted(change.ravel().tolist()) == [0, 1]


def test_a_gap_between_two_clusters_wins():
    rng = np.random.default_rng(7)
    rows = np.concatenate([rng.normal(0.25, 0.05, (500, 2)), rng.normal((0.25, 0.75), 0.05, (400, 2))])
    for rule in (RULES["paper"], RULES["several widths"]):
        best = int(scores(rule, rows, 900).argmax())
        column, border = divmod(best, rule.n_bins - 1)
        assert column == 1
        assert 0.4 <= (border + 1) / rule.n_bins <= 0.6


def test_wider_empty_intervals_are_preferred_only_with_a_bonus():
    """Rows at both ends: without a bonus all inner splits of equal rank tie, with one the middle wins."""
    rows = np.repeat([[0.0], [63 / 64]], 50, axis=0)
    middle = slice(4, 27)  # splits whose widest interval touches no row
    plain = SplitRule.of(32, **PAPER, interval=None, width_bonus=0.0)
    rewarded = SplitRule.of(32, **PAPER, interval=None, width_bonus=0.1)
    assert len(set(scores(plain, rows, 100)[1:-1].tolist())) == 1
    found = scores(rewarded, rows, 100)
    assert len(set(found[middle].tolist())) == 1
    assert found[middle].min() > found[[1, 2, 28, 29]].max()


def test_the_interval_follows_the_units_of_the_data():
    """The same picture in other units: a fixed interval scales with it, several widths need no units."""
    rows = table(100, 2, seed=8)
    for factor in (0.5, 4.0):
        large = Marginals(Tree.root(), np.zeros((1, 2)), np.full((1, 2), factor), 8)
        for interval in (0.25, None):
            rule = SplitRule.of(8, **PAPER, interval=interval, width_bonus=0.1)
            scaled = SplitRule.of(8, **PAPER, interval=interval and interval * factor, width_bonus=0.1)
            found = scaled.scores(large, fold(large, rows * factor), np.array([100]))[0]
            assert (found == scores(rule, rows, 100)).all()


def test_kernel_without_the_compiler(monkeypatch):
    rows = table(100, 2, seed=1)
    expected = {name: scores(rule, rows, 90).tolist() for name, rule in RULES.items()}
    monkeypatch.setattr(splits, "_score_splits", splits._score_splits.py_func)
    assert {name: scores(rule, rows, 90).tolist() for name, rule in RULES.items()} == expected


@pytest.mark.parametrize("size", [1, 90, 2**60])
def test_few_splits_are_scored_by_numpy(size, monkeypatch):
    rows = table(100, 2, seed=1)
    expected = {name: scores(rule, rows, size).tolist() for name, rule in RULES.items()}
    monkeypatch.setattr(splits, "MANY_SPLITS", 2**30)
    assert {name: scores(rule, rows, size).tolist() for name, rule in RULES.items()} == expected


TWO = Tree.root().split(np.array([0]), np.array([0]), np.array([0.5]))


@pytest.mark.parametrize("shape", [(1, 2), (3, 2), (2,), (0, 2), (2, 2, 2)])
def test_boxes_of_another_shape_are_refused(shape):
    with pytest.raises(ParameterError, match=r"^`low` must have shape \(2, \d\), got \("):
        Marginals(TWO, np.zeros(shape), np.ones(shape), 4)


@pytest.mark.parametrize("shape", [(1, 2), (2, 3), (2,), (2, 1)])
def test_the_two_ends_of_boxes_must_agree(shape):
    with pytest.raises(ParameterError, match=r"^`high` must have shape \(2, 2\), got \("):
        Marginals(TWO, np.zeros((2, 2)), np.ones(shape), 4)


@pytest.mark.parametrize("d", [1, 3])
def test_rows_of_other_columns_are_refused(d):
    marginals = unit_box(2, 4)
    with pytest.raises(ParameterError, match=r"^rows must have 2 columns"):
        marginals.add(marginals.zero(), np.zeros((5, d)))


@pytest.mark.parametrize("sizes", [[1], [1, 2, 3], [[1, 2]], []])
def test_sizes_of_other_groups_are_refused(sizes):
    marginals = Marginals(TWO, np.zeros((2, 2)), np.ones((2, 2)), 8)
    with pytest.raises(ParameterError, match=r"^`noisy_sizes` must have shape \(2,\), got \("):
        RULES["paper"].scores(marginals, marginals.zero(), np.array(sizes, dtype=np.int64))


@every_rule
def test_released_sizes_beyond_all_tables_are_clamped(rule):
    """Scores are those of 2^40 rows: far from the limits of int64, and moved by one row as ever."""
    rows = table(60, 2, seed=3)
    most = scores(rule, rows, ALL_ROWS)
    assert most.tolist() == integer_twin(rule, rows, ALL_ROWS)
    assert np.abs(most).max() < 2**55
    for size in (ALL_ROWS + 1, 2**50, 2**62, 2**63 - 1):
        assert (scores(rule, rows, size) == most).all()
    least = scores(rule, rows, 1)
    for size in (0, -1, -ALL_ROWS, -(2**63)):
        assert (scores(rule, rows, size) == least).all()


@every_rule
@pytest.mark.parametrize("size", [2**40, 2**62, 2**63 - 1, -(2**63)])
def test_one_row_moves_scores_of_extreme_sizes_within_the_proved_range(rule, size):
    for base in (table(20, 2, seed=0), np.zeros((0, 2)), np.zeros((20, 2))):
        for change in changes(rule, base, NEWCOMERS[::3], size):
            assert change.min() >= -(rule.tail_slope + rule.emptiness)
            assert change.max() <= rule.tail_slope
            assert int(change.max()) - int(change.min()) <= rule.sensitivity.spread


def test_scores_of_the_largest_table_do_not_overflow():
    """Counts of 2^40 rows in every column, against the same scores in Python integers."""
    rule, marginals = RULES["several widths"], unit_box(2, 32)
    for at in (0, 15, 31):
        raw = marginals.zero()
        raw[:, :, at], raw[0, 1, 0] = ALL_ROWS - 7, 7 + (ALL_ROWS - 7) * (at == 0)
        found = rule.scores(marginals, raw, np.array([ALL_ROWS]))[0]
        below = np.cumsum(raw[0], axis=1).tolist()
        tail = math.floor(rule.tail * ALL_ROWS)
        for j, border in product(range(2), range(1, 32)):
            smaller = max(0, min(below[j][border - 1], ALL_ROWS - below[j][border - 1]))
            balance = rule.tail_slope * min(smaller, tail) + rule.inner_slope * max(smaller - tail, 0)
            gains = []
            for i, half in enumerate(half_widths(rule)):
                first, last = max(0, border - half), min(32, border + half)
                rows_within = below[j][last - 1] - (below[j][first - 1] if first else 0)
                gains.append(
                    math.floor(UNIT * rule.width_bonus * i * ALL_ROWS) - rule.emptiness * rows_within
                )
            assert int(found[j * 31 + border - 1]) == balance + max(gains)


@pytest.mark.parametrize("alpha", [5.0, 1000.0, 2.0**30])
def test_scores_of_more_rows_than_anybody_has_are_clamped_and_move_as_ever(alpha):
    """Privacy must not depend on the number of rows: one more never wraps a score around."""
    rule = SplitRule.of(8, **(PAPER | {"alpha": alpha}), interval=None, width_bonus=0.1)
    marginals = unit_box(2, 8)
    for count in (ALL_ROWS, 2**50, 2**59, 2**61 // rule.emptiness // 8):
        raw = marginals.zero() + count
        found = rule.scores(marginals, raw, np.array([2**62]))[0]
        assert np.abs(found.astype(object)).max() < 2**62
        for j, b in product(range(2), range(8)):
            more = raw.copy()
            more[0, j, b] += 1
            change = rule.scores(marginals, more, np.array([2**62]))[0] - found
            assert change.min() >= -(rule.tail_slope + rule.emptiness)
            assert change.max() <= rule.tail_slope


def test_no_groups():
    nobody = Marginals(Subset(TWO, np.empty(0, dtype=np.int64)), np.empty((0, 2)), np.empty((0, 2)), 8)
    raw = fold(nobody, table(50, 2, seed=0))
    assert raw.shape == (0, 2, 8)
    none = np.empty(0, dtype=np.int64)
    for rule in (RULES["paper"], SplitRule.of(8, **PAPER, interval=None, width_bonus=0.1)):
        assert rule.scores(nobody, raw, none).shape == (0, 2 * 7)
    columns, thresholds = nobody.split_at(none)
    assert columns.shape == thresholds.shape == (0,)
    assert nobody.sides(raw, none).shape == (0, 2)


def test_rows_in_no_group_are_in_no_bin():
    some = Marginals(Subset(TWO, np.array([1])), np.array([[0.5, 0.0]]), np.ones((1, 2)), 4)
    counts = fold(some, [[0.1, 0.1], [0.6, 0.1], [0.9, 0.9], [0.2, 0.9]])
    assert counts.tolist() == [[[1, 0, 0, 1], [1, 0, 0, 1]]]
    assert some.sides(counts, np.array([4])).sum() == 2


@pytest.mark.parametrize("width", [0.0, 5e-324, 1e-300])
def test_boxes_of_no_width_have_their_rows_in_the_border_bins(width):
    """Rows on the one side and on the other are told apart, and nothing is divided by nothing."""
    low = np.array([[0.5, 0.0]])
    marginals = Marginals(Tree.root(), low, low + np.array([[width, 1.0]]), 4)
    rows = [[0.5, 0.1], [0.25, 0.3], [0.75, 0.6], [1e300, 0.9], [-1e300, 0.9]]
    assert fold(marginals, rows).tolist() == [[[3, 0, 0, 2], [1, 1, 1, 2]]]
    for interval in (None, 0.25, 5e-324):
        rule = SplitRule.of(4, **PAPER, interval=interval, width_bonus=0.1)
        found = rule.scores(marginals, fold(marginals, rows), np.array([5]))
        assert found.shape == (1, 6)
        columns, thresholds = marginals.split_at(np.array([1]))
        assert (columns.tolist(), thresholds.tolist()) == ([0], [pytest.approx(0.5)])


def test_one_row_moves_marginals_of_flat_boxes_by_one_per_column():
    low = np.zeros((2, 2))
    marginals = Marginals(Voronoi(np.array([[0.0, 0.0], [1.0, 1.0]])), low, low, 4)
    rows = table(20, 2, seed=1)
    for row in NEWCOMERS:
        change = fold(marginals, np.concatenate([rows, row[None, :]])) - fold(marginals, rows)
        assert change.sum() == np.abs(change).sum() == 2
        assert (change.sum(axis=(0, 2)) == 1).all()


STEEPER_INSIDE = {
    "a little": SplitRule(8, 100, 130, 50, 0.25, 0.0, 0.25),
    "much": SplitRule(8, 10, 1000, 5, 0.1, 0.1, None),
    "flat tail": SplitRule(4, 0, 64, 0, 0.3, 0.0, None),
    "of the paper, with t < 2 q": SplitRule.of(8, t=0.1, q=0.25, alpha=1.0, interval=None, width_bonus=0.0),
}


@pytest.mark.parametrize("rule", STEEPER_INSIDE.values(), ids=STEEPER_INSIDE)
def test_a_rule_that_is_steeper_inside_declares_its_steeper_slope(rule):
    """The estimators refuse such rules; the declared range holds for them all the same, and is reached."""
    assert rule.inner_slope > rule.tail_slope
    assert rule.sensitivity.spread == 2 * rule.inner_slope + rule.emptiness
    spread = 0
    for n in (0, 5, 30):
        for base in (table(n, 2, n), np.zeros((n, 2)), np.tile([0.0, 63 / 64], (n, 1))):
            for size in (1, n, n + 1, 2 * n + 10):
                for change in changes(rule, base, NEWCOMERS, size):
                    spread = max(spread, int(np.ptp(change)))
                    assert change.min() >= -(rule.inner_slope + rule.emptiness)
                    assert change.max() <= rule.inner_slope
    assert 0.9 * rule.sensitivity.spread <= spread <= rule.sensitivity.spread
