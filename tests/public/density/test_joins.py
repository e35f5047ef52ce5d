"""The order in which regions join, against a slow twin that looks at all pairs anew after every join."""

import math
from itertools import product

import numpy as np
import pytest

from sfumato.public.density import joins
from sfumato.public.density.joins import Joins, join_regions
from sfumato.public.density.scales import Layer

SHAPES = [(40,), (9, 8), (5, 4, 5)]
WANTED = np.array([5.0, 16.0])


def random_layers(rng, n_cells):
    return [
        Layer(rng.uniform(0.1, 9, n_cells), rng.uniform(0.5, 2, n_cells), rng.uniform(1, p, n_cells))
        for p in WANTED
    ]


def random_regions(rng, shape, n_regions):
    """Cells of the nearest of some places: every region has cells, and most touch several others."""
    cells = np.array(list(product(*map(range, shape))), dtype=float)
    seeds = cells[rng.choice(len(cells), n_regions, replace=False)]
    return np.argmin(((cells[:, None] - seeds) ** 2).sum(axis=2), axis=1)


def slow_sums(regions, shape, layers):
    """Sums over the faces between every two regions, one face after the other."""
    d, at = len(shape), list(product(*map(range, shape)))
    number = {place: i for i, place in enumerate(at)}
    borders = {}
    for cell, axis in product(at, range(d)):
        beyond = number.get(tuple(x + (j == axis) for j, x in enumerate(cell)))
        i = number[cell]
        if beyond is None or regions[i] == regions[beyond]:
            continue
        sums = borders.setdefault(frozenset((int(regions[i]), int(regions[beyond]))), np.zeros((2, 5)))
        for j, layer in enumerate(layers):
            between = math.sqrt(layer.density[i] * layer.density[beyond])
            across = (1 / (2 * math.sqrt(math.pi) * layer.kernel[i])) ** (d - 1)
            w = between**3
            sums[j] += w, w * between, w * layer.precision[i], w * across, w * w
    return borders


def slow_score(sums, one, other, min_rows):
    """Valley in standard errors in the best layer."""
    found = []
    for j, (weight, density, precision, kernels, squares) in enumerate(sums):
        bulk = min(side["squares"][j] / side["masses"][j] for side in (one, other))
        along = max(1.0, kernels * weight / squares)
        error = 1 / (precision / weight * along)
        error += sum(1 / max(1.0, side["kernels"][j]) for side in (one, other)) / WANTED[j]
        valley = math.log(bulk / (density / weight)) - joins._CHOSEN / math.sqrt(precision / weight)
        found.append(valley / math.sqrt(error))
    doubtful = any(side["evidence"] < 1 or side["masses"][0] < min_rows for side in (one, other))
    return max(found) - (1e6 if doubtful else 0)


def slow_joins(regions, shape, layers, evidence, min_rows):
    d, state = len(shape), {}
    for r, known in enumerate(evidence):
        inside = regions == r
        state[r] = {
            "masses": np.array([layer.density[inside].sum() for layer in layers]),
            "squares": np.array([(layer.density[inside] ** 2).sum() for layer in layers]),
            "kernels": np.array(
                [((4 * math.pi * layer.kernel[inside] ** 2) ** (-d / 2)).sum() for layer in layers]
            ),
            "evidence": known,
        }
    borders, pairs, scores, saddles = slow_sums(regions, shape, layers), [], [], []
    while borders:
        ranked = {edge: slow_score(s, *(state[r] for r in edge), min_rows) for edge, s in borders.items()}
        edge = min(ranked, key=ranked.get)
        stays, ends = sorted(edge, key=lambda r: -state[r]["masses"][0])
        pairs.append((stays, ends))
        scores.append(ranked[edge])
        saddles.append(borders[edge][0, 1] / borders[edge][0, 0])
        for part in ("masses", "squares", "kernels"):
            state[stays][part] = state[stays][part] + state[ends][part]
        state[stays]["evidence"] = max(state[stays]["evidence"], state.pop(ends)["evidence"])
        moved = {}
        for other, sums in borders.items():
            renamed = frozenset(stays if r == ends else r for r in other)
            if len(renamed) == 2:
                moved[renamed] = moved.get(renamed, 0) + sums
        borders = moved
    return pairs, scores, saddles


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("min_rows", [0.0, 15.0])
def test_joins_agree_with_their_slow_twin(shape, seed, min_rows):
    rng = np.random.default_rng(seed)
    layers = random_layers(rng, math.prod(shape))
    regions = random_regions(rng, shape, int(rng.integers(2, 25)))
    evidence = rng.uniform(0.5, 4, regions.max() + 1)
    kept = evidence.copy()
    found = join_regions(regions, shape, layers, WANTED, evidence, min_rows)
    pairs, scores, saddles = slow_joins(regions, shape, layers, evidence, min_rows)
    assert found.pairs.tolist() == [list(pair) for pair in pairs]
    np.testing.assert_allclose(found.scores, scores)
    np.testing.assert_allclose(found.saddles, saddles)
    across = 1 / (2 * math.sqrt(math.pi) * layers[0].kernel)
    assert found.n_kernels == pytest.approx((across ** len(shape)).sum())
    assert (evidence == kept).all()


@pytest.mark.parametrize("compiled", [True, False])
def test_outdated_scores_do_no_harm(compiled, monkeypatch):
    """One region touches all others, so that outdated scores must be removed from the heap on the way."""
    rng, shape, evidence = np.random.default_rng(0), (2, 30), np.full(31, 2.0)
    layers, regions, tidied = (
        random_layers(rng, 60),
        np.append(np.zeros(30, dtype=np.int64), np.arange(1, 31)),
        [],
    )
    if not compiled:
        tidy = joins._tidy.py_func
        for kernel in ("_join", "_score", "_push", "_pop"):
            monkeypatch.setattr(joins, kernel, getattr(joins, kernel).py_func)
        monkeypatch.setattr(joins, "_tidy", lambda *arguments: tidied.append(1) or tidy(*arguments))
    found = join_regions(regions, shape, layers, WANTED, evidence)
    pairs, scores, _ = slow_joins(regions, shape, layers, evidence, 0.0)
    assert found.pairs.tolist() == [list(pair) for pair in pairs]
    np.testing.assert_allclose(found.scores, scores)
    assert compiled or tidied


def test_one_region_joins_nothing():
    layers = random_layers(np.random.default_rng(0), 12)
    found = join_regions(np.zeros(12, dtype=np.int64), (3, 4), layers, WANTED, np.ones(1))
    assert (found.n_regions, found.n_doubtful, found.n_before(0.0)) == (1, 0, 0)
    assert found.owners(0).tolist() == [0]
    single = join_regions(
        np.zeros(1, dtype=np.int64), (1, 1), random_layers(np.random.default_rng(0), 1), WANTED, np.ones(1)
    )
    assert single.n_regions == 1


def valleys(depths, width=5, evidence=None, min_rows=0.0, rows=None):
    """Hills of density `rows`, with a valley of each depth between a hill and the next."""
    n = len(depths) + 1
    rows = np.full(n, 10.0) if rows is None else np.array(rows, dtype=float)
    density, regions = np.repeat(rows, width), np.repeat(np.arange(n), width)
    for i, depth in enumerate(depths):
        density[(i + 1) * width - 1 : (i + 1) * width + 1] *= depth
    layer = Layer(density, np.ones(n * width), np.full(n * width, 20.0))
    evidence = np.full(n, 9.0) if evidence is None else np.array(evidence, dtype=float)
    return join_regions(regions, (n * width,), [layer, layer], WANTED, evidence, min_rows)


def merged(found, n_joins):
    return [set(np.flatnonzero(found.owners(n_joins) == r)) for r in np.unique(found.owners(n_joins))]


def test_a_deep_valley_joins_last():
    found = valleys([0.9, 0.05, 0.8, 0.6])
    assert merged(found, 3) in ([{0, 1}, {2, 3, 4}], [{2, 3, 4}, {0, 1}])
    assert found.scores[-1] == found.scores.max()
    assert found.saddles[-1] == pytest.approx(0.5)
    assert found.n_doubtful == 0


def test_the_region_with_more_rows_stays():
    found = valleys([0.9], rows=[5, 50])
    assert found.pairs.tolist() == [[1, 0]]
    assert valleys([0.9], rows=[50, 5]).pairs.tolist() == [[0, 1]]


def test_what_noise_may_have_made_joins_first():
    sure = valleys([0.9, 0.05, 0.9])
    assert merged(sure, 2) in ([{0, 1}, {2, 3}], [{2, 3}, {0, 1}])
    found = valleys([0.9, 0.05, 0.9], evidence=[9, 9, 0.99, 0.5])
    assert found.n_doubtful == 2
    assert merged(found, 2) in ([{0, 1, 2, 3}], [{0}, {1, 2, 3}])
    assert (found.scores[: found.n_doubtful] < -1e5).all()
    assert (found.scores[found.n_doubtful :] > -1e5).all()
    assert valleys([0.5, 0.5], evidence=[1.0, 1.0, 1.0]).n_doubtful == 0


def test_regions_of_few_rows_join_first():
    rows = [10, 10, 2, 10]
    assert valleys([0.9, 0.05, 0.05], rows=rows).n_doubtful == 0
    found = valleys([0.9, 0.05, 0.05], rows=rows, min_rows=20.0)
    assert found.n_doubtful == 1
    assert 2 in found.pairs[0]
    assert valleys([0.9, 0.05, 0.05], rows=rows, min_rows=1e9).n_doubtful == 3


def test_owners_follow_chains_of_joins():
    found = Joins(np.array([[1, 0], [3, 2], [3, 1], [4, 3]]), np.array([1.0, 0.5, 3.0, 2.0]), np.ones(4), 9.0)
    assert found.n_regions == 5
    assert [found.owners(n).tolist() for n in range(5)] == [
        [0, 1, 2, 3, 4],
        [1, 1, 2, 3, 4],
        [1, 1, 3, 3, 4],
        [3, 3, 3, 3, 4],
        [4, 4, 4, 4, 4],
    ]


@pytest.mark.parametrize(("score", "n_joins"), [(0.1, 0), (1.0, 0), (1.5, 2), (2.5, 2), (3.0, 2), (3.1, 4)])
def test_joins_stop_before_the_first_deep_valley(score, n_joins):
    """Also if a shallower one follows: the regions beside it have grown."""
    found = Joins(np.array([[1, 0], [3, 2], [3, 1], [4, 3]]), np.array([1.0, 0.5, 3.0, 2.0]), np.ones(4), 9.0)
    assert found.n_before(score) == n_joins


def test_the_layer_that_shows_a_valley_best_decides():
    """The finer layer is flat; the other one has a valley."""
    flat, regions = np.full(20, 10.0), np.repeat([0, 1], 10)
    deep = flat.copy()
    deep[9:11] = 0.5

    def score(*densities):
        layers = [Layer(density, np.ones(20), np.full(20, 16.0)) for density in densities]
        return join_regions(regions, (20,), layers, WANTED, np.full(2, 9.0)).scores[0]

    assert score(flat, flat) < 0 < score(flat, deep)
    assert score(deep, flat) == pytest.approx(score(deep, deep), rel=0.5)
    assert score(flat, deep) == score(deep, deep)


def test_a_long_border_is_better_evidence():
    def score(n):
        density = np.full((10, n), 10.0)
        density[4:6] = 6.0
        layer = Layer(density.ravel(), np.ones(10 * n), np.full(10 * n, 10.0))
        return join_regions(
            np.repeat([0, 1], 5 * n), (10, n), [layer, layer], WANTED, np.full(2, 9.0)
        ).scores[0]

    assert score(40) > score(20) > score(10) > 0
