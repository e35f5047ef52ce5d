import datetime
import sys
from dataclasses import dataclass, replace
from fractions import Fraction

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from tests.report import mixed

from sfumato import GridKMeans, Release, plot
from sfumato.budget import Budget, PrivacyStatement, Record
from sfumato.budget.records import Sensitivity
from sfumato.datasets import separated_gaussians
from sfumato.domain import Domain, Grid, Unit
from sfumato.domain.columns import read_bounds
from sfumato.errors import DataError, ParameterError
from sfumato.plot.marks import centres_height
from sfumato.plot.steps import folded_names
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.regions import Regions
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.public.models import CentreModel, SpannedModel


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def statement(*, seeded=False):
    steps = (
        Record("rows", "discrete Laplace", Sensitivity(), Fraction(5)),
        Record("grid", "discrete Laplace", Sensitivity(), Fraction(5, 4)),
    )
    return PrivacyStatement(Budget(1), Unit(), steps, seeded)


def release(d=2, *, columns=(), has_grid=True, n_clusters=3, seeded=False):
    domain = Domain((0.0,) * d, tuple(10.0 * (j + 1) for j in range(d)))
    synopsis = None
    if has_grid:
        grid = Grid(domain.low, domain.high, tuple(range(3, 3 + d)))
        counts = np.arange(grid.n_cells, dtype=np.int64)
        noise = {"noise_std": 2.0, "laplace": True, "rows_std": 5.0}
        synopsis = GridSynopsis(grid, counts, noisy_rows=float(counts.sum()), **noise)
    centers = np.linspace(0.2, 0.8, n_clusters)[:, None] * np.array(domain.high)
    model = CentreModel(centers, np.arange(1.0, n_clusters + 1), synopsis)
    return Release("GridKMeans", {}, domain, columns, model, statement(seeded=seeded))


@dataclass(frozen=True, eq=False)
class SpanModel(SpannedModel):
    metric: str = "euclidean"

    def attributes(self):
        return {}


def span_release(*masks, metric="euclidean", low=(0.0, 0.0), high=(10.0, 20.0), columns=(), seeded=False):
    """Release of one span for each mask over the box; later ones have more rows."""
    grid = Grid(low, high, np.shape(masks[0]) if masks else (2,) * len(low))
    labels, cells = np.nonzero(np.reshape(masks, (len(masks), grid.n_cells)))
    counts = np.stack([10.0 * np.arange(len(masks)), *np.zeros((2, len(masks)))], axis=1)
    histogram = NoisyHistogram(grid, np.zeros(grid.n_cells, dtype=np.int64), "discrete Laplace", 2.0)
    order = np.argsort(cells, kind="stable")
    model = SpanModel(histogram, Regions(grid, cells[order], labels[order], counts, 0.95), metric)
    return Release("DPDBSCAN", {}, Domain(low, high), columns, model, statement(seeded=seeded))


def scattered(n_spans, *, side):
    """Masks of single cells at random places of a square grid."""
    cells = np.random.default_rng(0).choice(side**2, n_spans, replace=False)
    return [(np.arange(side**2) == cell).reshape(side, side) for cell in cells]


RING = np.array([[1, 1, 1, 0], [1, 0, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0]])


def test_map_shows_the_estimated_counts_where_they_are():
    shown = release(columns=("east", "north"))
    ax = plot.centres(shown)
    (image,) = ax.images
    first, second = 2, 1
    cell = shown.model.synopsis.estimated_counts().reshape(3, 4)[first, second]
    assert image.get_array()[second, first] == cell
    assert image.get_extent() == [0, 10, 0, 20]
    assert image.origin == "lower"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("east", "north")
    ax.figure.canvas.draw()


def test_marks_have_areas_proportional_to_sizes():
    shown = release()
    (marks,) = plot.centres(shown).collections
    np.testing.assert_array_equal(marks.get_offsets(), shown.model.cluster_centers)
    areas = marks.get_sizes()
    np.testing.assert_allclose(areas / areas[0], shown.model.cluster_sizes)


@pytest.mark.parametrize("has_grid", [True, False])
@pytest.mark.parametrize("d", [1, 2, 8])
def test_any_number_of_columns(d, has_grid):
    ax = plot.centres(release(d, has_grid=has_grid))
    ax.figure.canvas.draw()
    numbers = {text.get_text() for text in ax.texts}
    assert {"0", "1", "2"} <= numbers


def test_parallel_coordinates_run_between_the_bounds():
    ax = plot.centres(release(3, columns=("age", "income", "visits")))
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.2, 0.2, 0.2])
    assert [label.get_text() for label in ax.get_xticklabels()] == [
        "age\n0 to 10",
        "income\n0 to 20",
        "visits\n0 to 30",
    ]


def test_numbers_beside_lines_keep_apart():
    shown = release(3, n_clusters=12)
    crowded = replace(shown.model, cluster_centers=np.full((12, 3), 9.9))
    ax = plot.centres(replace(shown, model=crowded))
    heights = np.sort([text.get_position()[1] for text in ax.texts])
    assert np.diff(heights).min() > 0.05
    assert heights.max() <= 1.0


@pytest.mark.parametrize("d", [1, 2, 3])
def test_column_names_are_not_read_as_formulas(d):
    ax = plot.centres(release(d, columns=("$\\frac$", "a_b^c", "\\%")[:d]))
    ax.figure.canvas.draw()


def test_long_column_names_are_cut():
    ax = plot.centres(release(columns=("x" * 80, "two\nlines")))
    assert len(ax.get_xlabel()) < 30
    assert ax.get_ylabel() == "two lines"


def with_noise(shown, std):
    """The same release, with noise of so many units in the first column and twice as many in the next, ..."""
    centers = shown.model.cluster_centers
    stds = std * np.arange(1, centers.shape[1] + 1) * np.ones((len(centers), 1))
    return replace(shown, model=replace(shown.model, center_stds=stds))


def test_ellipses_hold_the_noise_of_centres():
    shown = with_noise(release(has_grid=False), 0.5)
    ax = plot.centres(shown)
    ellipses, _ = ax.collections
    ax.figure.canvas.draw()
    np.testing.assert_array_equal(ellipses.get_offsets(), shown.model.cluster_centers)
    noise = np.random.default_rng(0).normal(scale=(0.5, 1.0), size=(100_000, 2))
    radii = np.array([ellipses.get_widths()[0], ellipses.get_heights()[0]]) / 2
    inside = ((noise / radii) ** 2).sum(axis=1) < 1
    assert inside.mean() == pytest.approx(0.95, abs=0.003)
    assert "ellipses cover 95% of the noise" in ax.get_title()


def test_ellipses_are_in_the_units_of_the_columns():
    """Nine tenths of the way along each axis is inside, a little more than the whole is not."""
    ax = plot.centres(with_noise(release(has_grid=False, n_clusters=1), 0.5), plot.blank(5, 4).add_subplot())
    _, marks = ax.collections
    marks.remove()
    ax.texts[0].remove()
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    image, radius = np.asarray(canvas.buffer_rgba())[::-1, :, :3], 2.448 * 0.5
    for along in ((radius, 0), (0, 2 * radius)):
        for times, is_inside in ((0.8, True), (1.2, False)):
            x, y = ax.transData.transform(np.array([2.0, 4.0]) + times * np.array(along)).astype(int)
            assert (image[y, x] < 255).any() == is_inside


@pytest.mark.parametrize("has_grid", [True, False])
def test_bars_hold_the_noise_of_centres_in_one_column(has_grid):
    shown = with_noise(release(1, has_grid=has_grid), 0.5)
    ax = plot.centres(shown)
    ax.figure.canvas.draw()
    (segments,) = [bars.get_segments() for bars in ax.containers[-1].lines[2]]
    np.testing.assert_allclose(np.ptp(segments, axis=1)[:, 0], 2 * 1.96 * 0.5)
    np.testing.assert_allclose(np.mean(segments, axis=1)[:, 0], shown.model.cluster_centers[:, 0])
    assert "bars cover 95% of the noise" in ax.get_title()


@pytest.mark.parametrize("d", [3, 12])
def test_bars_hold_the_noise_of_centres_in_each_column(d):
    ax = plot.centres(with_noise(release(d, has_grid=False), 0.5))
    ax.figure.canvas.draw()
    assert len(ax.containers) == 3
    (segments,) = [bars.get_segments() for bars in ax.containers[0].lines[2]]
    assert len(segments) == d
    along = int(d == 3)  # many axes lie across
    np.testing.assert_allclose(np.ptp(segments, axis=1)[:, along], 2 * 1.96 * 0.05)  # upper bounds grow too


@pytest.mark.parametrize("d", [1, 2, 3])
def test_centres_without_noise_have_no_bars(d):
    ax = plot.centres(release(d))
    assert "95%" not in ax.get_title()
    assert not [part for part in ax.containers if hasattr(part, "has_xerr")]


@pytest.mark.parametrize("sizes", [[0.0, 0.0, 0.0], [-3.0, 4.0, 5.0]])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_sizes_that_noise_made_zero_or_negative(d, sizes):
    shown = release(d)
    shown = replace(shown, model=replace(shown.model, cluster_sizes=np.array(sizes)))
    plot.centres(shown).figure.canvas.draw()


def test_seeded_pictures_say_so():
    for draw in (plot.centres, plot.grid, plot.budget):
        assert "DO NOT PUBLISH" in draw(release(seeded=True)).get_title()
        assert "DO NOT PUBLISH" not in draw(release()).get_title()


def test_given_axes_are_used():
    ax = plot.blank(4, 3).add_subplot()
    assert plot.centres(release(), ax) is ax
    assert plot.budget(release(), ax=ax) is ax
    assert not plt.get_fignums()


def test_fitted_estimator_in_place_of_a_release():
    X, _ = separated_gaussians(500, 3, 2)
    model = GridKMeans(3, bounds=(-1, 1), random_state=0)
    with pytest.raises(NotFittedError):
        plot.centres(model)
    assert plot.centres(model.fit(X)).get_xlabel() == "column 1"


@pytest.mark.parametrize("d", [1, 2])
def test_grid_alone(d):
    ax = plot.grid(release(d))
    ax.figure.canvas.draw()
    assert not ax.texts


@pytest.mark.parametrize(("d", "has_grid"), [(3, True), (2, False)])
def test_grid_that_cannot_be_drawn(d, has_grid):
    with pytest.raises(ParameterError, match="one or two columns"):
        plot.grid(release(d, has_grid=has_grid))


def test_budget_shows_each_step_once():
    ax = plot.budget(release())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["rows", "grid"]
    assert [bar.get_width() for bar in ax.patches] == [20, 80]


def test_shares_add_repeats_and_count_rho_beside_delta():
    steps = (Record("a", "discrete Gaussian", Sensitivity(), Fraction(2)),) * 3
    steps += (Record("b", "discrete Laplace", Sensitivity(), Fraction(2)),)
    shown = replace(release(), privacy=PrivacyStatement(Budget(4, 1e-6), Unit(), steps, False))
    assert plot.step_shares(shown) == {"a": 0.75, "b": 0.25}


def test_model_without_centres():
    @dataclass
    class Other:
        n_features: int = 2

    with pytest.raises(ParameterError, match=r"must have centres, got GridKMeans on 2 columns.*plot\.budget"):
        plot.centres(replace(release(), model=Other()))


def test_missing_matplotlib_is_explained(monkeypatch):
    for module in ("matplotlib.pyplot", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    for draw in (plot.centres, plot.budget):
        with pytest.raises(ImportError, match=r"pip install 'sfumato\[report\]'"):
            draw(release())
    with pytest.raises(ImportError, match="pip install"):
        plot.blank(4, 3)


def test_spans_are_filled_and_their_holes_are_not():
    shown = span_release(RING, columns=("east", "north"))
    ax = plot.spans(shown, plot.blank(4, 4).add_subplot())
    ax.set_axis_off()
    ax.texts[0].remove()
    ax.set_title("")
    ax.set_position((0, 0, 1, 1))
    ax.set_aspect("auto")
    ax.figure.set_layout_engine("none")
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    image = np.asarray(canvas.buffer_rgba())[::-1, :, :3]
    middles = (2 * np.arange(4) + 1) * len(image) // 8
    is_filled = (image[np.ix_(middles, middles)] < 250).any(axis=2)
    np.testing.assert_array_equal(is_filled.T, RING)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("east", "north")


def test_numbers_lie_in_their_spans():
    shape = np.zeros((20, 20))
    shape[2:8, 2:18] = shape[2:18, 2:8] = 1
    other = np.zeros((20, 20))
    other[15:, 15:] = 1
    shown = span_release(shape, other)
    ax = plot.spans(shown)
    places = {int(text.get_text()): text.get_position() for text in ax.texts}
    assert set(places) == {0, 1}
    np.testing.assert_array_equal(shown.predict(list(places.values())), list(places))


def test_number_of_a_small_span_does_not_hide_it():
    shown = span_release(*scattered(1, side=50))
    (text,) = plot.spans(shown).texts
    low, high = shown.model.spans[0].extent
    assert low[0] < text.get_position()[0] < high[0]
    assert text.get_position()[1] > high[1]


def test_many_spans_carry_few_numbers_that_keep_apart():
    ax = plot.spans(span_release(*scattered(300, side=40), high=(10.0, 10.0)))
    ax.figure.canvas.draw()
    assert len(ax.collections[0].get_paths()) == 300
    numbers = [int(text.get_text()) for text in ax.texts]
    assert 10 <= len(numbers) <= 20
    assert numbers[0] == 299  # the largest
    frames = [text.get_window_extent() for text in ax.texts]
    assert not any(a.overlaps(b) for i, a in enumerate(frames) for b in frames[:i])
    assert all(ax.bbox.contains(*corner) for frame in frames for corner in (frame.min, frame.max))


def test_neighbouring_spans_differ_in_colour():
    masks = [(np.arange(16) == cell).reshape(4, 4) for cell in range(16)]
    colours = plot.spans(span_release(*masks)).collections[0].get_edgecolors()[::-1].reshape(4, 4, 4)
    assert (colours[1:] != colours[:-1]).any(axis=2).all()
    assert (colours[:, 1:] != colours[:, :-1]).any(axis=2).all()


def test_many_corners_become_an_image():
    board = np.indices((120, 120)).sum(axis=0) % 2
    assert plot.spans(span_release(board)).collections[0].get_rasterized()
    assert not plot.spans(span_release(RING)).collections[0].get_rasterized()


@pytest.mark.parametrize(
    ("metric", "low", "high", "aspect"),
    [
        ("euclidean", (0.0, 0.0), (10.0, 20.0), 1.0),
        ("euclidean", (0.0, 0.0), (10.0, 90.0), "auto"),
        ("geo", (-5.0, 50.0), (15.0, 70.0), 2.0),
        ("geo", (-180.0, -90.0), (180.0, 90.0), 1.0),
    ],
)
def test_maps_are_to_scale(metric, low, high, aspect):
    ax = plot.spans(span_release(RING, metric=metric, low=low, high=high))
    assert ax.get_aspect() == (aspect if aspect == "auto" else pytest.approx(aspect))
    assert ax.get_xlim() == (low[0], high[0])
    assert ax.get_ylim() == (low[1], high[1])
    ax.figure.canvas.draw()


def test_no_spans():
    ax = plot.spans(span_release())
    ax.figure.canvas.draw()
    assert ax.texts[0].get_text() == "nothing stands out from the noise"
    assert "0 spans" in ax.get_title()


def test_rows_over_spans_are_not_for_publication():
    shown = span_release(RING)
    rows = np.array([[1.0, 1.0], [9.0, 19.0], [2.0, 1.0]])
    ax = plot.spans(shown, X=rows)
    assert "SHOWS RECORDS: DO NOT PUBLISH" in ax.get_title()
    outside, inside = ax.lines
    np.testing.assert_array_equal(outside.get_xydata(), rows[[1]])
    np.testing.assert_array_equal(inside.get_xydata(), rows[[0, 2]])
    with pytest.raises(DataError, match="2 columns"):
        plot.spans(shown, X=np.ones((3, 5)))


def test_span_titles():
    assert plot.spans(span_release(RING)).get_title() == "DPDBSCAN, 1 span, epsilon=1"
    assert "SEEDED: DO NOT PUBLISH" in plot.spans(span_release(RING, seeded=True)).get_title()
    ax = plot.blank(4, 3).add_subplot()
    assert plot.spans(span_release(RING, RING), ax) is ax


def test_spans_that_cannot_be_drawn():
    with pytest.raises(ParameterError, match=r"spans, got GridKMeans on 2 columns.*plot\.centres"):
        plot.spans(release())
    with pytest.raises(ParameterError, match=r"got DPDBSCAN on 3 columns\. Draw .*plot\.sizes.*span\.boxes"):
        plot.spans(span_release(np.ones((2, 2, 2)), low=(0.0,) * 3, high=(1.0,) * 3))


@pytest.mark.parametrize(
    ("low", "high"), [((-122.48, 37.72), (-122.38, 37.82)), ((0.0, 0.0), (1e7, 1e7)), ((0, 0), (1, 1))]
)
def test_ticks_of_a_map_do_not_overlap(low, high):
    ax = plot.spans(span_release(RING, low=low, high=high), plot.blank(5.2, 4.7).add_subplot())
    FigureCanvasAgg(ax.figure).draw()
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        frames = [label.get_window_extent() for label in labels if label.get_text()]
        assert len(frames) >= 2
        assert not any(a.overlaps(b) for i, a in enumerate(frames) for b in frames[:i])


def test_names_of_axes_do_not_overlap():
    for names in (("age", "income", "visits"), [f"a long name of column {j}" for j in range(20)]):
        shown = release(len(names), columns=tuple(names), has_grid=False)
        ax = plot.centres(shown, plot.blank(5.2, centres_height(shown)).add_subplot())
        FigureCanvasAgg(ax.figure).draw()
        frames = [label.get_window_extent() for label in [*ax.get_xticklabels(), *ax.get_yticklabels()]]
        assert not any(a.overlaps(b) for i, a in enumerate(frames) for b in frames[:i])
        assert min(frame.x0 for frame in frames) >= 0


def test_categories_and_cycles_have_no_axis():
    shown = mixed.release(has_profiles=False)
    ax = plot.centres(shown)
    names = [label.get_text().split("\n")[0] for label in ax.get_yticklabels()]
    assert names == ["age", "admitted", "severity"]
    lines = [line for line in ax.lines if line.get_linestyle() != "None"]  # others are ends of intervals
    np.testing.assert_allclose([line.get_xdata()[0] for line in lines], [0.3, 0.4, 0.5, 0.6])
    assert "1 Jan 2024 to 31 Dec 2024" in ax.get_yticklabels()[1].get_text()


def test_centres_of_categories_alone_point_to_the_report():
    columns, domain = read_bounds({"ward": ["a", "b"]}, None, Unit())
    model = CentreModel(np.full((2, 3), 1 / 3), np.ones(2))
    shown = Release("DPM", {}, domain, columns.labels, model, statement(), columns)
    with pytest.raises(ParameterError, match="a column of numbers, dates or ranks, got none"):
        plot.centres(shown)


def test_dates_along_a_map_are_dates():
    bounds = {"east": (0, 400), "day": (datetime.date(2024, 1, 1), datetime.date(2024, 12, 31))}
    columns, domain = read_bounds(bounds, None, Unit())
    model = CentreModel(np.array([[20.0, domain.low[1] + 30]]), np.ones(1))
    ax = plot.centres(Release("DPM", {}, domain, columns.labels, model, statement(), columns))
    ax.figure.canvas.draw()
    texts = [label.get_text() for label in ax.get_yticklabels()]
    assert any(text.endswith(" 2024") for text in texts)


def test_numbered_steps_share_a_bar():
    shown = mixed.release()
    ax = plot.budget(shown)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["rows", "splits 1–9", "sizes 1–9", "centres"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([5, 45, 45, 5])
    assert len(plot.step_shares(shown)) == 20
    assert folded_names(["a 1", "a 2", "a 4", "b 2", "c", "c 1", "c 01 "]) == {
        "a 1": "a (3 steps)",
        "a 2": "a (3 steps)",
        "a 4": "a (3 steps)",
        "b 2": "b 2",
        "c": "c",
        "c 1": "c 1",
        "c 01 ": "c 01 ",
    }
