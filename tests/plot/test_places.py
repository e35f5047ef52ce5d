"""The picture of chosen places, and their part of the report."""

import numpy as np
import pytest

from sfumato import LloydKMeans, SourceTargetClustering, plot, report
from sfumato.errors import ParameterError

matplotlib = pytest.importorskip("matplotlib")


def fitted(d, **parameters):
    rng = np.random.default_rng(0)
    target, source = rng.uniform(0, 1, (60, d)), rng.uniform(0, 0.4, (300, d))
    shared = {"n_clusters": 3, "bounds": (0, 1), "epsilon": 5.0, "random_state": 0}
    return SourceTargetClustering(**{**shared, **parameters}).fit(target, source), target


def test_chosen_and_sanitised_are_drawn():
    model, target = fitted(2)
    ax = plot.places(model.release_, plot.blank(5, 5).add_subplot(), target=target)
    drawn = {marks.get_label(): np.asarray(marks.get_offsets()) for marks in ax.collections}
    np.testing.assert_array_equal(drawn["chosen target"], model.cluster_centers_)
    np.testing.assert_array_equal(drawn["stand-in for the source"], model.sanitized_source_)
    np.testing.assert_array_equal(drawn["target"], target)
    assert {text.get_text() for text in ax.texts} <= {"0", "1", "2"}
    assert "DO NOT PUBLISH" in ax.get_title()


def test_only_two_columns_of_this_method():
    model, _ = fitted(3)
    with pytest.raises(ParameterError, match="on 3 columns"):
        plot.places(model)
    with pytest.raises(ParameterError, match="LloydKMeans"):
        plot.places(LloydKMeans(2, bounds=(0, 1), random_state=0).fit(np.zeros((5, 2))))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_report_lists_what_was_chosen(d):
    model, _ = fitted(d)
    page = report.render(model.release_)
    assert "The chosen targets" in page
    assert f"and {len(model.sanitized_source_)} points stand in for the source" in page
    assert ("<svg" in page.split("The chosen targets")[0].split("stand for nobody")[1]) == (d == 2)
    assert all(f">{index}<" in page for index in model.center_indices_)


def test_the_bound_and_long_lists():
    model, _ = fitted(2, sanitizer="nas", t=20, bound_share=0.3)
    assert "differ by at most" in report.render(model.release_)
    rng = np.random.default_rng(0)
    many = SourceTargetClustering(105, bounds=(0, 1), random_state=0).fit(
        rng.uniform(0, 1, (200, 2)), np.zeros((9, 2))
    )
    assert "5 more" in report.render(many.release_)
