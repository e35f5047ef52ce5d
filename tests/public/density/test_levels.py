"""Clusters of noisy histograms: hills, even clouds, noise alone, and every way to cut the tree."""

import math
import warnings

import numpy as np
import pytest
from scipy.ndimage import generate_binary_structure, label

from sfumato.domain import Grid
from sfumato.domain.nested import NestedGrid
from sfumato.public.density import levels as levels_module
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.levels import Levels, cut_levels, noise_in_empty_places
from sfumato.public.density.nested import NestedHistogram
from sfumato.public.models import DensityModel

LAPLACE, GAUSSIAN = "discrete Laplace", "discrete Gaussian"
SHAPES = {1: (60,), 2: (25, 20), 3: (10, 9, 8)}
every_d = pytest.mark.parametrize("d", SHAPES)
every_mechanism = pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])


def grid_of(shape):
    return Grid((0.0,) * len(shape), tuple(map(float, shape)), shape)


def noise(rng, size, scale, mechanism=LAPLACE):
    if mechanism == GAUSSIAN:
        return np.round(rng.normal(scale=scale, size=size)).astype(np.int64)
    p = 1 - math.exp(-1 / scale)
    return rng.geometric(p, size) - rng.geometric(p, size)


def released(raw, rng, scale=1.0, mechanism=LAPLACE):
    """Counts of cells of width 1, with noise."""
    noisy = raw.astype(np.int64) + noise(rng, raw.shape, scale, mechanism)
    return NestedHistogram.plain(NoisyHistogram(grid_of(raw.shape), noisy.ravel(), mechanism, scale))


def counted(rows, shape):
    return np.histogramdd(rows, bins=[np.arange(m + 1) for m in shape])[0]


def two_hills(rng, d, sizes=(800, 800)):
    sides = np.array(SHAPES[d])
    return np.concatenate(
        [rng.normal(c * sides, sides / 10, size=(n, d)) for c, n in zip((0.3, 0.7), sizes, strict=True)]
    )


def hills(d, seed=0, scale=1.0, mechanism=LAPLACE, sizes=(800, 800)):
    rng = np.random.default_rng(seed)
    return released(counted(two_hills(rng, d, sizes), SHAPES[d]), rng, scale, mechanism)


def nested_hills(d, seed=0):
    """The same hills, counted by an outline and by leaves: more of them where there are more rows."""
    rng = np.random.default_rng(seed)
    coarse = Grid((0.0,) * d, tuple(map(float, SHAPES[d])), ({1: 15, 2: 8, 3: 5}[d],) * d)
    rows = two_hills(rng, d)
    raw_outline = np.bincount(coarse.index(rows), minlength=coarse.n_cells)
    outline = raw_outline + noise(rng, coarse.n_cells, 2.0)
    nested = NestedGrid(coarse, np.where(outline > 20, 2, np.where(outline > 8, 1, 0)), 2)
    raw_counts = np.bincount(nested.index(rows), minlength=nested.n_cells)
    return NestedHistogram(nested, raw_counts + noise(rng, nested.n_cells, 1.0), LAPLACE, 1.0, outline, 2.0)


def constant(count, shape=(12, 10), scale=1.0, mechanism=LAPLACE):
    counts = np.full(math.prod(shape), count, dtype=np.int64)
    return NestedHistogram.plain(NoisyHistogram(grid_of(shape), counts, mechanism, scale))


@every_d
@every_mechanism
@pytest.mark.parametrize("seed", range(3))
def test_two_hills_are_two_clusters(d, mechanism, seed):
    model = DensityModel.of(Levels(hills(d, seed, mechanism=mechanism)), 1.0, "euclidean")
    assert model.regions.n_spans == 2
    tops = np.array(SHAPES[d]) * np.array([[0.3], [0.7]])
    assert sorted(model.predict(tops)) == [0, 1]
    corners = np.array(SHAPES[d]) * np.array([[0.02], [0.98]])
    assert model.cut(edge=0.2).predict(corners).tolist() == [-1, -1]  # by default, tails belong to a hill
    assert (model.strength(tops) > 0.5).all()
    for span in model.spans:
        assert span.count == pytest.approx(800, rel=0.12)


@every_d
@pytest.mark.parametrize("seed", range(3))
def test_two_hills_in_nested_cells(d, seed):
    histogram = nested_hills(d, seed)
    assert len(set(histogram.nested.depths)) >= 2
    model = DensityModel.of(Levels(histogram), 1.0, "euclidean")
    assert model.regions.n_spans == 2
    tops = np.array(SHAPES[d]) * np.array([[0.3], [0.7]])
    assert sorted(model.predict(tops)) == [0, 1]
    for span in model.spans:
        assert span.count == pytest.approx(800, rel=0.12)
    owner = np.full(histogram.grid.n_cells, -1)
    owner[model.regions.cells] = model.regions.labels
    for leaf in range(histogram.nested.n_cells):
        assert len(set(owner[histogram.nested.leaves == leaf])) == 1


@every_d
@pytest.mark.parametrize("rows_per_cell", [2, 50])
def test_an_even_cloud_is_hardly_ever_split(d, rows_per_cell):
    found = []
    for seed in range(20):
        rng, shape = np.random.default_rng(seed), {1: (60,), 2: (25, 25), 3: (10, 10, 10)}[d]
        raw = rng.poisson(rows_per_cell, shape)
        found.append(cut_levels(Levels(released(raw, rng)), 1.0).n_spans)
    assert min(found) >= 1
    assert np.mean(np.array(found) > 1) <= 0.1


@every_mechanism
@pytest.mark.parametrize("shape", [(100,), (30, 30), (9, 9, 9)], ids=str)
def test_noise_alone_makes_no_cluster(mechanism, shape):
    """The stated chance is 2 % for the whole domain."""
    rng, n = np.random.default_rng(0), 200
    levels = [Levels(released(np.zeros(shape), rng, 3.0, mechanism)) for _ in range(n)]
    largest = np.array([each.evidence.max() for each in levels])
    most = 0.02 + 3 * math.sqrt(0.02 / n)
    assert np.mean(largest >= 1) <= 0.1  # kernels weigh unevenly: more often than the 2 %, but still seldom
    assert np.mean(largest >= 0.6) > 0.1  # much lower would not do
    assert np.mean([cut_levels(each, 1.0).n_spans > 0 for each in levels]) <= most
    assert np.mean([cut_levels(each, 1.0, n_clusters=5).n_spans > 0 for each in levels]) <= most
    assert np.mean([cut_levels(each, 1.0, level=1e-3).n_spans > 0 for each in levels]) <= most


@every_mechanism
@pytest.mark.parametrize("n_counts", [1, 7, 64])
def test_what_is_unlikely_is_unlikely(mechanism, n_counts):
    """Chernoff's bound for one of four cells is at least the quantile, and not much more."""
    rng, n = np.random.default_rng(0), 200_000
    limit = Levels(constant(0, (4,), 2.0, mechanism)).unlikely(np.array([float(n_counts)]))[0]
    noisy = sum(noise(rng, n, 2.0, mechanism) for _ in range(n_counts))
    variance = NoisyHistogram(grid_of((1,)), np.zeros(1, dtype=np.int64), mechanism, 2.0).variance
    sums = noisy / math.sqrt(n_counts * variance)
    assert np.mean(sums > limit) <= 0.02 / 4
    assert np.mean(sums > 0.5 * limit) > 0.02 / 4


@pytest.mark.parametrize("scale", [1e-4, 1.0])
def test_sampling_has_a_limit_of_its_own(scale):
    """However small the noise is, rows that are there anyway vary as counts do, and not more."""
    levels = Levels(constant(0, (30, 30), scale))
    n, anyway = np.array([50.0]), np.array([40.0])
    limit = levels.by_chance(n, np.zeros(1), anyway)[0]
    drawn = np.random.default_rng(0).poisson(40.0, 100_000) - 40.0
    assert np.mean(drawn > limit) <= 0.02 / 900 + 3e-5
    assert limit < 6 * math.sqrt(40.0)
    added = levels.by_chance(n, np.ones(1), np.zeros(1))[0]
    assert levels.by_chance(n, np.ones(1), anyway)[0] == pytest.approx(math.hypot(limit, added))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("count", [0, -3])
@pytest.mark.parametrize("shape", [(1,), (40,), (1, 1), (1, 30), (30, 1), (12, 10), (3, 1, 4)], ids=str)
def test_no_rows(shape, count, scale):
    histogram = constant(count, shape, scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DensityModel.of(Levels(histogram), 1.0, "euclidean")
        tree = model.tree
        cuts = [model, *(model.cut(**cut) for cut in ({"n_clusters": 3}, {"level": 1.0}, {"edge": 0.5}))]
    assert [cut.regions.n_spans for cut in cuts] == [0] * 4
    assert [cut.spans for cut in cuts] == [()] * 4
    rows = np.ones((2, len(shape)))
    assert model.predict(rows).tolist() == [-1, -1]
    assert model.strength(rows).tolist() == [0, 0]
    assert tree.positions.shape == (len(tree.heights), len(shape))
    assert np.isfinite(tree.heights).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0])
@pytest.mark.parametrize("shape", [(1,), (40,), (1, 1), (1, 30), (30, 1), (12, 10), (3, 1, 4)], ids=str)
def test_even_counts_are_one_cluster(shape, scale):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regions = cut_levels(Levels(constant(1000, shape, scale)), 1.0)
    assert regions.n_spans == 1
    assert regions.counts[0, 0] == pytest.approx(1000 * math.prod(shape), rel=0.1)


@pytest.mark.parametrize("scale", [1e-3, 1.0])
def test_rows_in_one_cell(scale):
    histogram = constant(0, (15, 15), scale)
    histogram.counts[7 * 15 + 7] = 5000
    regions = cut_levels(Levels(histogram), 1.0)
    assert regions.n_spans == 1
    assert regions.predict(np.array([[7.5, 7.5], [0.5, 0.5]])).tolist() == [0, -1]
    assert regions.counts[0, 0] == pytest.approx(5000, rel=0.02)


@pytest.mark.parametrize("edge", [None, 0.2])
def test_a_thin_ring_in_noise_is_one_cluster(edge):
    found, inside, middle = [], [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        angle = rng.uniform(0, 2 * np.pi, 2000)
        ring = 20 + 14 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        ring += rng.normal(scale=0.6, size=ring.shape)
        around = rng.uniform(0, 40, size=(400, 2))
        regions = cut_levels(
            Levels(released(counted(np.concatenate([ring, around]), (40, 40)), rng)), 1.0, edge=edge
        )
        found.append(regions.n_spans)
        inside.append((regions.predict(ring) >= 0).mean())
        middle.append(regions.predict(np.array([[20.0, 20.0]]))[0])
    assert np.mean(np.array(found) == 1) >= 0.9
    assert np.mean(inside) > 0.8
    assert middle == [-1] * 10


@every_d
def test_parents_are_higher_and_saddles_lower(d):
    for histogram in (hills(d), nested_hills(d)):
        tree = Levels(histogram).published
        has_parent = tree.parents >= 0
        assert has_parent.any()
        assert (~has_parent).sum() == 1
        assert (np.diff(tree.heights) <= 0).all()
        assert (tree.heights[tree.parents[has_parent]] >= tree.heights[has_parent]).all()
        assert (tree.parents[has_parent] < np.flatnonzero(has_parent)).all()
        assert (tree.saddles <= tree.heights).all()
        assert (tree.saddles[has_parent] > 0).all()
        assert (tree.saddles[~has_parent] == 0).all()
        assert (tree.prominences >= 0).all()
        assert np.isinf(tree.prominences[~has_parent]).all()
        assert (tree.prominences[has_parent] >= 1).sum() >= 1


@every_d
def test_heights_are_the_density_at_the_positions(d):
    for histogram in (hills(d), nested_hills(d)):
        levels = Levels(histogram)
        tree = levels.published
        np.testing.assert_allclose(levels.density[histogram.grid.index(tree.positions)], tree.heights)
        assert tree.heights[0] == levels.density.max()
        assert len(tree.heights) == levels.joins.n_regions


@every_d
def test_a_cut_at_a_level_gives_connected_components(d):
    levels = Levels(hills(d))
    smooth, whole = levels.edges.density.reshape(SHAPES[d]), generate_binary_structure(d, d)
    estimates = levels.histogram.estimates
    for level in np.quantile(smooth, [0.5, 0.8, 0.9, 0.97]):
        regions = cut_levels(levels, 1.0, level=float(level))
        expected = label(smooth >= level, whole)[0].ravel()
        pairs = {*zip(regions.labels.tolist(), expected[regions.cells].tolist(), strict=True)}
        assert len(pairs) == regions.n_spans >= 1
        kept = {component for _, component in pairs} - {0}
        assert len(kept) == regions.n_spans
        assert np.isin(expected, list(kept)).sum() == len(regions.cells)  # whole components
        for component in set(range(1, expected.max() + 1)) - kept:  # noise may have made them
            assert estimates[expected == component].sum() < 60


def test_a_level_above_all_gives_nothing():
    levels = Levels(hills(2))
    assert cut_levels(levels, 1.0, level=float(levels.edges.density.max()) * 1.01).n_spans == 0


@every_d
@pytest.mark.parametrize("seed", range(3))
def test_a_cut_into_so_many_clusters(d, seed):
    """If any number of joins leaves so many that noise can hardly have made, then so many are found."""
    levels = Levels(hills(d, seed))
    joins = levels.joins

    def spans_after(n_joins):
        labels = levels.separate(n_joins)
        return levels_module._published(levels, labels, *levels.floors(labels)).n_spans

    possible = {spans_after(n_joins) for n_joins in range(joins.n_doubtful, joins.n_regions)}
    assert {1, 2} <= possible
    for n in (*range(1, joins.n_regions + 1), 10**6):
        found = cut_levels(levels, 1.0, n_clusters=n).n_spans
        assert found == n if n in possible else found <= n


def test_a_cut_finds_the_cluster_behind_a_region_of_noise():
    """Regions that noise may have made do not use up the number."""
    rng = np.random.default_rng(3)
    raw = counted(two_hills(rng, 2, (3000, 400)), SHAPES[2])
    for scale in (1.0, 4.0):
        assert cut_levels(Levels(released(raw, rng, scale)), 1e6, n_clusters=2).n_spans == 2


def test_prominence_decides():
    levels = Levels(hills(2))
    found = [cut_levels(levels, prominence).n_spans for prominence in (1e-6, 1.0, 1e6)]
    assert found[0] >= found[1] == 2 > found[2] == 1


@every_d
def test_small_regions_are_joined_or_left_out(d):
    histogram = hills(d, sizes=(2000, 900))
    tops = np.array(SHAPES[d]) * np.array([[0.3], [0.7]])
    assert cut_levels(Levels(histogram), 1.0).n_spans == 2
    few = cut_levels(Levels(histogram, min_rows=1000.0), 1.0)
    assert few.n_spans == 1
    assert few.predict(tops)[0] == 0
    assert cut_levels(Levels(histogram, min_rows=1e9), 1.0).n_spans == 0


@every_d
def test_a_cluster_ends_at_a_share_of_its_typical_density(d):
    levels = Levels(hills(d))
    labels = levels.separate(levels.n_joins(1.0))
    before = None
    for edge in (0.05, 0.2, 0.5, 0.8):
        regions = cut_levels(levels, 1.0, edge=edge)
        assert regions.n_spans == 2
        inside = np.zeros(len(labels), dtype=bool)
        for k in range(2):
            density = levels.edges.density[labels == k]
            typical = np.average(density, weights=density)
            inside |= (labels == k) & (levels.edges.density >= edge * typical)
        np.testing.assert_array_equal(regions.cells, np.flatnonzero(inside))
        assert before is None or set(regions.cells) < before
        before = set(regions.cells)


def test_edges_lie_between_cluster_and_surroundings():
    """With many rows around a square, it ends about where it ends; without any, its tails belong to it."""
    rng = np.random.default_rng(0)
    raw = rng.poisson(2.0, (40, 40))
    raw[12:28, 12:28] = rng.poisson(30, (16, 16))
    regions = cut_levels(Levels(released(raw, rng)), 1.0)
    assert regions.predict(np.array([[20.0, 20.0], [4.0, 4.0], [36.0, 20.0]])).tolist() == [0, -1, -1]
    assert len(regions.cells) == pytest.approx(256, rel=0.15)
    alone = np.where(np.isin(np.arange(1600), regions.cells).reshape(40, 40), raw, 0)
    assert cut_levels(Levels(released(alone, rng)), 1.0).counts[0, 0] == pytest.approx(alone.sum(), rel=0.05)


def test_noise_in_empty_places_is_that_of_the_widest_kernel():
    rng, seen = np.random.default_rng(0), []
    for _ in range(50):
        levels = Levels(released(np.zeros((30, 30)), rng, 4.0))
        seen.append((noise_in_empty_places(levels), levels.edges.kernel.max()))
    level, widest = np.median(seen, axis=0)
    variance = NoisyHistogram(grid_of((1,)), np.zeros(1, dtype=np.int64), LAPLACE, 4.0).variance
    assert level == pytest.approx(math.sqrt(variance / (4 * np.pi * widest**2)), rel=0.5)


def test_a_stored_model_finds_the_same_levels():
    made = DensityModel.of(Levels(nested_hills(2), 5.0), 1.0, "euclidean")
    made.check()
    read = DensityModel(made.histogram, made.regions, 1.0, "euclidean", 5.0)
    np.testing.assert_array_equal(read.tree.heights, made.tree.heights)
    again = read.cut()
    np.testing.assert_array_equal(again.regions.cells, made.regions.cells)
    np.testing.assert_array_equal(again.regions.counts, made.regions.counts)
