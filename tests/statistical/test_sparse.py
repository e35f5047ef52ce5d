"""The joint law of the sparse histogram against the dense one, with power."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from sfumato.private.mechanisms import samplers
from sfumato.private.mechanisms import sparse_histogram as module
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.sparse_histogram import sparse_histogram, threshold_for

PASS, FAIL = 1e-4, 1e-6
LAPLACE, GAUSSIAN = "discrete Laplace", "discrete Gaussian"
NONE = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
N_GROUPS = 60_000
N_KINDS = 4  # of a cell: dropped, at the threshold, one above, more

each_mechanism = pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])


def noise_law(mechanism, scale):
    x = np.arange(-int(60 * scale) - 60, int(60 * scale) + 61)
    u = np.abs(x) / float(scale)
    weights = np.exp(-u if mechanism == LAPLACE else -u * u / 2)
    return x, weights / weights.sum()


def joint_law(mechanism, scale, threshold, pattern):
    """Probability of every combination of kinds of the cells of a group."""
    x, p = noise_law(mechanism, scale)
    kinds = []
    for raw in pattern:
        noisy = raw + x
        exactly = [p[noisy == threshold + extra].sum() for extra in range(N_KINDS - 2)]
        kinds.append([p[noisy < threshold].sum(), *exactly, p[noisy >= threshold + N_KINDS - 2].sum()])
    return np.array([np.prod(combination) for combination in product(*kinds)])


def pooled_p(codes, law):
    """Chi-square, with all combinations that are expected less than 20 times in one bin."""
    expected = law * codes.size
    observed = np.bincount(codes, minlength=law.size).astype(float)
    bins = np.where(expected < 20, 0, 1 + np.arange(law.size))
    observed, expected = (np.bincount(bins, weights=a)[np.unique(bins)] for a in (observed, expected))
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), observed.size - 1)


def codes_of(cells, counts, threshold, group_size, n_groups):
    kinds = np.zeros(n_groups * group_size, dtype=np.int64)
    kinds[cells] = np.minimum(counts - threshold + 1, N_KINDS - 1)
    return kinds.reshape(n_groups, group_size) @ N_KINDS ** np.arange(group_size - 1, -1, -1)


def many_groups(mechanism, scale, threshold, pattern, seed):
    """One universe of many equal groups: all cells are independent, so groups are."""
    raw = np.tile(pattern, N_GROUPS)
    cells = np.flatnonzero(raw)
    found = sparse_histogram(cells, raw[cells], raw.size, mechanism, scale, threshold, Entropy(seed))
    return codes_of(*found, threshold, len(pattern), N_GROUPS)


CASES = [
    (Fraction(1), 1, [0, 0, 2, 0]),
    (Fraction(1), 3, [1, 0, 0, 4]),
    (Fraction(2), 2, [0, 0, 0, 0]),
    (Fraction(2), 4, [0, 5, 1, 0]),
    (Fraction(7, 3), 5, [0, 3, 0]),
]


@each_mechanism
@pytest.mark.parametrize(("scale", "threshold", "pattern"), CASES)
def test_joint_law(mechanism, scale, threshold, pattern):
    codes = many_groups(mechanism, scale, threshold, pattern, seed=40)
    assert pooled_p(codes, joint_law(mechanism, scale, threshold, pattern)) > PASS


@each_mechanism
@pytest.mark.parametrize(("scale", "threshold", "pattern"), CASES)
@pytest.mark.parametrize("factor", [Fraction(7, 10), Fraction(13, 10)], ids=str)
def test_wrong_scale_is_seen(mechanism, scale, threshold, pattern, factor):
    codes = many_groups(mechanism, factor * scale, threshold, pattern, seed=41)
    assert pooled_p(codes, joint_law(mechanism, scale, threshold, pattern)) < FAIL


@each_mechanism
@pytest.mark.parametrize(("scale", "threshold", "pattern"), [CASES[0], CASES[3]])
def test_noise_of_the_empty_universe_in_occupied_cells_would_be_seen(
    monkeypatch, mechanism, scale, threshold, pattern
):
    def swapped(cells, counts, other_cells, other_counts, *rest):
        return honest(other_cells, other_counts, cells, counts, *rest)

    honest = samplers.merge_above
    monkeypatch.setattr(samplers, "merge_above", swapped)
    codes = many_groups(mechanism, scale, threshold, pattern, seed=42)
    assert pooled_p(codes, joint_law(mechanism, scale, threshold, pattern)) < FAIL


@each_mechanism
def test_positions_that_are_not_distinct_would_be_seen(monkeypatch, mechanism):
    """With replacement, two candidates of a block may share a cell, and the pairs are too few."""

    def merged(fill, size, entropy, n_bits, *law):
        if fill is not samplers.fill_cells:
            return honest(fill, size, entropy, n_bits, *law)
        return np.sort((law[0] << law[1]) + rng.integers(0, 1 << law[1], size))

    honest, rng = module.drawn, np.random.default_rng(0)
    monkeypatch.setattr(module, "drawn", merged)
    scale, threshold, pattern = CASES[2]
    codes = many_groups(mechanism, scale, threshold, pattern, seed=43)
    assert pooled_p(codes, joint_law(mechanism, scale, threshold, pattern)) < FAIL


@each_mechanism
@pytest.mark.parametrize(("threshold", "pattern"), [(1, [0, 0, 2, 0]), (3, [0, 0, 1, 0, 0]), (2, [0])])
def test_joint_law_of_a_universe_of_few_cells(mechanism, threshold, pattern):
    """The whole universe in one group, the last block of which may stick out: one call for each sample."""
    entropy, raw, samples = Entropy(seed=44), np.array(pattern), []
    cells = np.flatnonzero(raw)
    for _ in range(2000):
        found = sparse_histogram(cells, raw[cells], raw.size, mechanism, Fraction(2), threshold, entropy)
        samples.append(codes_of(*found, threshold, len(pattern), 1)[0])
    assert pooled_p(np.array(samples), joint_law(mechanism, Fraction(2), threshold, pattern)) > PASS


HUGE = [
    (LAPLACE, Fraction(1)),
    (LAPLACE, Fraction(10**9, 7)),
    (GAUSSIAN, Fraction(1)),
    (GAUSSIAN, Fraction(40)),
    (GAUSSIAN, Fraction(10**9, 7)),
]


@pytest.mark.parametrize(("mechanism", "scale"), HUGE, ids=str)
def test_a_universe_of_2_to_the_62(mechanism, scale):
    n_cells = 2**62
    threshold = threshold_for(n_cells, mechanism, scale, 200_000)
    cells, counts = sparse_histogram(*NONE, n_cells, mechanism, scale, threshold, Entropy(seed=45))
    mean = n_cells * np.exp(module._NOISES[mechanism].log_passing(scale, threshold))
    assert abs(cells.size - mean) < 5 * mean**0.5
    assert stats.kstest(cells / 2.0**62, "uniform").pvalue > PASS
    assert stats.chisquare(np.bincount(cells % 64, minlength=64)).pvalue > PASS
    # Cells fall into equal stretches as in a Poisson process: the index of dispersion is 1.
    per_stretch = np.bincount(cells >> 46, minlength=2**16)
    dispersion = per_stretch.var() / per_stretch.mean()
    assert abs(dispersion - 1) < 5 * (2 / 2**16) ** 0.5
    assert stats.pearsonr(cells.astype(float), counts.astype(float)).pvalue > PASS


@pytest.mark.parametrize(("mechanism", "scale"), [HUGE[0], HUGE[3], (LAPLACE, Fraction(40))], ids=str)
def test_counts_of_empty_cells_follow_the_tail(mechanism, scale):
    def p_value(drawn_scale):
        n_cells = int(50_000 / np.exp(module._NOISES[mechanism].log_passing(drawn_scale, threshold)))
        _, counts = sparse_histogram(*NONE, n_cells, mechanism, drawn_scale, threshold, Entropy(seed=46))
        excess = np.minimum(counts - threshold, reach)
        return stats.chisquare(np.bincount(excess, minlength=reach + 1), law * excess.size).pvalue

    reach = 3 if scale == 1 else 20
    threshold = threshold_for(2**36, mechanism, scale, 50_000)
    u = (threshold + np.arange(50 * int(scale))) / float(scale)
    weights = np.exp(-(u - u[0]) if mechanism == LAPLACE else -(u * u - u[0] ** 2) / 2)
    law = np.append(weights[:reach], weights[reach:].sum()) / weights.sum()
    assert p_value(scale) > PASS
    for factor in (Fraction(7, 10), Fraction(13, 10)):
        assert p_value(factor * scale) < FAIL
