"""The refinement: what it asks, where centres go, and that noise moves them less than rows do."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.worlds import curate

from sfumato import Ball
from sfumato.budget import Budget, Plan, Record, calibrate
from sfumato.budget.records import Sensitivity
from sfumato.cluster.shared import refine as refine_module
from sfumato.cluster.shared.refine import (
    N_ROUNDS,
    WITHIN_RADIUS,
    _moves,
    merged_into,
    refine,
    refinement_steps,
)
from sfumato.curator import Noisy, NoisySplits, NoisySums
from sfumato.domain import Domain
from sfumato.domain.partitions import Tree, Voronoi
from sfumato.public.kmeans import WeightedCells
from sfumato.public.reach import Reach, distance_edges

SQUARE = Domain.from_bounds((-1, 1), 2)
ENORMOUS = Budget(10**12)
ONE = Record("distances", "discrete Laplace", Sensitivity(), Fraction(1))
CORNERS = np.array([[-0.6, -0.6], [0.6, -0.6], [0.6, 0.6]])


def curator_over(rows, domain=SQUARE, budget=ENORMOUS, *, split=True, seed=0):
    plan = Plan(*refinement_steps(domain, Fraction(1), split=split))
    return curate(rows, domain, calibrate(plan, budget, 1), seed)


def blobs(centers, n=6000, scale=0.06, seed=0):
    rng = np.random.default_rng(seed)
    return np.asarray(centers)[np.arange(n) % len(centers)] + rng.normal(
        scale=scale, size=(n, len(centers[0]))
    )


def farthest(found, wanted):
    """Largest distance from a wanted centre to the nearest found one."""
    return np.sqrt(((np.asarray(wanted)[:, None] - found) ** 2).sum(axis=2)).min(axis=1).max()


@pytest.mark.parametrize("share", [Fraction(1), Fraction(2, 3), Fraction(7, 123)])
@pytest.mark.parametrize("d", [1, 2, 100])
def test_steps(share, d):
    domain = Domain.from_bounds((-1, 1), d)
    rounds = [f"displacements {i}" for i in range(1, N_ROUNDS + 1)]
    for split in (True, False):
        steps = refinement_steps(domain, share, split=split)
        names = [step.name for step in steps]
        assert [name for name in names if not name.startswith("distances")] == (
            rounds + ["cell splits", "cell sizes"] * split
        )
        assert "distances 1" in names
        assert sum(step.share for step in steps) == share
        assert all(step.repeats == 1 for step in steps)
        assert [step.name for step in steps if step.selection] == ["cell splits"] * split


@pytest.mark.parametrize("budget", [Budget(1), Budget(1, 1e-6), Budget(rho="1/10")], ids=str)
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("n", [0, 1, 500])
def test_every_declared_step_is_asked_once(budget, split, n):
    for k in (1, 7):
        asked = curator_over(blobs(CORNERS, n), budget=budget, split=split)
        refine(asked, np.random.default_rng(k).uniform(-1, 1, size=(k, 2)), split=split)
        declared = asked.plan.records()
        assert sorted(record.step for record in asked.records) == sorted(record.step for record in declared)
        assert set(asked.records) == set(declared)


@pytest.mark.parametrize("d", [1, 2, 10])
@pytest.mark.parametrize("split", [False, True])
def test_exact_places_at_an_enormous_budget(d, split):
    """All rows of a cluster in one place: the mean is that place, whatever the start was."""
    places = np.linspace(-0.8, 0.8, 4)[:, None] * np.ones(d)
    rows = places[np.arange(4000) % 4]
    start = np.clip(places + np.random.default_rng(d).uniform(-0.1, 0.1, size=(4, d)), -1, 1)
    model = refine(curator_over(rows, Domain.from_bounds((-1, 1), d), split=split), start, split=split)
    assert model.cluster_centers == pytest.approx(places, abs=1e-6)
    assert model.cluster_sizes == pytest.approx(np.full(4, 1000.0), rel=1e-6)


@pytest.mark.parametrize("split", [False, True])
def test_means_at_an_enormous_budget(split):
    rows = blobs(CORNERS)
    model = refine(curator_over(rows, split=split), CORNERS + np.array([0.1, -0.1]), split=split)
    groups = Voronoi(CORNERS).index(rows)
    means = np.array([rows[groups == g].mean(axis=0) for g in range(3)])
    assert len(model.cluster_centers) == 3
    assert farthest(model.cluster_centers, means) < 0.005  # clipping to the radius moves a mean a little
    assert np.sort(model.cluster_sizes) == pytest.approx(np.full(3, 2000.0), abs=1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("budget", [Budget(1), Budget(1, 1e-6), Budget(rho="1/20")], ids=str)
def test_crude_centres_become_accurate(budget, seed):
    rows = blobs(CORNERS, 15_000)
    start = CORNERS + np.random.default_rng(seed).uniform(-0.25, 0.25, size=(3, 2))
    model = refine(curator_over(rows, budget=budget, seed=seed), start)
    assert farthest(model.cluster_centers, CORNERS) < 0.02 < farthest(start, CORNERS)


def misplaced(centers):
    """A start with two centres in the first cluster and one half-way between the last two."""
    return np.array([*centers[:-2], centers[0] + 0.03, (centers[-2] + centers[-1]) / 2])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("budget", [Budget(2), Budget(2, 1e-6)], ids=str)
@pytest.mark.parametrize("d", [2, 5])
def test_a_centre_that_stands_for_two_clusters_is_split(budget, d, seed):
    """Lloyd's iteration cannot leave such a start; a split can, and the number of centres stays."""
    domain = Domain.from_bounds((-1, 1), d)
    centers = np.zeros((4, d))
    centers[:, :2] = [[-0.7, -0.7], [-0.7, 0.6], [0.7, -0.5], [0.7, 0.5]]
    rows, start = blobs(centers, 16_000, scale=0.05), misplaced(centers)
    split = refine(curator_over(rows, domain, budget, seed=seed), start)
    assert split.cluster_centers.shape == (4, d)
    assert farthest(split.cluster_centers, centers) < 0.05
    plain = refine(curator_over(rows, domain, budget, split=False, seed=seed), start, split=False)
    assert plain.cluster_centers.shape == (4, d)
    assert farthest(plain.cluster_centers, centers) > 0.3


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 12])
@pytest.mark.parametrize("start", ["random", "equal", "border"])
def test_the_number_of_centres_stays(k, start, split):
    rng = np.random.default_rng(k)
    starts = {"random": rng.uniform(-1, 1, size=(k, 2)), "equal": np.zeros((k, 2)), "border": np.ones((k, 2))}
    for budget in (Budget("0.01"), Budget(1), ENORMOUS):
        model = refine(
            curator_over(blobs(CORNERS, 900), budget=budget, split=split), starts[start], split=split
        )
        assert model.cluster_centers.shape == (k, 2)
        assert np.isfinite(model.cluster_centers).all()
        assert (np.abs(model.cluster_centers) <= 1).all()
        assert (model.cluster_sizes >= 0).all()


def test_merge_sees_the_refined_cells_once_and_says_how_many_centres_there_are():
    seen = []

    def to_two(cells):
        seen.append(cells)
        return cells.centers[:2]

    rows = blobs(CORNERS)
    model = refine(curator_over(rows, split=False), CORNERS + 0.1, merge=to_two, split=False)
    assert len(seen) == 1
    assert seen[0].centers.shape == (3, 2)
    assert farthest(seen[0].centers, CORNERS) < 0.01
    assert seen[0].sizes == pytest.approx(np.full(3, 2000.0), abs=1)
    assert model.cluster_centers.shape == (2, 2)
    assert model.cluster_sizes.sum() == pytest.approx(6000, abs=1)  # rows of the third went to these two


def test_the_mean_square_that_merge_sees_is_that_of_the_rows():
    seen = []
    for d in (1, 2, 10):
        domain, centers = Domain.from_bounds((-1, 1), d), np.linspace(-0.5, 0.5, 2)[:, None] * np.ones(d)
        rows = blobs(centers, scale=0.05)
        curator = curator_over(rows, domain, split=False)
        refine(curator, centers, merge=lambda cells: seen.append(cells) or cells.centers, split=False)
        assert seen[-1].mean_square == pytest.approx(d * 0.05**2, rel=0.15)


def test_groups_hold_rows_together_in_the_first_round_only():
    """Three centres in one place: the nearest says nothing, the groups say all."""
    tree = Tree.root().split(np.array([0]), np.array([0]), np.array([0.0]))
    tree = tree.split(np.array([1]), np.array([1]), np.array([0.0]))
    rows, start = blobs(CORNERS), CORNERS[[0, 0, 0]]
    held = refine(curator_over(rows, split=False), start, split=False, groups=tree)
    assert farthest(held.cluster_centers, CORNERS) < 0.01
    loose = refine(curator_over(rows, split=False), start, split=False)
    assert farthest(loose.cluster_centers, CORNERS) > 0.3
    asked = MadeUp(SQUARE, 0)
    refine(asked, start, split=False, groups=tree)
    for step, partition in asked.partitions:
        assert isinstance(partition, Tree if step.endswith(" 1") else Voronoi)


def noisy(sizes, sums, size_std, sum_std):
    sums = np.asarray(sums, dtype=float)
    sizes = np.asarray(sizes, dtype=float)
    return NoisySums(sizes, np.zeros_like(sizes), sums, size_std, np.full(len(sums), float(sum_std)))


def test_without_noise_a_move_is_the_mean():
    assert _moves(noisy([10, 200], [[1.0, 2.0], [-30.0, 0.0]], 0.0, 0.0)) == pytest.approx(
        np.array([[0.1, 0.2], [-0.15, 0.0]])
    )


def test_moves_shrink_as_james_and_stein_say():
    """One minus the squared noise of the mean over its own squared length, and never below nothing."""
    for sum_std, kept in ((0.0, 1.0), (1.0, 1 - 2 / 25), (2.5, 1 - 2 * 6.25 / 25), (4.0, 0.0), (1e9, 0.0)):
        assert _moves(noisy([100], [[3.0, 4.0]], 1.0, sum_std)) == pytest.approx(
            kept * np.array([[0.03, 0.04]])
        )


def test_moves_that_are_nothing_but_noise_are_shorter_than_the_noise():
    rng = np.random.default_rng(0)
    for d in (2, 10, 100):
        noise = rng.normal(scale=5.0, size=(2000, d))
        moves = _moves(noisy(np.full(2000, 50.0), noise, 1.0, 5.0))
        assert (moves**2).sum() < 0.25 * ((noise / 50) ** 2).sum()
        assert (moves == 0).all(axis=1).mean() > 0.4


@pytest.mark.parametrize("seed", range(5))
def test_tiny_sizes_never_blow_up_a_move(seed):
    """Sizes of nothing, below nothing and lost in noise: a move is at most the sum over the noise."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([0.0, -0.0, -1e9, 5e-324, 1e-9, 0.5, 3.0], size=200)
    size_std, sum_std = 10 ** rng.uniform(-9, 6), 10 ** rng.uniform(-9, 6)
    sums = rng.normal(scale=sum_std, size=(200, 3)) * rng.choice([0.0, 1.0, 30.0], size=(200, 1))
    moves = _moves(noisy(sizes, sums, size_std, sum_std))
    longest = np.linalg.norm(sums, axis=1) / max(1.0, 2 * size_std)
    assert np.isfinite(moves).all()
    assert (np.linalg.norm(moves, axis=1) <= longest * (1 + 1e-12)).all()
    assert (moves * sums >= 0).all()  # never backwards


def reach_of(curator):
    """Distances of rows from the origin, as the refinement reads them."""
    origin = np.zeros((1, curator.domain.n_features))
    edges = distance_edges(curator.domain, refine_module.BINS_PER_OCTAVE, refine_module.N_OCTAVES)
    return Reach.read(curator.distances("distances 1", Voronoi(origin), origin, edges).values, edges)


@pytest.mark.parametrize("d", [1, 2, 30])
@pytest.mark.parametrize("scale", [0.5, 0.02, 0.002])
def test_the_radius_holds_most_rows_and_not_many_more(d, scale):
    rng = np.random.default_rng(d)
    rows = rng.normal(scale=scale / np.sqrt(d), size=(5000, d))
    domain = Domain.from_bounds((-4, 4), d)
    reach = reach_of(curator_over(rows, domain))
    radius, mean_square = reach.holding(WITHIN_RADIUS), reach.mean_square
    lengths = np.linalg.norm(rows, axis=1)
    assert (lengths < radius).mean() >= WITHIN_RADIUS - 1e-9
    below = radius * 2.0 ** (-1 / refine_module.BINS_PER_OCTAVE)
    assert (lengths < below).mean() < WITHIN_RADIUS
    assert mean_square == pytest.approx((lengths**2).mean(), rel=0.15)


@pytest.mark.parametrize("rows", [np.empty((0, 2)), np.zeros((300, 2))])
def test_the_radius_of_no_rows_and_of_one_place(rows):
    diameter = 2 * np.sqrt(2)
    for budget in (Budget("0.01"), ENORMOUS):
        for seed in range(5):
            reach = reach_of(curator_over(rows, budget=budget, seed=seed))
            assert 0 < reach.holding(WITHIN_RADIUS) <= reach.holding(1.0) <= diameter
            assert 0 <= reach.mean_square <= diameter**2


def test_merged_into():
    centers, sizes = np.array([[0.0], [0.1], [5.0], [5.2]]), np.array([10.0, 30.0, 5.0, 5.0])
    for n_clusters in (None, 4, 9):
        assert merged_into(centers, sizes, n_clusters) == (centers, sizes)
    merged, weights = merged_into(centers, sizes, 2)
    assert np.sort(merged.ravel()) == pytest.approx([0.075, 5.1])
    assert np.sort(weights) == pytest.approx([10, 40])
    assert merged_into(centers, sizes, 1)[0] == pytest.approx(np.array([[1.08]]))


def test_merged_into_takes_any_released_sizes():
    rng = np.random.default_rng(0)
    for sizes in (np.zeros(9), np.full(9, -5.0), np.eye(9)[0], rng.normal(size=9), np.full(9, 1e12)):
        for centers in (rng.normal(size=(9, 3)), np.zeros((9, 3))):
            merged, weights = merged_into(centers, sizes, 4)
            assert merged.shape == (4, 3)
            assert np.isfinite(merged).all()
            assert (weights >= 0).all()


class MadeUp:
    """Answers questions with invented numbers; there are no rows at all."""

    def __init__(self, domain, seed, scale=1000.0):
        self.domain, self.scale, self.partitions = domain, scale, []
        self.rng = np.random.default_rng(seed)

    def distances(self, step, partition, origins, edges, projection=None):
        self.partitions.append((step, partition))
        return Noisy(np.rint(self.rng.normal(scale=self.scale, size=len(edges) + 1)).astype(np.int64), ONE)

    def sums(self, step, partition, origins, radii, projection=None):
        self.partitions.append((step, partition))
        assert (radii > 0).all()
        sums = self.rng.normal(scale=self.scale, size=origins.shape) * radii[:, None]
        sizes = self.rng.normal(scale=self.scale, size=len(origins))
        std = self.scale * 10 ** self.rng.uniform(-3, 1)
        clipped = self.rng.normal(scale=self.scale, size=len(origins))
        return NoisySums(sizes, clipped, sums, std, std * radii)

    def splits(self, choice_step, size_step, partition, boxes, rule, noisy_sizes):
        low, high = boxes
        assert (low < high).all()
        assert noisy_sizes.dtype == np.int64
        columns = self.rng.integers(low.shape[1], size=len(low))
        at = np.arange(len(low)), columns
        share = self.rng.integers(1, rule.n_bins, size=len(low)) / rule.n_bins
        sizes = np.rint(self.rng.normal(scale=self.scale, size=(len(low), 2))).astype(np.int64)
        return NoisySplits(columns, low[at] + share * (high - low)[at], sizes, self.scale / 10)


@pytest.mark.parametrize(
    "bounds", [(-1, 1), (-1e130, 1e130), (0, 1e-130), ([0, -5], [1e9, 5]), Ball(2.0, 7.0)]
)
@pytest.mark.parametrize("split", [False, True])
def test_any_answers_give_centres_in_the_domain(bounds, split):
    domain = Domain.from_bounds(bounds, 2)
    for seed in range(25):
        asked = MadeUp(domain, seed, scale=10.0 ** np.random.default_rng(seed).uniform(-3, 9))
        start = domain.clip(domain.midpoint + asked.rng.uniform(-1, 1, size=(6, 2)) * domain.half_width)
        model = refine(asked, start, split=split)
        assert model.cluster_centers.shape == (6, 2)
        assert np.isfinite(model.cluster_centers).all()
        slack = 1e-9 * domain.half_width
        assert (model.cluster_centers >= np.array(domain.low) - slack).all()
        assert (model.cluster_centers <= np.array(domain.high) + slack).all()
        assert np.isfinite(model.cluster_sizes).all()
        assert (model.cluster_sizes >= 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_centre_between_many_clusters_is_found_far_and_split(seed):
    """Twelve clusters, one of which has no centre of its own: two share one that lies between them."""
    rng = np.random.default_rng(seed)
    at = rng.permutation([(x, y) for x in (-0.8, -0.3, 0.2, 0.7) for y in (-0.7, 0.0, 0.7)])
    start = np.vstack([at[:10], at[10:].mean(axis=0), at[0] + 0.01])
    model = refine(curator_over(blobs(at)), start)
    assert farthest(model.cluster_centers, at) < 0.05


@pytest.mark.parametrize(("noise", "share"), [(0.0, 1.0), (1e-4, 1.0), (10.0, 0.7)])
def test_the_last_radius_is_small_where_noise_is_large(noise, share):
    lengths = np.linalg.norm(np.random.default_rng(0).normal(size=(20_000, 2)), axis=1)
    edges = 2.0 ** np.arange(-4, 5, 0.25)
    counts = np.append(np.histogram(lengths, np.append(0.0, edges))[0], 0)
    reach = Reach.read(counts, edges)
    assert refine_module.last_radius(reach, noise) == reach.holding(share)


def test_sizes_are_in_doubt_by_no_more_than_all_rows_where_noise_hides_distances():
    for seed in range(20):
        model = refine(curator_over(np.zeros((0, 2)), budget=Budget(1), seed=seed), CORNERS)
        assert (model.size_stds < 1000).all()


def test_rows_that_were_clipped_widen_the_interval_and_all_of_them_hide_the_centre():
    """A released count says how many rows were clipped; if that may be all, nothing is known of the rest."""
    sizes, clipped = np.array([900.0, 900.0, 900.0, 5.0]), np.array([0.0, 300.0, 900.0, 0.0])
    noisy = NoisySums(sizes, clipped, np.zeros((4, 2)), 20.0, np.ones(4))
    found = refine_module._beyond(noisy, np.full(4, 0.1), most=1.4)
    assert 0 <= found[0] < 1e-3
    assert 0.03 < found[1] < 0.04
    assert (found[2:] == 1.4).all()  # all rows may be clipped: most of them, or a size lost in its noise
    assert not refine_module._nearly_all_clipped(noisy)
    assert refine_module._nearly_all_clipped(replace(noisy, clipped=0.88 * sizes))
    assert refine_module._nearly_all_clipped(replace(noisy, sizes=sizes - 900))  # no rows are seen


def test_clipping_moves_a_mean_most_along_the_line_from_the_middle():
    """Rows of an outer group go far on the side where no other group is. A single group has no such side."""
    centers, no_noise = np.array([[0.0, 0.0, 0.0], [0.9, 0.0, 0.0], [0.0, -0.3, -0.3]]), np.full((3, 3), 1e-9)
    found = refine_module._outward(WeightedCells(centers, np.array([900.0, 9.0, 9.0]), 0.01), no_noise)
    assert found.sum(axis=1) == pytest.approx(np.ones(3))
    assert found[1] == pytest.approx([10 / 12, 1 / 12, 1 / 12], abs=0.001)
    assert found[2] == pytest.approx([1 / 12, 5.5 / 12, 5.5 / 12], abs=0.02)
    alone = refine_module._outward(WeightedCells(centers[1:2], np.array([7.3]), 0.01), no_noise[:1])
    assert alone == pytest.approx(np.full((1, 3), 1 / 3))


def test_half_of_the_noise_that_shrinking_takes_away_is_stated():
    still, clear = [[0.0, 0.0]], [[9e5, 0.0]]
    for sums, left in ((still, np.sqrt(0.5)), (clear, 1.0)):
        found = refine_module._of_noise(noisy([1000], sums, 1e-6, 10.0))
        assert found == pytest.approx(np.full((1, 2), left * 0.01), rel=1e-3)
