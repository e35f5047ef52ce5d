import re

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from sfumato import DPDBSCAN, DPM, DensityTree, LloydKMeans, datasets, report
from sfumato.plot.columns import with_error
from sfumato.public.models import DensityModel
from sfumato.report import choices
from sfumato.report.choices import round_numbers, slider, thinned


@pytest.fixture(scope="module")
def city():
    return datasets.city(20_000, random_state=0)[0]


def values(text):
    return [value.replace(",", "") for value in re.findall(r'data-value="([^"]+)"', text)]


def test_a_slider_shows_the_chosen_value_first():
    text = slider("k", "Number:", range(1, 6), 3, lambda value: f"<p>{value} here</p>")
    assert values(text) == ["1", "2", "3 (as released)", "4", "5"]
    assert re.findall(r"<div class=\"frame\" data-value=\"[^\"]+\">(<p>.*?</p>)", text) == ["<p>3 here</p>"]
    assert text.count('class="frame"') == text.count(" here") == 5
    assert 'type="range" id="k" min="0" max="4" step="1" value="2"' in text


def test_one_value_needs_no_slider():
    assert slider("k", "Number:", [7], 7, str) == "7"


def test_large_pictures_are_few(monkeypatch):
    monkeypatch.setattr(choices, "MOST_BYTES", 4_000)
    assert len(values(slider("k", "Number:", range(1, 30), 4, lambda value: "x" * 1_000))) == 4
    assert "slider" not in slider("k", "Number:", range(1, 30), 4, lambda value: "x" * 3_000)


@pytest.mark.parametrize("chosen", [1, 5, 17, 40])
@pytest.mark.parametrize("most", [3, 7, 12])
def test_thinned_values(chosen, most):
    kept = thinned(range(1, 41), chosen, most)
    assert len(kept) <= most
    assert {1, chosen, 40} <= set(kept)
    assert kept == sorted(set(kept))
    assert thinned([1, 2, 3], 2, most) == [1, 2, 3]
    assert thinned(range(1, 41), chosen, 2) == [chosen]


def test_round_numbers():
    assert round_numbers(4, 120) == [5, 10, 20, 50, 100]
    assert round_numbers(0.3, 1) == [1]
    assert round_numbers(0.1, 0.5) == []


@pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")
def test_spans_for_other_numbers_of_neighbours(city):
    model = DPDBSCAN(1.0, 70, bounds=datasets.CITY_BOUNDS, random_state=0).fit(city)
    text = report.render(model.release_)
    found = values(text)
    assert "70 (as released)" in found
    numbers = [int(value.split()[0]) for value in found]
    assert numbers == sorted(numbers)
    assert {10, 100} <= set(numbers)
    for number in numbers:
        frame = text.split(f'data-value="{number:,}')[1].split('class="frame"')[0]
        assert f"at least {number:,} neighbours (rho" in frame
        spans = model.at(number).spans_
        assert f">{round(max(span.count for span in spans)):,}<" in frame


def test_fewer_places_of_a_density_tree(city):
    model = DensityTree(bounds=datasets.CITY_BOUNDS, random_state=0).fit(city)
    text = report.render(model.release_)
    found = values(text)
    assert found[-1] == f"{model.n_clusters_} (as released)"
    assert found[0] == "1"
    assert "the tree of the peaks of the density" in text


def test_only_what_is_shown_is_computed(city, monkeypatch):
    model = DensityTree(epsilon=5, bounds=datasets.CITY_BOUNDS, random_state=0).fit(city)
    cut, cuts = DensityModel.cut, []
    monkeypatch.setattr(DensityModel, "cut", lambda self, k: cuts.append(k) or cut(self, k))
    text = report.render(model.release_)
    assert model.n_clusters_ > choices.MOST_FRAMES
    assert [f"{number:,}" for number in cuts if number != cuts[0]] == values(text)[:-1]
    assert cuts[0] == model.n_clusters_


def test_error_bars_of_centres():
    rows, _ = datasets.separated_gaussians(20_000, 3, 7, random_state=0)
    model = DPM(epsilon=1, delta=1e-6, bounds=(-1, 1), random_state=0).fit(rows)
    text = report.render(model.release_)
    half = 1.96 * model.cluster_center_stds_[0, 0]
    assert with_error(model.cluster_centers_[0, 0], half, -1, 1) in text
    assert f"{model.cluster_sizes_[0]:,.0f} ± {1.96 * model.cluster_size_stds_[0]:,.0f}" in text
    assert "columns 1 to 5" in text
    assert "columns 6 to 7" in text
    plain = LloydKMeans(3, bounds=(-1, 1), random_state=0).fit(rows[:, :2])
    assert "An ellipse is the 95% region of a centre" in report.render(plain.release_)


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (1.23456, 0.0456, "1.235 ± 0.046"),
        (-1234.5, 120.0, "-1,234 ± 120"),
        (0.5, 3e-12, "0.5 ± 3e-12"),
        (0.5, 0.0, "0.500"),
        (np.float64(2.0), 1.96, "2.0 ± 2.0"),
    ],
)
def test_numbers_with_errors(value, half, text):
    assert with_error(value, half, -1, 1) == text
