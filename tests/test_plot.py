import sys
from dataclasses import dataclass, replace
from fractions import Fraction

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

mpl.use("Agg")

from matplotlib import pyplot as plt

from sfumato import GridKMeans, Release, plot
from sfumato.aggregates import Sensitivity
from sfumato.budget import Budget, PrivacyStatement, Record
from sfumato.datasets import separated_gaussians
from sfumato.domain import Domain, Grid, Unit
from sfumato.errors import ParameterError
from sfumato.models import CentreModel
from sfumato.synopsis import GridSynopsis


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
    grid = Grid(domain.low, domain.high, tuple(range(3, 3 + d)))
    counts = np.arange(grid.n_cells, dtype=np.int64)
    noise = {"noise_std": 2.0, "laplace": True, "rows_std": 5.0}
    synopsis = GridSynopsis(grid, counts, noisy_rows=float(counts.sum()), **noise) if has_grid else None
    centers = np.linspace(0.2, 0.8, n_clusters)[:, None] * np.array(domain.high)
    model = CentreModel(centers, np.arange(1.0, n_clusters + 1), synopsis)
    return Release("GridKMeans", {}, domain, columns, model, statement(seeded=seeded))


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
@pytest.mark.parametrize("d", [1, 2, 3, 8])
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

    with pytest.raises(ParameterError, match="Other"):
        plot.centres(replace(release(), model=Other()))


def test_missing_matplotlib_is_explained(monkeypatch):
    for module in ("matplotlib.pyplot", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    for draw in (plot.centres, plot.budget):
        with pytest.raises(ImportError, match=r"pip install 'sfumato\[report\]'"):
            draw(release())
    with pytest.raises(ImportError, match="pip install"):
        plot.blank(4, 3)
