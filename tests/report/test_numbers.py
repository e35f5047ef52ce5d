"""The part of a report on other numbers of clusters."""

import re

import numpy as np
import pytest

from sfumato import GridKMeans, LloydKMeans, datasets, report
from sfumato.public.cells import CellSynopsis
from sfumato.report.numbers import _suggestion, _written

ROWS = datasets.separated_gaussians(20_000, 4, 3, random_state=1)[0]
AROUND = {"bounds": (-1, 1), "random_state": 0}


@pytest.fixture(scope="module")
def release():
    return LloydKMeans(5, epsilon=1, delta=1e-6, **AROUND).fit(ROWS).release_


def test_each_number_has_a_reading_and_a_line(release):
    page = report.render(release)
    section = page[page.index('id="numbers"') : page.index('id="budget"')]
    assert "4 clusters are clearly apart from each other. Above, there are 5." in section
    assert 'type="range" id="number"' in section
    shown = re.findall(r'class="frame" data-value="(\d+)', section)
    assert shown == [str(k) for k in range(1, len(shown) + 1)]
    assert section.count("Cost about") == len(shown)
    assert "5 (released)" in section
    assert "4 (suggested)" in section
    assert '<a href="#numbers">' in page


def test_without_cells_there_is_no_section():
    for model in (
        GridKMeans(3, **AROUND).fit(ROWS[:500, :2]),
        LloydKMeans(3, refine=False, **AROUND).fit(ROWS),
    ):
        page = report.render(model.release_)
        assert 'id="numbers"' not in page
        assert 'href="#numbers"' not in page


def test_a_single_cluster_is_said_to_be_one():
    cells = CellSynopsis(np.zeros((3, 2)), np.array([900.0, 800, 700]), np.full(3, 0.01), 10.0, 0.5, 0.01)
    assert "single cluster" in _suggestion(cells.curve(), 3)


def test_clusters_that_overlap_are_not_called_clearly_apart(release):
    curve = release.model.cells.curve()
    assert "4 clusters are clearly apart from each other." in _suggestion(curve, 4)
    overlapping = curve._replace(silhouettes=0.4 * curve.silhouettes)
    assert "4 clusters can be told from each other, but they overlap." in _suggestion(overlapping, 4)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.0123, "0.0123"), (1.234, "1.23"), (123.4, "123"), (12345, "12,300"), (1e9, "1.00e+09")],
)
def test_written(value, text):
    assert _written(value) == text
