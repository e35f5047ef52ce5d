import re

import numpy as np
import pytest

from sfumato import DensityTree, report
from sfumato.plot.columns import columns_of
from sfumato.public.density.outlines import outlines_of
from sfumato.report.maps import _path, _values, span_map

BOUNDS = {"lon": (-122.6, -122.2), "lat": (37.5, 37.9)}


@pytest.fixture(scope="module")
def release():
    import pandas as pd

    rng = np.random.default_rng(0)
    places = np.array([[-122.5, 37.6], [-122.4, 37.8], [-122.3, 37.7]])
    rows = places[rng.integers(3, size=20_000)] + rng.normal(scale=0.01, size=(20_000, 2))
    table = pd.DataFrame(rows, columns=["lon", "lat"])
    return DensityTree(epsilon=4.0, bounds=BOUNDS, metric="geo", random_state=0).fit(table).release_


def test_each_span_is_one_shape_with_its_own_outline(release):
    spans = release.model.spans
    drawn = span_map(release, spans, "alt", "caption")
    paths = re.findall(r'd="(M[^"]*z)"', drawn)
    assert len(paths) == len(spans) >= 3
    for span, path in zip(spans, paths, strict=True):
        assert _area(path) == len(span.cells)  # holes count against their surroundings
        assert f"<title>span {span.label}: about {round(span.count):,} records</title>" in drawn


def _area(path):
    """Area inside a path of horizontal and vertical sides, in cells."""
    total = 0
    for ring in path.split("z")[:-1]:
        start, y = map(int, re.match(r"M(-?\d+) (-?\d+)", ring).groups())
        x = start
        for way, step in re.findall(r"([hv])(-?\d+)", ring):
            if way == "h":
                total -= y * int(step)
                x += int(step)
            else:
                y += int(step)
        total -= y * (start - x)  # the side that closes the ring
    return total


def test_shapes_are_drawn_where_the_axes_say(release):
    drawn = span_map(release, release.model.spans, "alt", "caption")
    matrix = [float(part) for part in re.search(r"matrix\(([^)]*)\)", drawn)[1].split()]
    left, top, width, height = (
        float(re.search(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', drawn)[i])
        for i in range(1, 5)
    )
    n_x, n_y = release.model.spans[0].grid.shape
    assert (matrix[4], matrix[5]) == pytest.approx((left, top + height), abs=0.01)
    assert (matrix[0] * n_x, -matrix[3] * n_y) == pytest.approx((width, height), rel=1e-3)
    assert height / width == pytest.approx(1 / np.cos(np.radians(37.7)), rel=1e-3)  # to scale


def test_ticks_are_in_the_words_of_the_column(release):
    column = columns_of(release)[0]
    assert [text for _, text in _values(column, 2)] == ["−122.6", "−122.4", "−122.2"]


def test_a_ring_starts_again_where_it_began(release):
    for span in release.model.spans:
        (polygons,) = outlines_of(span.grid.shape, [span.cells])
        assert _path(polygons).count("M") == sum(map(len, span.polygons))


def test_a_page_of_spans_needs_no_drawing_library(release, monkeypatch):
    monkeypatch.setattr("sfumato.plot.style.blank", lambda *_: pytest.fail("drawn by matplotlib"))
    monkeypatch.setattr("sfumato.plot.blank", lambda *_: pytest.fail("drawn by matplotlib"))
    page = report.render(release)
    assert page.count("<figure") >= 2 * len(release.model.spans)  # a map and a tree for each reading
    assert page.count("noise in empty areas") >= len(release.model.spans)
    assert "density, in records per cell" in page


def test_places_at_certain_times_are_drawn_as_footprints():
    import pandas as pd

    from sfumato import plot

    rng = np.random.default_rng(1)
    late = rng.integers(2, size=20_000)
    table = pd.DataFrame(rng.normal((-122.4, 37.7), 0.02, (20_000, 2)), columns=["lon", "lat"])
    table["hour"] = rng.normal(np.where(late, 20.0, 8.0), 1.0) % 24
    bounds = BOUNDS | {"hour": {"cycle": (0, 24)}}
    found = DensityTree(epsilon=4.0, bounds=bounds, metric="geo", random_state=0).fit(table).release_
    drawn = span_map(found, found.model.spans, "alt", "caption")
    paths = re.findall(r'd="(M[^"]*z)"', drawn)
    assert [_area(path) for path in paths] == [len(span.footprint.cells) for span in found.model.spans]
    assert len(paths) == 2
    page = report.render(found)
    assert "Spans that lie over each other differ in the other columns." in page
    times = {one["properties"]["around_hour"][:2] for one in found.to_geojson()["features"]}
    assert times <= {"07", "08", "19", "20"}
    assert len(times) == 2
    (shapes,) = plot.spans(found).collections
    assert len(shapes.get_paths()) == 2
