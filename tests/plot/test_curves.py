"""The curve over numbers of clusters."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from sfumato import DPDBSCAN, LloydKMeans, datasets, plot
from sfumato.errors import ParameterError

ROWS = datasets.separated_gaussians(20_000, 4, 3, random_state=1)[0]
AROUND = {"bounds": (-1, 1), "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return LloydKMeans(4, epsilon=1, delta=1e-6, **AROUND).fit(ROWS)


def test_curve(model):
    ax = plot.numbers(model, plot.blank(5, 3).add_subplot())
    beside = next(axes for axes in ax.figure.axes if axes is not ax)
    curve = model.cells_.curve()
    assert np.array_equal(ax.lines[0].get_xdata(), curve.numbers)
    assert np.array_equal(ax.lines[0].get_ydata(), curve.costs)
    assert np.array_equal(beside.lines[0].get_ydata(), curve.silhouettes[1:])
    assert ax.lines[1].get_xdata()[0] == curve.suggested == 4
    assert "DO NOT PUBLISH" in ax.get_title()


def test_other_methods_are_refused():
    spans = DPDBSCAN(0.3, 200, **AROUND).fit(ROWS[:2000, :2])
    with pytest.raises(ParameterError, match=r"cells or a grid.*plot\.spans"):
        plot.numbers(spans)
