"""Public partitions: the group of a row is a function of that row alone, and the one that it should be."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import softmax
from scipy.stats import multivariate_normal
from tests.worlds import rarely

from sfumato.domain import Grid, partitions, row_products, walks
from sfumato.domain.partitions import GaussianCells, Rings, Subset, Tree, Voronoi
from sfumato.domain.row_products import project
from sfumato.errors import ParameterError
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.private.aggregates.distances import Distances
from sfumato.private.aggregates.splits import Marginals
from sfumato.private.aggregates.sums import GroupedSums

RNG = np.random.default_rng(0)


def grown(n_features, n_rounds, seed=0, projection=None):
    """A tree that splits random leaves, several at a time, in random columns."""
    rng, tree = np.random.default_rng(seed), Tree.root(projection)
    for _ in range(n_rounds):
        leaves = rng.permutation(tree.n_cells)[: rng.integers(1, tree.n_cells + 1)]
        tree = tree.split(leaves, rng.integers(n_features, size=len(leaves)), rng.uniform(-1, 1, len(leaves)))
    return tree


def leaf(tree, values, node=0):
    """Recursive twin of the kernel."""
    if len(tree.columns) == 0:
        return 0
    if node < 0:
        return -1 - node
    left, right = tree.children[node]
    return leaf(tree, values, left if values[tree.columns[node]] < tree.thresholds[node] else right)


def random_mixture(k, d, scale=1.0, seed=0):
    """Weights, means and covariances."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(k, d, d))
    covariances = (factors @ factors.swapaxes(1, 2) / d + np.eye(d) / 10) * scale
    return rng.dirichlet(np.ones(k)), rng.normal(size=(k, d)), covariances


WIDE = RNG.normal(size=(3, 40))
PARTITIONS = {
    "grid": (Grid((-1.0,) * 4, (1.0,) * 4, (3, 2, 4, 1)), 4),
    "voronoi": (Voronoi(RNG.uniform(-1, 1, size=(37, 6))), 6),
    "voronoi of close centres": (Voronoi(1e6 + RNG.uniform(-1e-6, 1e-6, size=(9, 5))), 5),
    "mixture": (GaussianCells.of(*random_mixture(19, 5)), 5),
    "mixture of narrow components": (GaussianCells.of(*random_mixture(6, 3, scale=1e-8)), 3),
    "one component": (GaussianCells.of(*random_mixture(1, 2)), 2),
    "tree": (grown(4, 6), 4),
    "projected tree": (grown(3, 6, projection=WIDE), 40),
    "root": (Tree.root(), 3),
    "rings": (Rings(RNG.uniform(-1, 1, size=(7, 4)), np.array([0.5, 1.0, 2.0, 1e3])), 4),
    "voronoi in many columns": (Voronoi(RNG.normal(size=(53, 131))), 131),
    "voronoi of few centres in many columns": (Voronoi(RNG.normal(size=(5, 131))), 131),
}
every_partition = pytest.mark.parametrize("name", PARTITIONS)


def rows_for(name, n=700):
    partition, d = PARTITIONS[name]
    middle = partition.centers.mean(axis=0) if isinstance(partition, Voronoi) else 0.0
    return np.ascontiguousarray(middle + np.random.default_rng(1).normal(size=(n, d)))


@every_partition
def test_every_row_has_one_group(name):
    partition, d = PARTITIONS[name]
    values = [0.0, -0.0, 5e-324, 1e300, -1e300, np.finfo(float).max, 1.0]
    extremes = np.random.default_rng(2).choice(values, size=(500, d))
    for rows in (rows_for(name), extremes, np.empty((0, d))):
        index = partition.index(rows)
        assert index.dtype == np.int64
        assert index.shape == (len(rows),)
        least = -1 if isinstance(partition, Rings) else 0
        assert ((index >= least) & (index < partition.n_cells)).all()


@every_partition
@pytest.mark.parametrize("seed", [0, *rarely(1, 2)])
def test_the_group_of_a_row_depends_on_nothing_but_the_row(name, seed):
    """Shuffled, cut into blocks of any length, in another memory order, alone: the same bits."""
    partition, rng = PARTITIONS[name][0], np.random.default_rng(seed)
    rows = rows_for(name)
    whole = partition.index(rows)
    order = rng.permutation(len(rows))
    assert (partition.index(rows[order]) == whole[order]).all()
    cuts = np.sort(rng.integers(0, len(rows) + 1, size=20))
    assert (np.concatenate([partition.index(part) for part in np.split(rows, cuts)]) == whole).all()
    assert (partition.index(np.asfortranarray(rows)) == whole).all()
    assert [partition.index(row[None, :])[0] for row in rows[:50]] == whole[:50].tolist()


@every_partition
def test_rows_on_a_border_do_not_depend_on_their_block_either(name):
    """Rows at equal distance from two centres, where rounding decides: it decides alike everywhere."""
    partition, _ = PARTITIONS[name]
    if isinstance(partition, Voronoi | GaussianCells):
        pairs = RNG.integers(partition.n_cells, size=(400, 2))
        middles = partition.centers if isinstance(partition, Voronoi) else partition.means
        rows = middles[pairs].mean(axis=1)
    else:
        rows = np.round(rows_for(name) * 4) / 4
    whole = partition.index(rows)
    for shift in range(1, 9):
        assert (partition.index(np.ascontiguousarray(rows[shift:])) == whole[shift:]).all()


@every_partition
def test_one_row_moves_one_cell_by_one(name):
    partition, rows = PARTITIONS[name][0], rows_for(name, 60)
    cells = CellCounts(partition)
    whole = cells.add(cells.zero(), rows)
    assert whole.dtype == np.int64
    for i in range(len(rows)):
        change = whole - cells.add(cells.zero(), np.delete(rows, i, axis=0))
        assert change.sum() == np.abs(change).sum() == 1
        assert change[partition.index(rows[i : i + 1])[0]] == 1


@every_partition
def test_kernels_without_the_compiler(name, monkeypatch):
    partition, rows = PARTITIONS[name][0], rows_for(name, 60)
    expected = partition.index(rows)
    nearest = ("_fill_nearest_of_few", "_fill_nearest_of_many", "_add_scores", "_four_gaps")
    for kernel in (*nearest, "_fill_projected"):
        monkeypatch.setattr(row_products, kernel, getattr(row_products, kernel).py_func)
    for kernel in ("_fill_likeliest", "_fill_rings", "_fill_scores"):
        monkeypatch.setattr(partitions, kernel, getattr(partitions, kernel).py_func)
    for kernel in ("_fill_leaves", "take_steps"):
        monkeypatch.setattr(walks, kernel, getattr(walks, kernel).py_func)
    assert (partition.index(rows) == expected).all()


@pytest.mark.parametrize(("k", "d"), [(1, 1), (2, 1), (5, 2), (64, 10), (30, 100)])
@pytest.mark.parametrize("shift", [0.0, -300.0])
def test_voronoi_is_the_nearest_centre(k, d, shift):
    rng = np.random.default_rng(k)
    centers, rows = (shift + rng.normal(size=(n, d)) for n in (k, 2000))
    assert (Voronoi(centers).index(rows) == cdist(rows, centers).argmin(axis=1)).all()


def test_rings_are_distances_from_the_nearest_centre():
    rng = np.random.default_rng(0)
    centers, rows = (rng.normal(size=(n, 3)) for n in (5, 2000))
    edges = np.array([0.3, 0.8, 1.5])
    distances = cdist(rows, centers)
    ring = np.searchsorted(edges, distances.min(axis=1), side="right")
    expected = np.where(ring < 3, 3 * distances.argmin(axis=1) + ring, -1)
    assert (Rings(centers, edges).index(rows) == expected).all()
    assert set(ring) == {0, 1, 2, 3}
    on_edges = np.array([[0.0], [1.0], [2.0]])
    assert Rings(np.zeros((1, 1)), np.array([1.0, 2.0])).index(on_edges).tolist() == [0, 1, -1]


def test_voronoi_far_from_the_origin_keeps_its_digits():
    """Compared with exact distances: the loss is that of the last digits of the coordinates."""
    rng = np.random.default_rng(3)
    centers, rows = (1e9 + rng.integers(-(2**20), 2**20, size=(n, 3)) / 2**20 for n in (8, 100))
    for row, chosen in zip(rows, Voronoi(centers).index(rows), strict=True):
        squares = [
            sum((Fraction(x) - Fraction(y)) ** 2 for x, y in zip(row, c, strict=True)) for c in centers
        ]
        assert float(squares[chosen] - min(squares)) <= 1e-6


def test_voronoi_ties_go_to_the_first():
    assert Voronoi(np.array([[-1.0], [1.0]])).index(np.array([[0.0]])).tolist() == [0]
    twins = Voronoi(np.array([[3.0, 1.0], [0.25, 0.5], [0.25, 0.5]]))
    assert twins.n_cells == 3
    assert twins.index(np.array([[0.0, 0.0], [3.0, 3.0], [1e9, -1e9]])).tolist() == [1, 0, 0]


def log_densities(rows, weights, means, covariances):
    laws = [
        multivariate_normal(mean, covariance) for mean, covariance in zip(means, covariances, strict=True)
    ]
    return np.log(weights) + np.stack([law.logpdf(rows).reshape(len(rows)) for law in laws], axis=1)


@pytest.mark.parametrize(("k", "d"), [(1, 1), (2, 1), (5, 2), (64, 10)])
def test_gaussian_cells_are_those_of_the_largest_weighted_density(k, d):
    mixture, rows = random_mixture(k, d, seed=k), np.random.default_rng(k).normal(size=(1000, d))
    cells, logs = GaussianCells.of(*mixture), log_densities(rows, *mixture)
    assert (cells.index(rows) == logs.argmax(axis=1)).all()
    assert cells.responsibilities(rows) == pytest.approx(softmax(logs, axis=1), abs=2e-9)


def scores_of(cells, row):
    """Twin of the kernel: one product after the other, to the last bit."""
    scores = []
    for offset, mean, whitener in zip(cells.offsets, cells.means, cells.whiteners, strict=True):
        gaps = np.clip(row - mean, -(2.0**500), 2.0**500)
        whitened = [sum(whitener[i, : i + 1] * gaps[: i + 1]) for i in range(len(row))]
        scores.append(offset - sum(np.clip(whitened, -(2.0**500), 2.0**500) ** 2) / 2)
    return np.array(scores)


def shares_of(cells, row):
    scores = scores_of(cells, row)
    x, shares = np.maximum(scores - max(scores), -40) / 64, 1.0
    for n in range(12, 0, -1):
        shares = 1 + x * shares * (1 / n)
    for _ in range(6):
        shares = shares * shares
    return shares * ((1 - 2.0**-32) / sum(shares))


@pytest.mark.parametrize("name", ["mixture", "mixture of narrow components", "one component"])
def test_gaussian_cells_agree_with_their_twin(name):
    cells, d = PARTITIONS[name]
    far = np.random.default_rng(2).choice([0.0, 5e-324, 1e300, -np.finfo(float).max], size=(50, d))
    for row in np.concatenate([rows_for(name, 100), far, cells.means]):
        assert cells.index(row[None, :])[0] == np.argmax(scores_of(cells, row))
        assert (cells.responsibilities(row[None, :])[0] == shares_of(cells, row)).all()


def test_gaussian_ties_go_to_the_first():
    twins = GaussianCells(np.zeros(3), np.array([[5.0], [1.0], [-1.0]]), np.ones((3, 1, 1)))
    assert twins.index(np.array([[0.0], [1e300], [-1e300]])).tolist() == [1, 0, 0]  # too far to tell apart
    assert twins.responsibilities(np.array([[1e300]]))[0] == pytest.approx([1 / 3] * 3)


def test_what_is_above_the_diagonal_of_a_whitener_is_not_read():
    cells, rows = GaussianCells.of(*random_mixture(4, 3)), np.random.default_rng(0).normal(size=(50, 3))
    other = GaussianCells(cells.offsets, cells.means, cells.whiteners + np.triu(np.ones((3, 3)), 1))
    assert (other.responsibilities(rows) == cells.responsibilities(rows)).all()


MIXTURES = {
    "round": GaussianCells.of(*random_mixture(7, 3)),
    "narrow": GaussianCells.of(*random_mixture(40, 2, scale=1e-12)),
    "equal": GaussianCells(np.zeros(1000), np.zeros((1000, 2)), np.ones((1000, 2, 2))),
    "alone": GaussianCells.of(*random_mixture(1, 2)),
    "extreme": GaussianCells(
        np.array([2.0**500, -(2.0**500)]), np.full((2, 2), 2.0**500), np.full((2, 2, 2), -(2.0**500))
    ),
}
every_mixture = pytest.mark.parametrize("name", MIXTURES)


def rows_around(name, n=120):
    """Near, between and far beyond the components."""
    cells, rng = MIXTURES[name], np.random.default_rng(0)
    values = [0.0, -0.0, 5e-324, 1e300, -1e300, np.finfo(float).max, -np.finfo(float).max, 1.0]
    shape = (n, cells.means.shape[1])
    return np.concatenate([rng.normal(size=shape), rng.choice(values, size=shape), cells.means])


@every_mixture
def test_shares_of_a_row_are_positive_and_never_sum_to_more_than_one(name):
    """In exact arithmetic, and with room for the rounding of one more product."""
    for shares in MIXTURES[name].responsibilities(rows_around(name, 40)[:100]):
        assert (np.isfinite(shares) & (shares > 0)).all()
        assert 1 - 2 * 2.0**-32 < sum(map(Fraction, shares)) * (1 + Fraction(1, 2**53)) <= 1


@every_mixture
def test_shares_of_a_row_depend_on_nothing_but_the_row(name):
    cells, rows = MIXTURES[name], rows_around(name)[:300]
    whole, order = cells.responsibilities(rows), np.random.default_rng(1).permutation(len(rows))
    assert (cells.responsibilities(rows[order]) == whole[order]).all()
    assert (cells.responsibilities(np.asfortranarray(rows)) == whole).all()
    assert (np.concatenate([cells.responsibilities(row[None, :]) for row in rows[:50]]) == whole[:50]).all()
    assert cells.responsibilities(rows[:0]).shape == (0, cells.n_cells)


@every_mixture
def test_shares_without_the_compiler(name, monkeypatch):
    cells, rows = MIXTURES[name], rows_around(name, 5)[:15]
    expected = cells.responsibilities(rows)
    for kernel in ("_fill_responsibilities", "_fill_scores", "_exp"):
        monkeypatch.setattr(partitions, kernel, getattr(partitions, kernel).py_func)
    with np.errstate(over="ignore"):
        assert (cells.responsibilities(rows) == expected).all()


def test_the_exponential_has_ten_digits():
    exponents = np.linspace(-40, 0, 2001)
    found = np.array([partitions._exp(x) for x in exponents])
    assert found == pytest.approx(np.exp(exponents), rel=1e-10)
    assert found[-1] == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.array([0.5, 0.0])}, r"^`weights` must be positive, got 0"),
        ({"weights": np.array([1.0])}, r"^`weights` must have shape \(2,\), got \(1,\)"),
        ({"means": np.array([[0.0], [np.nan]])}, r"^`means` must be finite"),
        ({"means": np.empty((0, 1))}, r"^`weights` must have shape \(0,\)"),
        ({"covariances": np.ones((2, 1))}, r"^`covariances` must have shape \(2, 1, 1\), got \(2, 1\)"),
        ({"covariances": -np.ones((2, 1, 1))}, r"^`covariances` must be positive definite"),
        ({"covariances": np.full((2, 1, 1), np.inf)}, r"^`covariances` must be finite"),
        ({"covariances": np.full((2, 1, 1), 1e-320)}, r"^`whiteners` must be finite"),
    ],
)
def test_mixtures_without_a_density_are_refused(change, message):
    good = {"weights": np.full(2, 0.5), "means": np.zeros((2, 1)), "covariances": np.ones((2, 1, 1))}
    with pytest.raises(ParameterError, match=message):
        GaussianCells.of(**good | change)


def test_a_mixture_of_nothing_is_refused():
    with pytest.raises(ParameterError, match=r"^`means` must have at least one row"):
        GaussianCells(np.empty(0), np.empty((0, 2)), np.empty((0, 2, 2)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("projected", [False, True])
def test_tree_agrees_with_its_recursive_twin(seed, projected):
    rng = np.random.default_rng(seed)
    projection = rng.normal(size=(3, 7)) if projected else None
    tree = grown(3, 7, seed, projection)
    rows = rng.normal(size=(300, 7 if projected else 3))
    values = project(rows, projection) if projected else rows
    assert tree.index(rows).tolist() == [leaf(tree, value) for value in values]
    assert (tree.children[tree.children >= 0] > np.nonzero(tree.children >= 0)[0]).all()  # parents come first
    assert sorted(-1 - tree.children[tree.children < 0]) == list(range(tree.n_cells))


def test_a_row_on_the_threshold_goes_right():
    tree = Tree.root().split(np.array([0]), np.array([1]), np.array([0.5]))
    below = np.nextafter(0.5, 0)
    assert tree.index(np.array([[9.0, 0.5], [9.0, below], [-9.0, 0.5]])).tolist() == [1, 0, 1]


def test_split_keeps_the_left_number_and_numbers_the_right_ones_on():
    root = Tree.root()
    one = root.split(np.array([0]), np.array([0]), np.array([0.0]))
    two = one.split(np.array([1, 0]), np.array([1, 1]), np.array([10.0, 20.0]))
    three = two.split(np.array([3]), np.array([0]), np.array([-5.0]))
    assert [tree.n_cells for tree in (root, one, two, three)] == [1, 2, 4, 5]
    rows = np.array([[-1.0, 0.0], [1.0, 0.0], [1.0, 15.0], [-9.0, 25.0], [-1.0, 25.0]])
    assert root.index(rows).tolist() == [0, 0, 0, 0, 0]
    assert one.index(rows).tolist() == [0, 1, 1, 0, 0]
    assert two.index(rows).tolist() == [0, 1, 2, 3, 3]
    assert three.index(rows).tolist() == [0, 1, 2, 3, 4]
    assert one.children.tolist() == [[-1, -2]]  # a tree is not changed by being split


@pytest.mark.parametrize("seed", range(3))
def test_split_moves_only_the_right_halves(seed):
    rng = np.random.default_rng(seed)
    tree, rows = grown(3, 4, seed), rng.normal(size=(500, 3))
    leaves = rng.permutation(tree.n_cells)[:2]
    columns, thresholds = rng.integers(3, size=2), rng.normal(size=2)
    before, after = tree.index(rows), tree.split(leaves, columns, thresholds).index(rows)
    expected = before.copy()
    for i, (cut, column, threshold) in enumerate(zip(leaves, columns, thresholds, strict=True)):
        expected[(before == cut) & (rows[:, column] >= threshold)] = tree.n_cells + i
    assert (after == expected).all()


def test_a_split_keeps_the_projection():
    tree = Tree.root(np.array([[1.0, 1.0]])).split(np.array([0]), np.array([0]), np.array([1.0]))
    assert tree.index(np.array([[0.5, 0.25], [0.5, 0.75]])).tolist() == [0, 1]


SUBSETS = {
    "some leaves": (grown(4, 6), [3, 0, 7], 4),
    "some centres": (PARTITIONS["voronoi"][0], [30, 2, 5, 11], 6),
    "some cells of a grid": (PARTITIONS["grid"][0], [23, 4], 4),
    "all leaves in another order": (
        Tree.root().split(np.array([0]), np.array([1]), np.array([0.0])),
        [1, 0],
        3,
    ),
    "no leaf": (grown(4, 6), [], 4),
}
every_subset = pytest.mark.parametrize("name", SUBSETS)


def subset(name):
    """A subset, the rows around it, and which of these are in one of its groups."""
    whole, groups, d = SUBSETS[name]
    rows = np.ascontiguousarray(np.random.default_rng(6).normal(size=(400, d)))
    chosen = Subset(whole, np.array(groups, dtype=np.int64))
    return chosen, rows, np.isin(whole.index(rows), groups)


def aggregates_of(partition, d):
    """Every aggregate over groups, with a public place, radius and box per group."""
    origins, k = np.random.default_rng(7).normal(size=(partition.n_cells, d)), partition.n_cells
    return [
        CellCounts(partition),
        Distances(partition, origins, np.array([0.5, 1.0, 2.0])),
        GroupedSums(partition, origins, np.full(k, 0.75)),
        Marginals(partition, origins - 1, origins + 1, 5),
    ]


def fold(aggregate, rows):
    return aggregate.add(aggregate.zero(), np.ascontiguousarray(rows))


@every_subset
def test_a_subset_numbers_its_groups_anew_and_leaves_out_the_rest(name):
    chosen, rows, inside = subset(name)
    index, groups = chosen.index(rows), SUBSETS[name][1]
    assert chosen.n_cells == len(groups)
    assert index.dtype == np.int64
    assert (index[~inside] == -1).all()
    assert [groups[i] for i in index[inside]] == chosen.partition.index(rows[inside]).tolist()
    assert chosen.index(rows[:0]).shape == (0,)


@every_subset
def test_the_group_in_a_subset_depends_on_nothing_but_the_row(name):
    chosen, rows, _ = subset(name)
    whole, order = chosen.index(rows), np.random.default_rng(0).permutation(len(rows))
    assert (chosen.index(rows[order]) == whole[order]).all()
    assert [chosen.index(row[None, :])[0] for row in rows[:50]] == whole[:50].tolist()


@every_subset
def test_rows_in_no_group_are_counted_nowhere(name):
    chosen, rows, inside = subset(name)
    for aggregate in aggregates_of(chosen, rows.shape[1]):
        state = fold(aggregate, rows)
        assert (state == fold(aggregate, rows[inside])).all()
        assert (fold(aggregate, rows[~inside]) == aggregate.zero()).all()
        assert (aggregate.merge(fold(aggregate, rows[:99]), fold(aggregate, rows[99:])) == state).all()
    counts = fold(CellCounts(chosen), rows)
    assert counts.sum() == inside.sum()
    assert (counts == np.bincount(chosen.partition.index(rows), minlength=40)[SUBSETS[name][1]]).all()


@every_subset
def test_a_subset_answers_as_the_whole_does_about_its_groups(name):
    chosen, rows, _ = subset(name)
    groups, whole = SUBSETS[name][1], chosen.partition
    origins = np.random.default_rng(8).normal(size=(whole.n_cells, rows.shape[1]))
    radii = np.full(whole.n_cells, 0.75)
    for of_some, of_all in (
        (CellCounts(chosen), CellCounts(whole)),
        (GroupedSums(chosen, origins[groups], radii[groups]), GroupedSums(whole, origins, radii)),
        (
            Marginals(chosen, origins[groups] - 1, origins[groups] + 1, 5),
            Marginals(whole, origins - 1, origins + 1, 5),
        ),
    ):
        axis = 1 if isinstance(of_all, GroupedSums) else 0  # after that of the limbs
        assert (fold(of_some, rows) == fold(of_all, rows).take(groups, axis)).all()
        assert of_some.sensitivity == of_all.sensitivity


@every_subset
def test_one_row_moves_a_subset_no_further_than_the_whole(name):
    """A row that is in none moves nothing at all; any other moves what it would move without the subset."""
    chosen, rows, inside = subset(name)
    for aggregate in aggregates_of(chosen, rows.shape[1]):
        few = rows[:40]
        state = fold(aggregate, few)
        for i in range(len(few)):
            change = state - fold(aggregate, np.delete(few, i, axis=0))
            declared = aggregate.sensitivity
            assert np.abs(change).sum() <= declared.l1
            assert (change.astype(object) ** 2).sum() <= declared.l2_squared
            assert np.count_nonzero(change) <= declared.coordinates
            assert change.any() == inside[i]
