"""What every aggregate must satisfy: merge laws, a NumPy twin, and the sensitivity that it declares.

An aggregate that is exported without an example here fails the first test.
"""

import importlib
import inspect
import pkgutil
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

import numba
import numpy as np
import pytest

from sfumato.budget import Sensitivity
from sfumato.domain import (
    LATTICE_RADIUS,
    Ball,
    Domain,
    Grid,
    few_blocks,
    grids,
    partitions,
    row_products,
    space,
)
from sfumato.domain.nested import NestedGrid
from sfumato.domain.partitions import GaussianCells, Rings, Tree, Voronoi
from sfumato.domain.sparse import Sparse
from sfumato.private import aggregates
from sfumato.private.aggregates.active_sums import ActiveSums
from sfumato.private.aggregates.base import Aggregate
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.aggregates.coverage import Coverage
from sfumato.private.aggregates.distances import Distances
from sfumato.private.aggregates.histograms import Histograms
from sfumato.private.aggregates.limbs import LIMB_BITS, LimbSums
from sfumato.private.aggregates.mapped import Clipped, Projected
from sfumato.private.aggregates.moments import GroupedMoments, SoftMoments, WideMoments
from sfumato.private.aggregates.nearest import NearestDistance, NearestSums, coarse, relative_steps
from sfumato.private.aggregates.profiles import ProfileCounts
from sfumato.private.aggregates.sparse_cells import SparseCells
from sfumato.private.aggregates.splits import Marginals, SplitRule
from sfumato.private.aggregates.sums import COUNT_WEIGHT, GroupedSums
from sfumato.private.aggregates.swaps import Swaps

HUGE, TINY = 1e300, 5e-324
TABLES = ["empty", "one", "all equal", "duplicates", "uniform", "borders", "extremes"]


@dataclass(frozen=True)
class Example:
    """An aggregate and its obvious twin.

    `axes` are the coordinates of each column at which something changes, `loose` the numbers of the
    sensitivity that cannot be reached, with why, and `slack` how far below the others may stay, relatively.
    `vector` gives the vector that a state stands for, to which the sensitivity refers.
    """

    aggregate: object
    twin: object
    axes: list
    loose: dict = field(default_factory=dict)
    slack: float = 0.0
    vector: object = staticmethod(lambda state: state)

    @property
    def n_features(self):
        return len(self.axes)


def count_rows(rows):
    return [len(rows)]


def group_of(partition, row):
    """Group of a row: by comparison with every border, by the scores of all centres, by walking a tree."""
    match partition:
        case Grid():
            flat = 0
            for j, m in enumerate(partition.shape):
                position = (row[j] - partition.low[j]) * (1 / partition.widths[j])
                flat = flat * m + sum(position >= i for i in range(1, m))
            return flat
        case NestedGrid(coarse=coarse, depths=depths):
            home, at, parts = group_of(coarse, row), 0, 2 ** depths[group_of(coarse, row)]
            for j, m in enumerate(coarse.shape):
                fine = (row[j] - coarse.low[j]) * (1 / coarse.refined(parts).widths[j])
                at = at * parts + sum(fine >= i for i in range(1, m * parts)) % parts
            return sum((2**depth) ** len(coarse.shape) for depth in depths[:home]) + at
        case Voronoi(centers=centers):
            origin, best, best_score = centers.mean(axis=0), 0, -np.inf
            for c, center in enumerate(centers - centers.mean(axis=0)):
                score = -(center**2).sum() / 2
                for value, middle, at in zip(row, origin, center, strict=True):
                    score += (value - middle) * at
                if score > best_score:
                    best, best_score = c, score
            return best
        case Rings(centers=centers, edges=edges):
            home = group_of(Voronoi(centers), row)
            ring = sum(sum((row - centers[home]) ** 2) >= edge**2 for edge in edges)
            return home * len(edges) + ring if ring < len(edges) else -1
        case GaussianCells():  # has its twin in tests/domain/test_partitions.py
            return partition.index(row[None, :])[0]
        case Tree(columns=columns, thresholds=thresholds, children=children):
            node = 0
            while node >= 0:
                node = children[node, int(row[columns[node]] >= thresholds[node])]
            return -1 - node


def cells_by_hand(partition):
    def twin(rows):
        counts = np.zeros(partition.n_cells, dtype=np.int64)
        for row in rows:
            if (group := group_of(partition, row)) >= 0:
                counts[group] += 1
        return counts

    return twin


def distances_by_hand(partition, origins, edges, scales):
    def twin(rows):
        counts = np.zeros(len(edges) + 1, dtype=np.int64)
        for row in rows:
            group = group_of(partition, row)
            squares = sum((row - origins[group]) ** 2) / scales[group] ** 2
            counts[sum(squares >= edge**2 for edge in edges)] += 1
        return counts

    return twin


def sums_by_hand(partition, origins, radii):
    def twin(rows):
        sums = np.zeros((partition.n_cells, 2 + origins.shape[1]), dtype=np.int64)
        for row in rows:
            group = group_of(partition, row)
            units = np.clip((row - origins[group]) * (1 / (radii[group] / 2**29)), -(2.0**400), 2.0**400)
            norm = np.sqrt(sum(units**2))
            beyond = norm > 2**29 - 1
            shrink = (2**29 - 1) / norm if beyond else 1.0
            counts = [2**27, 2**27 * beyond]
            sums[group] += np.array([*counts, *np.trunc(units * shrink)], dtype=np.int64)
        return sums

    return twin


def active_by_hand(partition, sparse):
    width, n_kept, radius = sparse.n_columns, sparse.n_kept, sparse.radius

    def twin(rows):
        sums = np.zeros((partition.n_cells, 1 + sparse.n_columns), dtype=np.int64)
        for row in rows:
            units, last = np.zeros(sparse.n_columns), -1
            for column, value in zip(row[width : width + n_kept], row[width + n_kept :], strict=True):
                if last + 1 <= column < sparse.n_columns:
                    last = int(column)
                    units[last] = np.clip(value * (2**29 / radius), -(2.0**400), 2.0**400)
            norm = np.sqrt(sum(units**2))
            units *= (2**29 - 1) / norm if norm > 2**29 - 1 else 1.0
            sums[group_of(partition, row[:width])] += np.array([2**27, *np.trunc(units)], dtype=np.int64)
        return sums

    return twin


def moments_of(row, origin, radius, shape):
    """Count, clipped, sum and second moments of one row, before they are truncated."""
    units = np.clip((row - origin) * (1 / (radius / 2**29)), -(2.0**400), 2.0**400)
    norm = np.sqrt(sum(units**2))
    beyond = norm > 2**29 - 1
    units = units * ((2**29 - 1) / norm if beyond else 1.0)
    products = (units / 2**29)[:, None] * units
    upper, squares = np.triu_indices(len(row)), np.diagonal(products)
    seconds = {"full": products[upper], "diag": squares, "spherical": [sum(squares)]}[shape]
    return np.array([2.0**27, 2.0**27 * beyond, *units, *seconds])


def moments_by_hand(partition, origins, radii, shape, soft):
    def shares_of(row):
        one_hot = np.eye(len(origins))[group_of(partition, row)]
        return partition.responsibilities(row[None, :])[0] if soft else one_hot

    def twin(rows):
        n_entries = len(moments_of(origins[0], origins[0], 1.0, shape))
        total = np.zeros((len(origins), n_entries), dtype=np.int64)
        for row in rows:
            for c, share in enumerate(shares_of(row)):
                total[c] += np.trunc(share * moments_of(row, origins[c], radii[c], shape)).astype(np.int64)
        return total

    return twin


def wide_moments_by_hand(origin, radius):
    def twin(rows):
        d = len(origin)
        total = np.zeros((1, 2 + d + d * (d + 1) // 2), dtype=np.int64)
        for row in rows:
            first = np.trunc(moments_of(row, origin, radius, "diag")[: 2 + d])
            units = np.clip((row - origin) * (1 / (radius / 2**13)), -(2.0**400), 2.0**400)
            norm, limit = np.sqrt(sum(units**2)), 2**13 - 1 - np.ceil(np.sqrt(d) / 2)
            units = np.rint(units * (limit / norm if norm > limit else 1.0))
            products = np.where(np.eye(d, dtype=bool), 8, 11) * units[:, None] * units
            total[0] += np.array([*first, *products[np.triu_indices(d)]], dtype=np.int64)
        return total

    return twin


def marginals_by_hand(partition, low, high, n_bins):
    def twin(rows):
        counts = np.zeros((*low.shape, n_bins), dtype=np.int64)
        for row in rows:
            group = group_of(partition, row)
            for j, value in enumerate(row):
                position = (value - low[group, j]) * (n_bins / (high[group, j] - low[group, j]))
                counts[group, j, sum(position >= i for i in range(1, n_bins))] += 1
        return counts

    return twin


def histograms_by_hand(edges):
    def twin(rows):
        found = [[(a <= rows[:, j]) & (rows[:, j] < b) for a, b in pairwise(e)] for j, e in enumerate(edges)]
        return np.sum(found, axis=2)

    return twin


def profiles_by_hand(partition, n_clustered, edges):
    def bin_of(value, line):
        return sum(value >= edge for edge in line[1:-1]) if np.isfinite(value) else len(line) - 1

    def twin(rows):
        counts = [np.zeros((partition.n_cells, len(line)), dtype=np.int64) for line in edges]
        for row in rows:
            group = group_of(partition, row[:n_clustered])
            for table, value, line in zip(counts, row[n_clustered:], edges, strict=True):
                table[group, bin_of(value, line)] += 1
        return np.concatenate(counts, axis=1)

    return twin


def coverage_by_hand(candidates, chosen, radius):
    def near(row, points):
        return np.array([sum((row - point) ** 2) <= radius**2 for point in points], dtype=bool)

    def twin(rows):
        fresh = [near(row, candidates) for row in rows if not near(row, chosen).any()]
        return np.sum(fresh, axis=0, dtype=np.int64) if fresh else np.zeros(len(candidates))

    return twin


def swaps_by_hand(centers, candidates, radius):
    def cost(rows, points):
        squares = sum((rows[:, None, j] - points[:, j]) ** 2 for j in range(points.shape[1]))
        return np.floor(np.minimum(squares * (1024 / radius**2), 1024)).min(axis=1).sum()

    def twin(rows):
        before = cost(rows, centers)
        kept = [np.delete(centers, i, axis=0) for i in range(len(centers))]
        after = [cost(rows, np.vstack([rest, new])) for rest in kept for new in candidates]
        return np.array([*(before - np.array(after)), 0])

    return twin


ALONE = "a vector of one entry has no spread, and one person can change no second entry"
ORTHOGONAL = "two coordinates of a vector of norm R differ by at most sqrt(2) R"
ELSEWHERE = "no row lies on all candidates at once"
PRESENT = "no row tried lacks a value, so that the bins of missing ones stay empty"
UNUSED = "one centre coincides with an earlier one, so its group stays empty"
GRIDS = [
    Grid((-1.0, -1.0), (1.0, 1.0), (3, 4)),
    Grid((0.0, -5.0), (0.1, 5.0), (7, 1)),
    Grid((-1e-3, 1e6), (1e-3, 1e6 + 1), (2, 2)),
    Grid((0.0,), (1.0,), (10,)),
]
NESTED = [
    NestedGrid(GRIDS[0], np.array([0, 1, 2, 0, 0, 2, 1, 1, 0, 0, 1, 2]), 2),
    NestedGrid(Grid((0.0,), (1.0,), (3,)), np.array([2, 0, 3]), 3),
    NestedGrid(GRIDS[2], np.array([1, 0, 0, 2]), 3),  # deeper than any cell
]
CENTERS = np.array([[-0.5, -0.5], [0.5, 0.25], [0.0, 1.0], [0.5, 0.25]])  # the last one never wins
VORONOI = Voronoi(CENTERS)
MIDDLES = [np.concatenate([c, (c[1:] + c[:-1]) / 2]) for c in CENTERS.T]
TREE = (
    Tree.root()
    .split(np.array([0]), np.array([0]), np.array([0.0]))
    .split(np.array([1, 0]), np.array([1, 0]), np.array([0.25, -0.5]))
)
THRESHOLDS = [np.array([-1.0, -0.5, 0.0, 1.0]), np.array([-1.0, 0.0, 0.25, 1.0])]
MIXTURE = GaussianCells.of(
    np.array([0.3, 0.5, 0.2]),
    CENTERS[:3],
    np.array([[[1.0, 0.5], [0.5, 1.0]], [[0.5, 0.0], [0.0, 2.0]], [[1.0, -0.5], [-0.5, 0.75]]]),
)
LINE = GaussianCells.of(np.full(2, 0.5), np.array([[0.25], [0.75]]), np.array([[[1e-3]], [[4e-2]]]))
EDGES = np.array([0.25, 0.75, 1.0, 64.0])
RINGS = Rings(CENTERS, EDGES[:3])
BOXES = (
    np.array([[-1.0, -1.0], [-1.0, -1.0], [0.0, -2.0], [0.0, -2.0]]),
    np.array([[1.0, 1.0], [0.0, 3.0], [0.5, 0.1], [0.5, 0.1]]),
)


def cells(partition, axes, **loose):
    return Example(CellCounts(partition), cells_by_hand(partition), axes, loose)


def sparse_cells(grid):
    def vector(state):
        return np.bincount(*aggregate.pairs(state), grid.n_cells).astype(np.int64)

    aggregate = SparseCells(grid)
    return Example(aggregate, cells_by_hand(grid), grid.edges(), vector=vector)


def distances(partition, axes, scales=None):
    arguments = partition, np.array([[-1.0, -1.0], [0.5, 0.25], [0.0, 1.0], [0.5, 0.25]]), EDGES
    twin = distances_by_hand(*arguments, np.ones(4) if scales is None else scales)
    return Example(Distances(*arguments, scales), twin, axes)


def sums(partition, origins, radii, axes, **loose):
    arguments = partition, np.array(origins), np.array(radii)
    if len(axes) > 1:
        loose["spread"] = ORTHOGONAL
    return Example(GroupedSums(*arguments), sums_by_hand(*arguments), axes, loose, slack=1e-7)


def active_sums(partition, axis, **options):
    sparse = Sparse(**options, n_columns=1)
    axes, loose = [axis, np.array([-1.0, 0.0, 1.0]), UNIT], {"spread": ORTHOGONAL}
    return Example(ActiveSums(partition, sparse), active_by_hand(partition, sparse), axes, loose, slack=1e-7)


def moments(partition, origins, radii, shape, axes, soft=False, **loose):
    kind = SoftMoments if soft else GroupedMoments
    arguments = partition, np.array(origins), np.array(radii), shape
    return Example(kind(*arguments), moments_by_hand(*arguments, soft), axes, loose, slack=1e-7)


def wide_moments(origin, radius, axes):
    aggregate = WideMoments(Tree.root(), np.array([origin]), np.array([radius]), "full")
    twin = wide_moments_by_hand(np.array(origin), radius)
    return Example(aggregate, twin, axes, slack=1e-3)  # a few units of 2^-13


def marginals(partition, low, high, n_bins, axes):
    arguments = partition, np.array(low), np.array(high), n_bins
    return Example(Marginals(*arguments), marginals_by_hand(*arguments), axes)


def histograms(*edges):
    edges = np.array(edges)
    return Example(Histograms(edges), histograms_by_hand(edges), list(edges))


def profile_counts(partition, axes, *edges):
    arguments = partition, len(axes), tuple(np.array(line) for line in edges)
    loose = {"coordinates": PRESENT}
    return Example(ProfileCounts(*arguments), profiles_by_hand(*arguments), [*axes, *arguments[2]], loose)


def coverage(*arguments):
    axes = [np.array([-1.0, 0.0, 0.5, 1.25]), np.array([-1.0, 0.0, 0.5, 1.0])]  # (1.25, 1) is on a border
    return Example(Coverage(*arguments), coverage_by_hand(*arguments), axes)


def nearest_by_hand(nearest, rows):
    """Distances and coordinates of the t nearest rows, nearest first; None where there are fewer rows."""
    units, steps = coarse(nearest.domain, rows), relative_steps(nearest.domain)
    for point in coarse(nearest.domain, nearest.points):
        order = sorted((int(np.sqrt(sum(((row - point) * steps) ** 2))), tuple(row)) for row in units)
        yield (order + [None] * nearest.t)[: nearest.t]


def nearest_sums(domain, points, t, **loose):
    nearest = NearestSums(domain, np.array(points), t)

    def twin(rows):
        lists = zip(nearest_by_hand(nearest, rows), nearest.farthest, strict=True)
        return [sum(np.array(found[1] if found else far) for found in row) for row, far in lists]

    return Example(nearest, twin, [UNIT] * domain.n_features, loose, slack=1e-5, vector=nearest.sums)


def nearest_distance(domain, points, t, weights, diameter):
    aggregate = NearestDistance(NearestSums(domain, np.array(points), t), np.array(weights))
    loose = dict.fromkeys(["spread", "coordinates"], ALONE)

    def twin(rows):
        lists = zip(weights, nearest_by_hand(aggregate.nearest, rows), strict=True)
        return [sum(w * (found[0] if found else diameter) for w, row in lists for found in row)]

    return Example(aggregate, twin, [UNIT] * domain.n_features, loose, slack=1e-5, vector=aggregate.total)


def swaps(*arguments, **loose):
    loose["coordinates"] = "the last entry is that of no swap, which never changes"
    return Example(Swaps(*arguments), swaps_by_hand(*arguments), list(np.vstack(arguments[:2]).T), loose)


def projected(example, matrix, axes):
    def twin(rows):
        return example.twin(np.array([sum(row[:, None] * matrix.T) for row in rows]).reshape(-1, len(matrix)))

    return replace(example, aggregate=Projected(example.aggregate, matrix), twin=twin, axes=axes)


def clipped(example, low, high):
    def twin(rows):
        return example.twin(np.minimum(np.maximum(rows, low), high))

    domain = Domain.from_bounds((low, high), len(example.axes))
    return replace(example, aggregate=Clipped(example.aggregate, domain), twin=twin)


MIX, CORNERS = np.array([[0.6, 0.8, 0.0], [0.5, 0.0, -2.0]]), [np.arange(3) / 2] * 3
HALVES, BLOCKS = Grid((0.0,), (1.0,), (2,)), Grid((0.0,) * 3, (1.0,) * 3, (1, 2, 1))
UNIT = np.array([-1.0, -0.5, 0.25, 1.0])
SQUARE, SEGMENT = Domain.from_bounds((-1, 1), 2), Domain.from_bounds((-1, 1), 1)
DISC = Domain.from_bounds(Ball(1.0), 2)
ONE_WAY = "one row moves the sums of all points in the same direction"
DIAGONAL = "no row tried lies on the diagonal, opposite to what fills up the lists"
EXAMPLES = {
    "ActiveSums": [
        active_sums(HALVES, np.array([0.0, 0.5]), max_active=1),
        active_sums(Voronoi(CENTERS[:3, :1]), UNIT, max_active=1, norm=3.0),
    ],
    "RowCount": [
        Example(RowCount(), count_rows, THRESHOLDS, dict.fromkeys(["spread", "coordinates"], ALONE))
    ],
    "CellCounts": [
        *(cells(grid, grid.edges()) for grid in GRIDS),
        *(cells(nested, nested.fine.edges()) for nested in NESTED),
        cells(MIXTURE, MIDDLES),
        cells(TREE, THRESHOLDS),
        cells(VORONOI, MIDDLES, coordinates=UNUSED),
        cells(RINGS, [np.concatenate([m, m[0] + EDGES]) for m in MIDDLES], coordinates=UNUSED),
    ],
    "Coverage": [coverage(CENTERS, chosen, 1.25) for chosen in (np.empty((0, 2)), -np.ones((1, 2)))],
    "Distances": [
        distances(TREE, THRESHOLDS),
        distances(VORONOI, [np.concatenate([m, m[0] + EDGES]) for m in MIDDLES]),
        distances(TREE, THRESHOLDS, scales=np.array([1 / 3, 1e-140, 1.0, 2.0])),
    ],
    "GroupedMoments": [
        moments(TREE, CENTERS, [1e-140, 1e140, 3.0, 1 / 3], "full", THRESHOLDS),
        moments(VORONOI, CENTERS, [0.5, 2.0, 1e-3, 1.0], "diag", MIDDLES, coordinates=UNUSED),
        moments(MIXTURE, CENTERS[:3] - 0.01, [0.1, 0.2, 1e-3], "full", MIDDLES),
        moments(TREE, CENTERS, [0.5, 2.0, 1e-3, 1.0], "spherical", THRESHOLDS),
        moments(HALVES, [[0.1], [1e6]], [0.1, 5.0], "full", [np.arange(4) / 3]),
        moments(BLOCKS, np.zeros((2, 3)), [0.7, 0.3], "full", CORNERS),
    ],
    "GroupedSums": [
        sums(TREE, CENTERS, [1e-140, 1e140, 3.0, 1 / 3], THRESHOLDS),
        sums(VORONOI, CENTERS, [0.5, 2.0, 1e-3, 1.0], MIDDLES, coordinates=UNUSED),
        sums(HALVES, [[0.1], [1e6]], [0.1, 5.0], [np.arange(4) / 3]),
        sums(BLOCKS, np.zeros((2, 3)), [0.7, 0.3], CORNERS),
    ],
    "Histograms": [
        histograms([-1.0, -0.5, 0.25, 1.0], [-1e6, 0.0, TINY, 3.0]),
        histograms([-1.0, 0.0, 0.5]),
        histograms([-HUGE, HUGE], [0.0, 1.0], [5.0, 6.0]),
    ],
    "Marginals": [
        marginals(TREE, *BOXES, 8, THRESHOLDS),
        marginals(VORONOI, *BOXES, 5, MIDDLES),
        marginals(HALVES, [[0.0], [0.5]], [[0.5], [1.0]], 2, [np.arange(5) / 4]),
    ],
    "NearestDistance": [
        nearest_distance(SQUARE, [[-1, -1], [1, 1], [0.3, 0.2]], 5, [0, 3, 0], 2965821),
        nearest_distance(SEGMENT, [[1], [-1]], 5, [2, 0], 2**21 + 1),
    ],
    "NearestSums": [
        nearest_sums(SQUARE, [[0.5, -0.25], [0.25, -0.5]], 5),
        nearest_sums(SEGMENT, [[0.5], [0.25], [1.0]], 5, spread=ONE_WAY),
        nearest_sums(DISC, [[0.5, 0.0]], 5, l1=DIAGONAL, spread=DIAGONAL, coordinates=DIAGONAL),
    ],
    "ProfileCounts": [
        profile_counts(TREE, THRESHOLDS, [-0.5, 0.5, 1.5]),
        profile_counts(HALVES, [np.array([0.0, 0.5])], [0.0, 1.0, 2.0], [-0.5, 0.5, 1.5]),
    ],
    "Clipped": [clipped(cells(TREE, THRESHOLDS), -0.75, 0.75)],
    "Projected": [projected(cells(TREE, THRESHOLDS), MIX, CORNERS)],
    "SoftMoments": [
        moments(MIXTURE, CENTERS[:3], [0.01, 0.2, 0.03], "full", MIDDLES, soft=True),
        moments(MIXTURE, CENTERS[:3], [0.1, 0.2, 1e-3], "diag", MIDDLES, soft=True),
        moments(LINE, LINE.means, [0.1, 0.01], "spherical", [np.arange(4) / 3], soft=True),
    ],
    "SparseCells": [sparse_cells(grid) for grid in (*GRIDS, Grid((-1.0, -1.0), (1.0, 1.0), (9, 9)))],
    "WideMoments": [
        wide_moments([0.25, -0.5], 0.5, THRESHOLDS),
        wide_moments([0.5], 0.1, [np.arange(4) / 3]),
        wide_moments([0.0, 0.0, 0.0], 0.7, CORNERS),
    ],
    "Swaps": [
        swaps(CENTERS[:3], np.array([[2.0, 2.0], [2.5, 2.0]]), 1.0, l1=ELSEWHERE, l2_squared=ELSEWHERE),
        swaps(CENTERS[:2], np.array([[3.0, -3.0]] * 2), 0.5),
        swaps(CENTERS[:1], np.array([[2.0, 2.0]]), 1e-3),
    ],
}
CASES = [
    pytest.param(example, id=f"{name}-{i}")
    for name, group in EXAMPLES.items()
    for i, example in enumerate(group)
]
every_aggregate = pytest.mark.parametrize("example", CASES)


def exported():
    """Every concrete aggregate, by name."""
    modules = [
        importlib.import_module(f"sfumato.private.aggregates.{m.name}")
        for m in pkgutil.iter_modules(aggregates.__path__)
    ]
    classes = {c for module in modules for c in vars(module).values() if inspect.isclass(c)}
    return {
        c.__name__: c
        for c in sorted(classes, key=lambda c: c.__name__)
        if Aggregate in c.__mro__ and c is not Aggregate and not inspect.isabstract(c)
    }


def kernels():
    modules = [grids, partitions, row_products, space] + [
        importlib.import_module(f"sfumato.private.aggregates.{m.name}")
        for m in pkgutil.iter_modules(aggregates.__path__)
    ]
    return {
        f"{module.__name__}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, numba.core.registry.CPUDispatcher)
    }


def borders(example):
    """Coordinates on, just below and just above every border, in every order, and all corners."""
    axes = [
        np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
        for edges in example.axes
    ]
    longest = max(map(len, axes))
    diagonal = np.stack([np.resize(axis, longest) for axis in axes], axis=1)
    corners = np.array(list(product(*[(min(edges), max(edges)) for edges in example.axes])))
    return np.concatenate([diagonal, corners])


def extremes(example):
    values = [0.0, -0.0, TINY, -TINY, HUGE, -HUGE, np.finfo(float).max, -np.finfo(float).max, 1e-310, 1.0]
    return np.array(list(product(values, repeat=example.n_features)))


def tables(example, seed=0):
    """Base tables: empty, one row, all equal, duplicates, uniform in and around the domain."""
    rng, d = np.random.default_rng(seed), example.n_features
    low, high = ([pick(edges) for edges in example.axes] for pick in (min, max))
    inside = rng.uniform(low, high, size=(40, d))
    around = rng.normal(scale=10.0, size=(20, d))
    equal, uniform = np.repeat(inside[:1], 30, axis=0), np.concatenate([inside, around])
    duplicates = np.concatenate([inside, inside, inside[:5]])
    found = inside[:0], inside[:1], equal, duplicates, uniform, borders(example), extremes(example)
    return dict(zip(TABLES, found, strict=True))


def newcomers(example):
    """Rows that may join or leave a table."""
    some = list(tables(example, seed=1).values())[:3]
    return np.concatenate([borders(example), extremes(example)[::3], *some])


def fold(aggregate, rows):
    return aggregate.add(aggregate.zero(), np.ascontiguousarray(rows, dtype=np.float64))


def vector_in(example, state):
    if not isinstance(example.aggregate, LimbSums):
        return example.vector(state)
    low, high = state
    return low if not high.any() else low + high.astype(object) * 2**LIMB_BITS


def vector_of(example, rows):
    return vector_in(example, fold(example.aggregate, rows))


def measured(change):
    """Sensitivity numbers of one change, in Python integers."""
    entries = [int(c) for c in np.ravel(change)]
    return {
        "l1": sum(abs(c) for c in entries),
        "l2_squared": sum(c * c for c in entries),
        "spread": max(entries) - min(entries),
        "coordinates": sum(c != 0 for c in entries),
    }


def largest(changes):
    found = [measured(change) for change in changes]
    return {name: max(one[name] for one in found) for name in found[0]}


def test_every_exported_aggregate_has_an_example():
    assert set(exported()) == set(EXAMPLES)


@every_aggregate
def test_states_are_int64_and_zero_is_empty_and_fresh(example):
    zero = example.aggregate.zero()
    assert zero.dtype == np.int64
    assert not zero.any()
    example.aggregate.add(zero, tables(example)["uniform"])
    assert not example.aggregate.zero().any()


@every_aggregate
def test_merge_laws(example):
    aggregate = example.aggregate
    a, b, c = (fold(aggregate, tables(example, seed)["uniform"]) for seed in (0, 1, 2))

    def merge(x, y):
        return aggregate.merge(x.copy(), y.copy())  # it may work in either

    assert (merge(merge(a, b), c) == merge(a, merge(b, c))).all()
    assert (merge(a, b) == merge(b, a)).all()
    assert (merge(a, aggregate.zero()) == a).all()
    assert (merge(aggregate.zero(), a) == a).all()


LISTS = NearestSums, NearestDistance  # keep the t nearest rows, of however many


@every_aggregate
@pytest.mark.parametrize("doublings", [33, 40])
@pytest.mark.parametrize("name", ["all equal", "uniform", "extremes"])
def test_nothing_wraps_in_the_largest_table(example, name, doublings):
    """Merged with itself again and again, a state stands for the exact multiple, with room for noise."""
    state = fold(example.aggregate, tables(example)[name])
    vector = vector_in(example, state).astype(object)
    for _ in range(doublings):
        state = example.aggregate.merge(state, state.copy())
    if not isinstance(example.aggregate, LISTS):
        assert (vector_in(example, state) == vector * 2**doublings).all()
    largest_draw = 2**62  # docs/proofs/samplers.md
    low = state[0] if isinstance(example.aggregate, LimbSums) else example.vector(state)
    assert np.abs(low).max(initial=0) + largest_draw < 2**63


@every_aggregate
@pytest.mark.parametrize("name", TABLES)
def test_any_split_in_any_order_gives_the_same_state(example, name):
    aggregate, rows = example.aggregate, tables(example)[name]
    whole = fold(aggregate, rows)
    rng = np.random.default_rng(3)
    for n_parts in (1, 2, 3, 7):
        shuffled = rng.permutation(rows)
        cuts = np.sort(rng.integers(0, len(rows) + 1, size=n_parts - 1))
        parts = [fold(aggregate, part) for part in np.split(shuffled, cuts)]
        merged = parts[0]
        for part in parts[1:]:
            merged = aggregate.merge(merged, part)
        assert (merged == whole).all()
    state = aggregate.zero()
    for row in rows:
        state = aggregate.add(state, row[None, :])
    assert (state == whole).all()


@every_aggregate
@pytest.mark.parametrize("name", TABLES)
def test_the_twin_agrees(example, name):
    rows = tables(example)[name]
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.array_equal(vector_of(example, rows), example.twin(rows))


@every_aggregate
def test_one_row_never_moves_more_than_declared_and_reaches_it(example):
    declared = vars(example.aggregate.sensitivity)
    reached = dict.fromkeys(declared, 0)
    for table in tables(example).values():
        before = vector_of(example, table)
        neighbours = [np.concatenate([table, row[None, :]]) for row in newcomers(example)]
        neighbours += [np.delete(table, i, axis=0) for i in range(min(len(table), 20))]
        changes = [vector_of(example, neighbour) - before for neighbour in neighbours]
        for name, value in largest(changes).items():
            assert value <= declared[name], name
            reached[name] = max(reached[name], value)
    for name in declared.keys() - (example.loose.keys() - {"coordinates"}):
        assert reached[name] >= declared[name] * (1 - example.slack), name


@every_aggregate
@pytest.mark.parametrize(
    "m", [3, pytest.param(2, marks=pytest.mark.slow), pytest.param(5, marks=pytest.mark.slow)]
)
def test_a_person_of_several_rows_never_moves_more_than_declared_and_reaches_it(example, m):
    declared = vars(example.aggregate.sensitivity.times(m))
    # Persons with random rows, with all rows equal, and with rows that touch as many entries as possible.
    pool, rng = newcomers(example), np.random.default_rng(m)
    persons = [pool[rng.integers(len(pool), size=rng.integers(1, m + 1))] for _ in range(150)]
    persons += [np.repeat(row[None, :], m, axis=0) for row in pool]
    persons += [widest_person(example, pool, m)]
    reached = dict.fromkeys(declared, 0)
    for table in tables(example).values():
        before = vector_of(example, table)
        changes = [vector_of(example, np.concatenate([table, person])) - before for person in persons]
        for name, value in largest(changes).items():
            assert value <= declared[name], name
            reached[name] = max(reached[name], value)
    n_entries = vector_of(example, np.empty((0, example.n_features))).size
    for name in declared.keys() - example.loose.keys():
        expected = min(declared[name], n_entries) if name == "coordinates" else declared[name]
        assert reached[name] >= expected * (1 - example.slack), name


def widest_person(example, pool, m):
    """m rows that together touch as many entries as a greedy choice finds."""
    touched = np.stack([vector_of(example, row[None, :]).ravel() != 0 for row in pool])
    chosen = []
    for _ in range(m):
        seen = touched[chosen].any(axis=0)
        chosen.append(int((touched & ~seen).sum(axis=1).argmax()))
    return pool[chosen]


def test_a_wrong_sensitivity_would_be_seen():
    class TwoCells(CellCounts):  # counts every row twice, and says once
        def add(self, state, rows):
            return super().add(super().add(state, rows), rows)

    liar = Example(TwoCells(GRIDS[0]), None, GRIDS[0].edges())
    with pytest.raises(AssertionError):
        test_one_row_never_moves_more_than_declared_and_reaches_it(liar)


def test_a_sum_that_is_clipped_by_coordinates_would_be_seen():
    class InABox(GroupedSums):  # says that it clips to a ball
        def add(self, state, rows):
            for row, group in zip(rows, self.partition.index(rows), strict=True):
                units = np.clip((row - self.origins[group]) / self.radii[group], -1, 1) * LATTICE_RADIUS
                state[0, group] += np.array([COUNT_WEIGHT, 0, *units], dtype=np.int64)
            return state

    honest = EXAMPLES["GroupedSums"][1]
    liar = replace(honest, aggregate=InABox(VORONOI, CENTERS, np.ones(4)))
    with pytest.raises(AssertionError), np.errstate(over="ignore"):
        test_one_row_never_moves_more_than_declared_and_reaches_it(liar)


@pytest.mark.parametrize("m", [1, 2, 10, 10**6])
def test_times_is_exact(m):
    one = Sensitivity(3, 5, 2, 4)
    assert one.times(m) == Sensitivity(3 * m, 5 * m * m, 2 * m, 4 * m)


def test_there_are_kernels_to_compare():
    some = {
        "domain.grids.cell_index",
        "private.aggregates.cell_counts._count",
        "private.aggregates.sparse_cells._put",
    }
    assert {f"sfumato.{name}" for name in some} <= set(kernels())


@every_aggregate
def test_rows_stay_as_they_are(example):
    """Engines may keep a block for the next fold."""
    for table in tables(example).values():
        before = table.copy()
        example.aggregate.add(example.aggregate.zero(), table)
        assert (table == before).all()


@every_aggregate
def test_kernels_without_the_compiler(example, monkeypatch):
    """Every compiled kernel is replaced by its Python source: the state must not change by a bit."""
    expected = {name: fold(example.aggregate, table) for name, table in tables(example).items()}
    for full_name, kernel in kernels().items():
        module, name = full_name.rsplit(".", 1)
        monkeypatch.setattr(importlib.import_module(module), name, kernel.py_func)
    with np.errstate(all="ignore"):
        for name, table in tables(example).items():
            assert (fold(example.aggregate, table) == expected[name]).all(), name


@every_aggregate
def test_the_first_blocks_have_the_same_bits(example, monkeypatch):
    """NumPy folds them, without a word: a warning would tell of a row."""
    expected = {name: fold(example.aggregate, table) for name, table in tables(example).items()}
    monkeypatch.setattr(few_blocks, "FEW_BLOCKS", 2**30)
    for name, table in tables(example).items():
        assert (fold(example.aggregate, table) == expected[name]).all(), name


@pytest.mark.parametrize("cls", [*exported().values(), SplitRule])
def test_every_aggregate_states_its_privacy_and_proof(cls):
    doc = inspect.getdoc(cls)
    assert "\nPrivacy\n-------\n" in doc
    assert "docs/proofs/" in doc
