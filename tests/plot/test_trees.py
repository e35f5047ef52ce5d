from dataclasses import replace
from functools import cache

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt

from sfumato import DensityTree, GridKMeans, plot
from sfumato.errors import ParameterError
from sfumato.plot.branches import NOISE, SEVERAL, Branches
from sfumato.plot.levels import _joins
from sfumato.public.density.levels import LevelTree, noise_in_empty_places


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@cache
def fitted(d=2, *, n_clusters=4, n_rows=4000, epsilon=2.0):
    """Clusters along the diagonal, of which the next is always a little smaller."""
    rng = np.random.default_rng(0)
    shares = np.linspace(1.5, 1, n_clusters)
    labels = rng.choice(n_clusters, n_rows, p=shares / shares.sum())
    X = rng.normal((labels[:, None] + 0.5) / n_clusters, 0.1 / n_clusters, (n_rows, d)).clip(0, 1)
    return DensityTree(epsilon=epsilon, bounds=(0, 1), random_state=0).fit(X)


def release(*args, cut=None, **kwargs):
    """Return the release of a fitted tree, not seeded, maybe cut elsewhere."""
    found = fitted(*args, **kwargs).release_
    model = found.model.cut(**cut) if cut else found.model
    return replace(found, model=model, privacy=replace(found.privacy, seeded=False))


def many_clusters(n_side=8):
    """A release with one cluster on each square of a board."""
    rng = np.random.default_rng(0)
    corners = np.stack(np.meshgrid(*[np.arange(n_side)] * 2), axis=-1).reshape(-1, 2)
    X = (corners[rng.integers(n_side**2, size=40_000)] + rng.normal(0.5, 0.1, (40_000, 2))) / n_side
    return DensityTree(epsilon=2, bounds=(0, 1), random_state=0).fit(X.clip(0, 1))


def dots(ax):
    (found,) = [part for part in ax.collections if isinstance(part, mpl.collections.PathCollection)]
    return found


def segments(ax):
    stems, bars = (part.get_segments() for part in ax.collections[:2])
    return stems, bars


def crossings(ax):
    stems, bars = segments(ax)
    return [
        (x, height)
        for (left, height), (right, _) in (sorted(map(tuple, bar)) for bar in bars)
        for (x, low), (_, high) in (sorted(map(tuple, stem), key=lambda end: end[1]) for stem in stems)
        if left < x < right and low < height < high
    ]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_each_span_is_a_branch_with_a_dot_and_its_number(d):
    shown = release(d)
    ax = plot.tree(shown)
    ax.figure.canvas.draw()
    tree, n_spans = shown.model.tree, shown.model.regions.n_spans
    labels = np.array([int(label.get_text()) for label in ax.get_xticklabels()])
    assert sorted(labels) == list(range(n_spans))
    spans = shown.model.predict(tree.positions)
    highest = [tree.heights[spans == label].max() for label in labels]
    np.testing.assert_allclose(dots(ax).get_offsets()[:, 1], highest)
    counts = shown.model.regions.counts[labels, 0]
    np.testing.assert_allclose(dots(ax).get_sizes() / dots(ax).get_sizes().max(), counts / counts.max())
    assert ax.get_title() == f"DensityTree, {n_spans} spans\nepsilon=2"
    assert not crossings(ax)


def test_colours_are_those_of_the_map():
    shown = release()
    ax, on_map = plot.tree(shown), plot.spans(shown)
    labels = [int(label.get_text()) for label in ax.get_xticklabels()]
    expected = on_map.collections[0].get_edgecolors()
    np.testing.assert_array_equal(dots(ax).get_facecolors()[:, :3], expected[labels, :3])


def test_branches_end_in_the_noise():
    shown = release()
    stems, _ = segments(plot.tree(shown))
    assert min(stem[:, 1].min() for stem in stems) == pytest.approx(noise_in_empty_places(shown.model.levels))
    assert len(stems) > shown.model.regions.n_spans


def test_peaks_that_are_no_spans_are_thin():
    shown = release(cut={"n_clusters": 2})
    ax = plot.tree(shown)
    ax.figure.canvas.draw()
    widths = np.array(ax.collections[0].get_linewidths())
    n_peaks = min(40, len(shown.model.tree.heights))
    assert (widths[:n_peaks] > 1).sum() == 2
    assert any(text.get_text().endswith("other peaks") for text in ax.get_legend().get_texts())


def test_any_cut_is_drawn():
    for cut in ({"n_clusters": 1}, {"n_clusters": 100}, {"level": 3.0}, {"level": 1e6}):
        shown = release(cut=cut)
        ax = plot.tree(shown)
        ax.figure.canvas.draw()
        assert len(ax.get_xticks()) == min(shown.model.regions.n_spans, 40)


def test_of_many_peaks_the_most_prominent_are_drawn():
    shown = many_clusters()
    n_peaks = len(shown.tree_.heights)
    assert shown.n_clusters_ > 50
    ax = plot.tree(shown)
    ax.figure.canvas.draw()
    assert len(ax.get_xticks()) == 40
    assert ax.get_xlabel() == f"numbers of spans, among 40 of {n_peaks:,} peaks"
    assert not crossings(ax)
    frames = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert not any(a.overlaps(b) for i, a in enumerate(frames) for b in frames[:i])


def test_one_cluster_and_none():
    one = plot.tree(release(n_clusters=1))
    one.figure.canvas.draw()
    assert "1 span\n" in one.get_title()
    rows = np.random.default_rng(0).uniform(size=(20, 2))
    none = plot.tree(DensityTree(epsilon=0.1, bounds=(0, 1), random_state=0).fit(rows))
    none.figure.canvas.draw()
    assert "0 spans" in none.get_title()
    assert [text.get_text() for text in none.texts] == ["nothing stands out from the noise"]


def test_seeded_pictures_say_so_and_given_axes_are_used():
    ax = plot.blank(4, 3).add_subplot()
    assert plot.tree(release(), ax) is ax
    assert "PUBLISH" not in ax.get_title()
    assert "SEEDED: DO NOT PUBLISH" in plot.tree(fitted()).get_title()


def test_release_without_a_density_tree():
    model = GridKMeans(2, bounds=(0, 1), random_state=0).fit(np.zeros((5, 2)))
    with pytest.raises(ParameterError, match=r"must have a density tree, .* got GridKMeans .*plot\.centres"):
        plot.tree(model)


def level_tree(heights, saddles, parents):
    heights = np.array(heights, dtype=float)
    return LevelTree(heights[:, None], heights, np.array(saddles), np.array(parents), heights)


def test_peaks_left_out_pass_on_what_joined_them():
    """Peak 3 joins 2, which joins 1, which joins 0; the peak 4 stands alone."""
    found = level_tree([9, 8, 7, 6, 5], [0.0, 1.0, 2.0, 3.0, 0.0], [-1, 0, 1, 2, -1])
    joins, saddles = _joins(found, np.arange(5))
    assert joins.tolist() == [[2, 3], [1, 5], [0, 6]]
    assert saddles.tolist() == [3, 2, 1]
    joins, saddles = _joins(found, np.array([0, 3, 4]))
    assert joins.tolist() == [[0, 1]]
    assert saddles.tolist() == [1]  # the lowest on the way from 3 over 2 and 1
    assert len(_joins(found, np.array([3, 4]))[0]) == 0


def test_noise_hangs_on_straight_branches():
    """Cluster 0 with a twig of noise, then joined by cluster 1; two peaks of noise join each other."""
    joins = np.array([[0, 1], [2, 5], [3, 4]])
    heights, clusters = np.array([9.0, 8, 7, 6, 5, 4, 3, 2]), np.array([0, NOISE, 1, NOISE, NOISE])
    found = Branches.of(heights, joins, clusters)
    assert found.clusters[5:].tolist() == [0, SEVERAL, NOISE]
    first, twig, second = found.places[:3]
    assert found.places[5] == first == 0
    assert found.places[6] == (first + second) / 2
    assert found.places[7] == found.places[3]
    assert twig - first < second - first < found.places[3] < found.places[4]
    assert found.width == pytest.approx(found.places.max() + 1)
