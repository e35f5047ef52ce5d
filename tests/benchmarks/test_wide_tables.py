"""Wide tables and drawn settings are what their pages say, and results merge by part."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from benchmarks.drawn_tables import REAL, Setting, bounds_of, drawn, rows_of
from benchmarks.wide_cases import CASES, OTHERS, OURS, Case
from benchmarks.wide_data import RECIPES, unit_vectors

from benchmarks import recommendation, wide_tables
from sfumato.datasets import data_home

needs_data = pytest.mark.skipif(data_home() is None, reason="needs the folder that SFUMATO_DATA names")


@pytest.mark.parametrize("recipe", RECIPES)
def test_unit_vectors_have_length_one_and_are_near_their_centres(recipe: str) -> None:
    X, labels = unit_vectors(3000, 40, 5, recipe, 0)
    assert np.allclose(np.linalg.norm(X, axis=1), 1)
    means = np.array([X[labels == j].mean(axis=0) for j in range(5)])
    nearest = ((X[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.8
    assert np.array_equal(X, unit_vectors(3000, 40, 5, recipe, 0)[0])


def test_every_case_has_a_key_of_its_own_and_tables_follow_each_other() -> None:
    keys = [case.key for cases in CASES.values() for case in cases]
    assert len(set(keys)) == len(keys)
    for cases in CASES.values():
        tables = [case.data for case in cases]
        assert sum(a != b for a, b in pairwise(tables)) == len(set(tables)) - 1


def cells_of(case: Case, shape: list[int]) -> dict[str, Any]:
    scores = {"ratio": [1.01, 1.03], "ari": [0.5, 0.6], "nmi": [0.4, 0.4], "seconds": [1.0, 3.0]}
    return {
        wide_tables.key_of(case, name): {**case._asdict(), "method": name, "shape": shape, **scores}
        for name in (OURS, *OTHERS)
    }


def found_on(*cases: Case) -> wide_tables.Found:
    found = wide_tables.empty()
    for case in cases:
        found["cells"] |= cells_of(case, [1000, 10])
        found["references"][f"{case.data}; {case.k}"] = {
            "data": case.data,
            "k": case.k,
            "shape": [1000, 10],
            "starts": 10,
            "inertia": 1.0,
            "seconds": 4.0,
            "ari": 0.5,
            "nmi": 0.5,
        }
    return found


def test_a_page_of_all_parts_and_of_none() -> None:
    found = found_on(*(case for cases in CASES.values() for case in cases))
    found["memory"][CASES["mnist"][0].key] = {"rows_mb": 10.0, "ours_mb": 3.0, "kmeans_mb": None}
    page = wide_tables.render(found)
    assert page.count("### ") == 7
    assert "**1.020 ± 0.014**, met" in page
    assert "| 0.50 |" in page  # the median of 1 and 3 seconds, over 4
    assert "###" not in wide_tables.render(wide_tables.empty())


def test_only_the_parts_that_are_measured_again_are_forgotten() -> None:
    cases = [CASES["mnist"][0], CASES["sweep"][0]]
    found = found_on(*cases)
    wide_tables.forget(["mnist"], found, others=False, references=False)
    left = {wide_tables.key_of(case, name) for case in cases for name in (OURS, *OTHERS)}
    assert set(found["cells"]) == left - {wide_tables.key_of(cases[0], OURS)}
    assert len(found["references"]) == 2
    wide_tables.forget(["mnist"], found, others=True, references=True)
    assert set(found["cells"]) == set(cells_of(cases[1], []))
    assert len(found["references"]) == 1


@pytest.mark.parametrize("shape", ["blobs", "stretched", "unit vectors", "uneven sizes"])
def test_rows_of_a_setting_are_within_its_bounds(shape: str) -> None:
    setting = Setting(3, shape, 500, 7, 4, 2.5)
    X = rows_of(setting)
    assert X.shape == (500, 7)
    assert np.array_equal(X, rows_of(setting))
    if shape == "unit vectors":
        assert np.allclose(np.linalg.norm(X, axis=1), 1)
        assert bounds_of(setting).radius == 2.5
    else:
        assert np.abs(X).max() == pytest.approx(1)
        assert bounds_of(setting) == (-2.5, 2.5)


@needs_data
def test_settings_are_drawn_alike_each_time() -> None:
    assert drawn(1) == drawn(1)
    found = [drawn(number) for number in range(4)]
    assert len({setting.n for setting in found}) == 4
    assert all(2_000 <= setting.n <= 100_000 and 2 <= setting.k <= 50 for setting in found)


def row(number: int, ratios: dict[str, float], failed: dict[str, str] | None = None) -> recommendation.Row:
    setting = Setting(number, REAL[0], 5000, 16, 8, 1.0)
    return {**setting._asdict(), "ratios": ratios, "seconds": {}, "failed": failed or {}}


def test_a_choice_is_compared_with_the_best_and_failures_count() -> None:
    rows = [
        row(0, {"DPM": 1.0, "LloydKMeans": 1.04, "LocalSearchKMeans": 1.2}),
        row(1, {"DPM": 1.0, "LocalSearchKMeans": 1.0}, {"LloydKMeans": "ValueError()"}),
    ]
    assert recommendation.loss_of(rows[0], "LloydKMeans") == pytest.approx(1.04)
    assert recommendation.verdict(rows, "DPM").startswith("2 of 2 (100%)")
    assert recommendation.verdict(rows, "LloydKMeans") == "1 of 2 (50%); worst inf (setting 1)"
    assert recommendation.verdict(rows, "LocalSearchKMeans") == "1 of 2 (50%); worst 1.200 (setting 0)"
    page = recommendation.render({"seeds": 1, "rows": rows})
    assert "failed" in page
