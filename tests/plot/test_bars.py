from dataclasses import dataclass, replace
from fractions import Fraction

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt

from sfumato import DensityTree, DPMoG, GridKMeans, LloydKMeans, MorseClustering, Release, plot
from sfumato.budget import Budget, PrivacyStatement, Record
from sfumato.budget.records import Sensitivity
from sfumato.domain import Domain, Grid, Unit
from sfumato.errors import ParameterError
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.regions import Regions
from sfumato.public.models import CentreModel, MixtureModel, MorseModel, SourceTargetModel, SpannedModel


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@dataclass(frozen=True, eq=False)
class SpanModel(SpannedModel):
    def attributes(self):
        return {}


def release(model, method="GridKMeans"):
    d = model.n_features
    steps = (Record("grid", "discrete Laplace", Sensitivity(), Fraction(1)),)
    privacy = PrivacyStatement(Budget(1), Unit(), steps, seeded=False)
    return Release(method, {}, Domain((0.0,) * d, (1.0,) * d), (), model, privacy)


def centres(sizes, stds=None):
    sizes = np.array(sizes, dtype=float)
    return CentreModel(np.full((len(sizes), 2), 0.5), sizes, size_stds=stds)


def spans(*counts):
    grid, labels = Grid((0.0, 0.0), (1.0, 1.0), (8, 8)), np.arange(len(counts))
    histogram = NoisyHistogram(grid, np.zeros(64, dtype=np.int64), "discrete Laplace", 2.0)
    return SpanModel(histogram, Regions(grid, labels, labels, np.outer(counts, [1.0, 0.9, 1.2]), 0.95))


def drawn(ax):
    """Label and length of each bar from the top down, and the intervals."""
    labels = [label.get_text() for label in ax.get_yticklabels()]
    intervals = [segment[:, 0] for lines in ax.collections for segment in lines.get_segments()]
    return labels, [bar.get_width() for bar in ax.patches], np.array(intervals)


def test_the_largest_comes_first():
    ax = plot.sizes(release(centres([5, 30, 20], np.array([1.0, 10.0, 20.0]))))
    ax.figure.canvas.draw()
    labels, lengths, intervals = drawn(ax)
    assert (labels, lengths) == (["1", "2", "0"], [30, 20, 5])
    np.testing.assert_allclose(intervals, [[10.4, 49.6], [0, 59.2], [3.04, 6.96]])
    top, bottom = ax.patches[0].get_y(), ax.patches[2].get_y()
    assert ax.transData.transform((0, top))[1] > ax.transData.transform((0, bottom))[1]
    assert ax.get_title() == "GridKMeans, 3 clusters, epsilon=1"


def test_spans_bring_their_intervals():
    labels, lengths, intervals = drawn(plot.sizes(release(spans(10.0, 40.0))))
    assert (labels, lengths) == (["1", "0"], [40, 10])
    np.testing.assert_allclose(intervals, [[36, 48], [9, 12]])


def test_components_and_clusters_of_a_mixture():
    means, covariances = np.array([[0.2, 0.5], [0.21, 0.5], [0.9, 0.5]]), np.stack([0.01 * np.eye(2)] * 3)
    sizes, stds = np.array([30.0, 40.0, 50.0]), np.array([3.0, 4.0, 1.0])
    base = MixtureModel(sizes / 120, means, covariances, sizes, stds)
    ax = plot.sizes(release(base, "DPMoG"))
    assert ax.get_ylabel() == "component"
    assert drawn(ax)[1] == [50, 40, 30]
    ax = plot.sizes(release(MorseModel(base, 2), "MorseClustering"))
    assert ax.get_ylabel() == "cluster"
    labels, lengths, intervals = drawn(ax)
    assert len(labels) == 2
    assert lengths == [70, 50]
    np.testing.assert_allclose(np.ptp(intervals, axis=1), [2 * 1.96 * 5, 2 * 1.96])


def test_sizes_whose_noise_is_unknown_have_no_intervals():
    ax = plot.sizes(release(centres([5, 30, 20])))
    assert not ax.collections
    assert ax.get_xlabel() == "estimated records"


def test_the_rest_is_summed_in_words():
    ax = plot.sizes(release(centres(np.arange(1, 41), np.ones(40))))
    ax.figure.canvas.draw()
    assert len(ax.patches) == 30
    assert ax.get_xlabel().endswith("10 smaller clusters: about 55 records in total")
    assert "1 smaller cluster: " in plot.sizes(release(centres(np.arange(31)))).get_xlabel()
    frames = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert not any(a.overlaps(b) for i, a in enumerate(frames) for b in frames[:i])


@pytest.mark.parametrize("counts", [[], [7.0], [0.0, 0.0]])
def test_few_and_empty(counts):
    ax = plot.sizes(release(spans(*counts), "DPDBSCAN"))
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.texts] == ["nothing stands out from the noise"] * (not counts)


def test_sizes_that_noise_made_negative():
    plot.sizes(release(centres([-3, 4], np.array([1.0, 1.0])))).figure.canvas.draw()


def test_seeded_pictures_say_so_and_given_axes_are_used():
    shown, ax = release(centres([3, 4])), plot.blank(4, 3).add_subplot()
    assert plot.sizes(shown, ax) is ax
    assert "PUBLISH" not in ax.get_title()
    seeded = replace(shown, privacy=replace(shown.privacy, seeded=True))
    assert "SEEDED: DO NOT PUBLISH" in plot.sizes(seeded, ax).get_title()


def test_model_without_sizes_points_to_its_picture():
    for d, picture in ((2, "places"), (3, "budget")):
        model = SourceTargetModel(np.ones((1, d)), np.zeros(1, dtype=np.int64), np.ones((1, d)), 0.0, 1)
        with pytest.raises(
            ParameterError, match=rf"sizes, got SourceTargetClustering on {d}.*plot\.{picture}"
        ):
            plot.sizes(release(model, "SourceTargetClustering"))


@pytest.mark.parametrize("d", [2, pytest.param(12, marks=pytest.mark.slow)])
def test_fitted_estimators(d):
    rng, shared = np.random.default_rng(0), {"epsilon": 5, "delta": 1e-6, "bounds": (0, 1), "random_state": 0}
    X = (rng.integers(2, size=(500, 1)) * 0.6 + rng.normal(0.2, 0.03, (500, d))).clip(0, 1)
    methods = [LloydKMeans(2, **shared), DPMoG(2, **shared), MorseClustering(DPMoG(2), 2, **shared)]
    if d <= 3:
        methods += [GridKMeans(2, **shared), DensityTree(**shared)]
    for method in methods:
        ax = plot.sizes(method.fit(X))
        ax.figure.canvas.draw()
        _, lengths, intervals = drawn(ax)
        assert len(lengths) == len(intervals) > 0
        assert (intervals[:, 0] <= lengths).all()
        assert (lengths <= intervals[:, 1]).all()
