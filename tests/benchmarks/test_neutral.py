"""The protocols of others: how rows are prepared, and which figures stand beside ours."""

import numpy as np
import pytest

from benchmarks import dpm_protocol, fastlloyd_suite, google_page, neutral, papers
from sfumato import Ball


def test_columns_are_scaled_by_their_extremes() -> None:
    found = neutral.min_max(np.array([[0.0, 5.0, 1.0], [10.0, 5.0, 3.0], [5.0, 5.0, 2.0]]))
    np.testing.assert_allclose(found, [[-1, 0, -1], [1, 0, 1], [0, 0, 0]])


def test_box_of_a_ball_holds_the_rows() -> None:
    X = np.array([[3.0, 0.0], [0.0, -4.0]])
    assert neutral.Table("", X, Ball(4.0)).box == (-4.0, 4.0)
    assert neutral.Table("", X, (-9.0, 9.0)).box == (-9.0, 9.0)


def test_rows_drawn_by_googles_recipe() -> None:
    table = google_page.drawn(2_000)
    assert table.X.shape == (2_000, google_page.N_COLUMNS)
    assert np.linalg.norm(table.X, axis=1).max() <= 1 + 1e-12
    assert np.linalg.norm(table.centers, axis=1).max() <= google_page.RADIUS
    inertia = neutral.inertia_of_kmeans(table, google_page.N_CENTERS)
    spread = inertia / table.X.size  # a variance, as far as no row is on the rim and no centre empty
    assert spread == pytest.approx(google_page.DEVIATION**2, rel=0.1)


@pytest.mark.parametrize(("k", "d"), [(2, 2), (8, 4)])
def test_generated_grid(k: int, d: int) -> None:
    table = fastlloyd_suite.generated(k, d, 5_000)
    assert table.X.shape == (5_000, d)
    assert (table.X.min(), table.X.max()) == (-1.0, 1.0)
    near = np.argmin(((table.X[:, None] - table.centers) ** 2).sum(axis=2), axis=1)
    shares = np.bincount(near, minlength=k) / len(near)
    np.testing.assert_allclose(shares, np.arange(1, k + 1) / (k * (k + 1) / 2), atol=0.03)


def test_delta_of_fast_lloyd() -> None:
    assert fastlloyd_suite.delta_of(1_000) == pytest.approx(1 / (1_000 * np.log(1_000)), rel=1e-2)


def test_figures_beside_ours_are_those_of_the_setting() -> None:
    assert google_page.google_at({"data": "UCI Gas", "k": 64}) == 3.2
    assert google_page.google_at({"data": "Synthetic", "k": 64}) is None
    assert fastlloyd_suite.fast_lloyd_at({"data": "Shuttle", "epsilon": 0.1}) == 4.46
    assert fastlloyd_suite.fast_lloyd_at({"data": "Shuttle", "epsilon": 0.5}) is None
    assert all(
        len(curve) == len(google_page.KS) for curve in papers.published("google_page")["ratio"].values()
    )


def test_letters_are_drawn_with_as_many_of_each_class() -> None:
    classes = np.repeat(np.arange(26), np.arange(700, 726))
    chosen = dpm_protocol.resampled(classes, np.random.default_rng(0))
    assert np.bincount(classes[chosen]).tolist() == [dpm_protocol.LETTERS] * 26


def test_distance_is_a_mean_over_range_and_root_of_columns() -> None:
    rows = dpm_protocol.Rows(np.array([[0.0, 0.0], [4.0, 4.0]]), np.array([0, 1]), (0.0, 4.0))
    centers = np.array([[0.0, 1.0], [4.0, 4.0]])
    found = dpm_protocol.scores(rows, centers, 1.0, [np.array([[0.0, 0.0], [4.0, 4.0]])])
    assert found["distance"] == pytest.approx((1 / 2) / (4 * np.sqrt(2)))
    assert (found["ratio"], found["accuracy"]) == (1.0, 1.0)
