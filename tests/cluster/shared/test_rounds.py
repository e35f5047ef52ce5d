"""Rounds of k-means in which every cell has a radius of its own."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.budget import Budget, Plan, calibrate
from sfumato.cluster.shared.refine import divisors
from sfumato.cluster.shared.rounds import (
    SCALED_EDGES,
    WITHIN,
    Cells,
    _rescaled,
    moved,
    round_steps,
    scaled_reach,
)
from sfumato.curator import Curator, NoisySums, sums_sensitivity
from sfumato.domain import Domain
from sfumato.domain.partitions import Voronoi
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.mechanisms.entropy import Entropy

DOMAIN = Domain.from_bounds((-1, 1), 2)
CORNERS = np.array([[-0.6, -0.6], [0.6, -0.5], [0.0, 0.7]])
SPREADS = np.array([0.02, 0.1, 0.05])
ENORMOUS = Budget(rho=10**12)


def blobs(n=6000):
    rng = np.random.default_rng(0)
    groups = np.arange(n) % 3
    return CORNERS[groups] + rng.normal(size=(n, 2)) * SPREADS[groups, None], groups


def curator_over(rows, n_rounds=3, budget=ENORMOUS, seed=0, n_columns=2):
    plan = Plan(*round_steps("cell", Fraction(1), n_rounds, sums_sensitivity(DOMAIN, n_columns)))
    return Curator(MemoryEngine(rows, DOMAIN), DOMAIN, calibrate(plan, budget, 1), Entropy(seed))


def cells_at(centers, scale=0.1):
    m = len(centers)
    return Cells(np.asarray(centers, dtype=float), np.ones(m), np.full(m, scale), np.zeros(m), 0.0)


def test_steps_have_the_share():
    steps = round_steps("cell", Fraction(1, 3), 4, sums_sensitivity(DOMAIN))
    assert [step.name for step in steps] == ["cell distances", "cell means"]
    assert sum(step.share for step in steps) == Fraction(1, 3)
    assert {step.repeats for step in steps} == {4}


@pytest.mark.parametrize("budget", [ENORMOUS, Budget(2, 1e-6)], ids=["enormous", "usual"])
def test_centres_move_to_means(budget):
    rows, groups = blobs()
    start = cells_at(CORNERS + 0.05)
    found, _ = moved(curator_over(rows, budget=budget), "cell", 3, start, Voronoi(start.centers), None)
    means = np.array([rows[groups == g].mean(axis=0) for g in range(3)])
    assert np.abs(found.centers - means).max() < 0.02
    assert found.sizes == pytest.approx(np.full(3, 2000.0), rel=0.1)


def test_scales_follow_the_spreads_of_cells():
    """Power: all start alike, and the tightest cell ends with less than half of the loosest."""
    rows, _ = blobs()
    found, _ = moved(curator_over(rows, 12), "cell", 12, cells_at(CORNERS), Voronoi(CORNERS), None)
    assert found.scales.argsort().tolist() == [0, 2, 1]
    assert found.scales[0] < 0.5 * found.scales[1]


def test_rows_are_seen_along_the_projection_alone():
    rows, _ = blobs()
    along = np.array([[1.0, 0.0]])
    start = cells_at([[-0.5], [0.5], [0.1]])
    asked = curator_over(rows, n_columns=1)
    found, _ = moved(asked, "cell", 3, start, Voronoi(start.centers), along)
    assert np.sort(found.centers.ravel()) == pytest.approx(np.sort(CORNERS[:, 0]), abs=0.02)


def test_every_round_is_asked_whatever_the_table():
    for rows in (np.empty((0, 2)), np.zeros((1, 2)), np.full((500, 2), 0.3)):
        for budget in (Budget("0.01"), Budget(1), ENORMOUS):
            asked = curator_over(rows, budget=budget)
            found, synopsis = moved(asked, "cell", 3, cells_at(CORNERS), Voronoi(CORNERS), None)
            assert [record.step for record in asked.records] == ["cell distances", "cell means"] * 3
            assert np.isfinite(found.centers).all()
            assert (found.sizes >= 0).all()
            assert (found.scales > 0).all()
            assert (synopsis.centers == found.centers).all()


def test_distances_are_in_units_of_the_scales():
    rows, _ = blobs()
    cells = cells_at(CORNERS)._replace(scales=SPREADS, noisy_sizes=np.full(3, 2000.0))
    found = scaled_reach(curator_over(rows), "cell distances", Voronoi(CORNERS), cells, None)
    reach = found.reach
    assert found.mean_square(cells)[0] == pytest.approx(2 * (SPREADS**2).mean(), rel=0.1)
    # Rows of all three cells follow one law then, with the quantiles of Rayleigh's.
    for share in (0.5, 0.8):
        assert reach.within(share) == pytest.approx(np.sqrt(-2 * np.log(1 - share)), rel=0.1)
    assert reach.edges is SCALED_EDGES


def noisy(sizes, clipped, size_std=1.0):
    sizes = np.asarray(sizes, dtype=float)
    clipped = np.asarray(clipped, dtype=float)
    return NoisySums(sizes, clipped, np.zeros((len(sizes), 2)), size_std, np.ones(len(sizes)))


def test_sizes_lost_in_noise_are_replaced_by_it():
    assert divisors(noisy([-5, 0, 3, 100], np.zeros(4), 4.0)).tolist() == [8, 8, 8, 100]
    assert divisors(noisy([0.2], [0], 1e-9)).tolist() == [1]


def test_scales_grow_where_many_rows_were_clipped():
    usual = 1 - WITHIN
    scales = _rescaled(np.ones(3), noisy([1e6, 1e6, 1e6], [usual * 1e6, 0, 1e6]))
    assert scales[0] == pytest.approx(1, rel=1e-3)
    assert scales[1] == pytest.approx(np.exp(-usual), rel=1e-3)
    assert scales[2] == pytest.approx(np.exp(WITHIN), rel=1e-3)


def test_scales_of_cells_without_rows_stay():
    scales = _rescaled(np.full(3, 0.3), noisy([0, -50, 0], [0, 0, 0]))
    assert scales == pytest.approx(np.full(3, 0.3))


def test_noise_moves_the_scales_of_empty_cells_both_ways():
    """If only one sign counted, they would grow from round to round."""
    up, down = _rescaled(np.full(2, 0.3), noisy([0, 0], [20, -20]))
    assert down < 0.3 < up
    assert up * down == pytest.approx(0.3**2)
