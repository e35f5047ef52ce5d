from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt

from sfumato import DPMoG, MorseClustering, Release, plot
from sfumato.budget import Budget, PrivacyStatement, Record
from sfumato.budget.records import Sensitivity
from sfumato.domain import Domain, Unit
from sfumato.errors import DataError, ParameterError
from sfumato.plot.style import OKABE_ITO
from sfumato.public.models import MixtureModel, MorseModel

STEP = Record("moments", "discrete Laplace", Sensitivity(), Fraction(1))


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@cache
def mixture(d=2, *, n_components=5, scale=0.2):
    """Two groups along the first column: components 0, 2, 4, ... left, and 1, 3, ... right."""
    means = np.full((n_components, d), 5.0)
    steps = np.arange(n_components)
    means[:, 0] = np.where(steps % 2, 7.5, 1.5) + 0.7 * (steps // 2)
    sizes = 100.0 * (steps + 1)
    return MixtureModel(
        sizes / sizes.sum(), means, np.stack([scale**2 * np.eye(d)] * n_components), sizes, 0 * sizes
    )


def release(model, *, columns=(), seeded=False):
    d = model.n_features
    privacy = PrivacyStatement(Budget(1), Unit(), (STEP,), seeded)
    method = "MorseClustering" if isinstance(model, MorseModel) else "DPMoG"
    return Release(method, {}, Domain((0.0,) * d, (10.0,) * d), columns, model, privacy)


def merged(d=2, *, n_clusters=2, **kwargs):
    return MorseModel(mixture(d, **kwargs), n_clusters)


def labelled(ax, name):
    """Places of the marks that the legend calls `name`."""
    return [part.get_offsets() for part in ax.collections if part.get_label() == name]


def number_texts(ax):
    return {text.get_text() for text in ax.texts}


def test_groups_have_the_moments_of_their_components():
    model = merged(3)
    groups = model.groups
    np.testing.assert_array_equal(groups.labels == groups.labels[0], [True, False, True, False, True])
    rows = np.random.default_rng(0).permutation(model.base.mixture.sample(200_000, 1))
    labels = groups.labels[model.base.mixture.predict(rows)]
    for cluster in range(2):
        mine = rows[labels == cluster]
        np.testing.assert_allclose(groups.means[cluster], mine.mean(axis=0), atol=0.02)
        np.testing.assert_allclose(groups.stds[cluster], mine.std(axis=0), atol=0.02)
    assert groups.sizes.sum() == model.base.sizes.sum()


def test_groups_of_a_mixture_are_its_components():
    groups = mixture().groups
    np.testing.assert_array_equal(groups.labels, np.arange(5))
    np.testing.assert_array_equal(groups.means, mixture().means)
    np.testing.assert_allclose(groups.stds, 0.2)


def test_cluster_of_components_without_weight():
    base = replace(mixture(), weights=np.array([0.5, 0.5, 0.0, 0.0, 0.0]), sizes=np.zeros(5))
    for model in (base, MorseModel(base, 2)):
        assert np.isfinite(model.groups.stds).all()
        plot.mixture(release(model)).figure.canvas.draw()


def test_components_have_the_colour_of_their_cluster():
    ax = plot.mixture(release(merged()))
    (ellipses,) = [part for part in ax.collections if isinstance(part, mpl.collections.PolyCollection)]
    colours = [mpl.colors.to_hex(colour).upper() for colour in ellipses.get_edgecolors()]
    assert colours[0] == colours[2] == colours[4]
    assert colours[1] == colours[3] != colours[0]
    assert set(colours) == set(OKABE_ITO[:2])
    assert number_texts(ax) == {"0", "1"}
    corners = ellipses.get_paths()[1].vertices - merged().base.means[1]
    np.testing.assert_allclose(np.linalg.norm(corners, axis=1), 0.2)


def test_saddles_within_and_between_clusters_differ():
    ax = plot.mixture(release(merged()))
    ax.figure.canvas.draw()
    tree = merged().tree
    (peaks,), (inner,), (outer,) = (
        labelled(ax, name) for name in ("peak", "saddle within a cluster", "saddle between clusters")
    )
    np.testing.assert_allclose(peaks, tree.peaks.positions)
    assert (len(inner), len(outer)) == (tree.n_peaks - 2, 1)
    np.testing.assert_allclose(outer[0], tree.saddles.positions[-1])
    assert [line.get_linestyle() for line in ax.lines].count(":") == 1
    np.testing.assert_allclose(ax.lines[0].get_xydata()[1], tree.saddles.positions[0])


def test_components_of_a_mixture_are_clusters_of_their_own():
    ax = plot.mixture(release(mixture()))
    assert ax.get_title() == "DPMoG, 5 components\nepsilon=1"
    assert not labelled(ax, "saddle within a cluster")
    assert len(labelled(ax, "saddle between clusters")[0]) == 4
    assert len(number_texts(ax)) >= 3  # where there is room


def test_many_components_are_drawn_without_saddles():
    model = replace(mixture(n_components=80), means=np.random.default_rng(0).uniform(0, 10, (80, 2)))
    ax = plot.mixture(release(model))
    ax.figure.canvas.draw()
    assert not labelled(ax, "peak")
    assert 5 <= len(ax.texts) <= 20


def test_components_of_very_different_widths():
    model = mixture()
    covariances = model.covariances * np.array([1e-6, 1, 1, 1, 10])[:, None, None]
    plot.mixture(release(replace(model, covariances=covariances))).figure.canvas.draw()


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("n_components", [1, pytest.param(2, marks=pytest.mark.slow), 7])
def test_few_components(d, n_components):
    base = mixture(d, n_components=n_components)
    for model in (base, MorseModel(base, n_components)):
        plot.mixture(release(model)).figure.canvas.draw()
        plot.saddles(release(model)).figure.canvas.draw()


def test_density_of_one_column():
    model = merged(1)
    ax = plot.mixture(release(model, columns=("age",)))
    x, y = ax.lines[0].get_data()
    np.testing.assert_allclose(y, np.exp(model.base.mixture.log_density(x[:, None])))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "density")
    (peaks,) = labelled(ax, "peak")
    np.testing.assert_allclose(peaks[:, 1], np.exp(model.tree.peaks.log_densities))


@pytest.mark.parametrize("d", [1, 2])
def test_rows_are_not_for_publication(d):
    shown, rows = release(merged(d)), np.full((4, d), 5.0)
    rows[:, 0] = [1.0, 2.0, 8.0, 9.0]
    before = len(plot.mixture(shown).lines)
    ax = plot.mixture(shown, X=rows)
    assert "SHOWS RECORDS: DO NOT PUBLISH" in ax.get_title()
    drawn = {tuple(line.get_xdata()): line.get_color() for line in ax.lines[before:]}
    assert set(drawn) == {(1.0, 2.0), (8.0, 9.0)}
    assert len(set(drawn.values())) == 2
    with pytest.raises(DataError, match=f"{d} columns"):
        plot.mixture(shown, X=np.ones((3, 5)))


def test_more_columns_point_to_other_pictures():
    with pytest.raises(ParameterError, match=r"one or two columns, got 3.*saddles.*centres"):
        plot.mixture(release(merged(3)))


def test_model_without_a_mixture():
    @dataclass
    class Other:
        n_features: int = 2

    shown = replace(release(mixture()), model=Other())
    for draw in (plot.mixture, plot.saddles):
        with pytest.raises(ParameterError, match=r"must have a mixture, .* got DPMoG on 2 columns"):
            draw(shown)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_tree_has_peaks_joins_and_a_cut(d):
    model = merged(d)
    ax = plot.saddles(release(model))
    ax.figure.canvas.draw()
    tree = model.tree
    heights = (tree.peaks.log_densities - tree.peaks.log_densities[0]) / np.log(10)
    (dots,) = [part for part in ax.collections if isinstance(part, mpl.collections.PathCollection)]
    np.testing.assert_allclose(dots.get_offsets()[:, 1], heights)
    joins = -tree.linkage[:, 2] / np.log(10)
    (cut,) = [line.get_ydata()[0] for line in ax.lines]
    assert joins[-1] < cut < joins[-2]
    assert number_texts(ax) == {"0", "1"}
    assert sorted(label.get_text() for label in ax.get_xticklabels()) == ["0", "1", "2", "3", "4"]


def test_dots_have_areas_proportional_to_rows():
    model = merged(scale=0.6)  # one peak for several components
    ax = plot.saddles(release(model))
    (dots,) = [part for part in ax.collections if isinstance(part, mpl.collections.PathCollection)]
    rows = np.bincount(model.tree.peaks.owners, model.base.sizes)
    np.testing.assert_allclose(dots.get_sizes() / dots.get_sizes().max(), rows / rows.max())
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert "1, 3" in names


@pytest.mark.parametrize("n_clusters", [1, 3, 5])
def test_cut_parts_the_joins(n_clusters):
    model = merged(n_clusters=n_clusters)
    ax = plot.saddles(release(model))
    (cut,) = [line.get_ydata()[0] for line in ax.lines]
    joins = -model.tree.linkage[:, 2] / np.log(10)
    assert (joins > cut).sum() == model.tree.n_peaks - n_clusters
    assert ax.get_ylim()[0] < cut < 0


def test_mixture_is_cut_as_it_would_be_merged():
    ax = plot.saddles(release(mixture()))
    assert ax.get_title() == "DPMoG, 2 clusters of 5 components\nepsilon=1"


def test_branches_of_many_peaks_do_not_cross():
    rng = np.random.default_rng(0)
    model = replace(mixture(n_components=30, scale=0.2), means=rng.uniform(0, 10, (30, 2)))
    ax = plot.saddles(release(MorseModel(model, 4)))
    ax.figure.canvas.draw()
    stems, bars = (part.get_segments() for part in ax.collections[:2])
    for (left, height), (right, _) in (sorted(map(tuple, bar)) for bar in bars):
        for (x, low), (_, high) in (sorted(map(tuple, stem), key=lambda end: end[1]) for stem in stems):
            assert not (left < x < right and low < height < high)


def test_long_names_of_peaks_are_cut():
    model = mixture(n_components=9, scale=2.0)
    ax = plot.saddles(release(model))
    assert any(" +" in label.get_text() for label in ax.get_xticklabels())


@pytest.mark.parametrize("d", [1, 2, 3])
def test_centres_of_mixtures(d):
    for model, n_clusters in ((mixture(d), 5), (merged(d), 2)):
        ax = plot.centres(release(model))
        ax.figure.canvas.draw()
        assert number_texts(ax) == {str(label) for label in range(n_clusters)}


def test_bands_are_one_standard_deviation():
    ax = plot.centres(release(mixture(3)))
    band = ax.collections[1].get_paths()[0].vertices
    height = mixture(3).means[1, 1] / 10
    at = band[band[:, 0] == 1, 1]
    assert (at.min(), at.max()) == pytest.approx((height - 0.02, height + 0.02))
    many = plot.centres(release(mixture(3, n_components=7)))
    heights = [np.ptp(part.get_paths()[0].vertices[:, 1]) for part in many.collections]
    np.testing.assert_allclose(heights, [np.ptp(line.get_ydata()) for line in many.lines])


def test_noise_of_means_and_sizes():
    model = replace(mixture(3), mean_stds=np.full((5, 3), 0.1), size_stds=np.arange(5.0))
    assert len(plot.centres(release(model)).containers) == 5
    np.testing.assert_array_equal(model.groups.size_stds, np.arange(5.0))
    joined = MorseModel(model, 2)
    assert not plot.centres(release(joined)).containers
    groups = joined.groups
    left, right = groups.labels[:2]
    np.testing.assert_allclose(groups.size_stds[[left, right]], np.sqrt([0 + 4 + 16, 1 + 9]))


def test_seeded_pictures_say_so():
    for draw in (plot.mixture, plot.saddles, plot.centres):
        assert "SEEDED: DO NOT PUBLISH" in draw(release(merged(), seeded=True)).get_title()
        assert "PUBLISH" not in draw(release(merged())).get_title()


def test_given_axes_are_used():
    ax = plot.blank(4, 3).add_subplot()
    for draw in (plot.mixture, plot.saddles):
        assert draw(release(merged()), ax) is ax
    assert not plt.get_fignums()


def test_grid_of_a_mixture_points_to_centres():
    with pytest.raises(ParameterError, match="noisy grid over one or two columns, got DPMoG"):
        plot.grid(release(mixture()))


def test_fitted_estimators():
    X = merged().base.mixture.sample(2000, 0).clip(0, 10)
    base = DPMoG(4, epsilon=5, delta=1e-6, bounds=(0, 10), random_state=0).fit(X)
    joined = MorseClustering(DPMoG(4), 2, epsilon=5, delta=1e-6, bounds=(0, 10), random_state=0).fit(X)
    for fitted in (base, joined):
        plot.mixture(fitted, X=X[:50]).figure.canvas.draw()
        plot.saddles(fitted).figure.canvas.draw()
