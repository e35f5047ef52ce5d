"""Forecasts by column, in its own unit, for tables whose columns have names."""

import json
from datetime import date

import numpy as np
import pandas as pd
import pytest

from sfumato import DPM, GridKMeans, LloydKMeans, datasets
from sfumato.planner import budget_for, forecast, plan

BOUNDS = {
    "age": (0, 100, "years"),
    "income": (0, 200_000),
    "day": (date(2026, 1, 1), date(2026, 12, 31)),
    "size": {"levels": ["S", "M", "L"], "ordered": True},
    "ward": ["icu", "er", "birth"],
    "hour": {"cycle": (0, 24)},
}


def by_name(found):
    return {one.column: one for one in found.columns}


def test_errors_are_in_the_unit_of_each_column():
    found = plan(n=50_000, k=5, delta=1e-6, bounds=BOUNDS, method="dpm")
    errors = by_name(found)
    assert list(errors) == list(BOUNDS)
    assert errors["age"].of_width == pytest.approx(found.center_error)
    assert errors["income"].error == pytest.approx(2000 * errors["age"].error)
    assert errors["day"].error == pytest.approx(3.64 * errors["age"].error)
    assert errors["size"].error == pytest.approx(0.02 * errors["age"].error)
    # Corners of a simplex are 1 apart: a share is measured in units of the root of 2.
    assert errors["ward"].error == pytest.approx(np.sqrt(2) * found.center_error)
    # A circle has the diameter 1, and a turn of 2 pi is a day.
    assert errors["hour"].error == pytest.approx(2 * found.center_error * 24 / (2 * np.pi))
    assert [errors[name].unit for name in BOUNDS] == ["years", "", "days", "levels", "of a share", ""]


def test_a_forecast_prints_a_line_for_each_column():
    found = plan(n=50_000, k=5, delta=1e-6, bounds=BOUNDS, method="dpm")
    lines = {line.split("  ")[0]: line.split("  ")[-1].strip() for line in str(found).splitlines()}
    assert lines["error of a centre, age"].endswith("% of the width")
    assert " years, " in lines["error of a centre, age"]
    assert lines["error of a centre, ward"].endswith("points of the share of a level")
    assert "error of a centre, per coordinate" not in lines
    assert json.loads(json.dumps(found.to_dict()))["columns"][0]["column"] == "age"


def test_columns_without_names():
    equal = plan(n=50_000, d=3, k=5, bounds=(0, 10))
    assert equal.columns == ()
    assert "error of a centre, per coordinate" in str(equal)
    unequal = plan(n=50_000, k=5, bounds=([0, 0, 0], [1, 10, 100]), method="dpm")
    assert [one.column for one in unequal.columns] == ["column 1", "column 2", "column 3"]
    assert [one.of_width for one in unequal.columns] == pytest.approx([unequal.center_error] * 3)
    as_they_are = plan(n=50_000, k=5, bounds=([0, 0, 0], [1, 10, 100]), method="dpm", scale=None)
    assert [one.error for one in as_they_are.columns] == pytest.approx([as_they_are.center_error] * 3)


def test_profiles_and_described_columns_are_in_the_plan():
    named = {"age": (0, 100), "income": (0, 200_000)}
    alone, told, more = (
        plan(n=50_000, k=5, rho=0.1, epsilon=None, bounds=named, method="dpm", **options)
        for options in ({"profiles": 0}, {}, {"describe": {"ward": ["icu", "er"]}})
    )
    assert alone.share_error is None
    assert told.passes == more.passes == alone.passes + 2
    assert alone.size_error < told.size_error
    # A described column costs the profiles, not the clusters.
    assert more.size_error == pytest.approx(told.size_error)
    assert more.share_error == pytest.approx(np.sqrt(3 / 2) * told.share_error, rel=1e-3)


def test_the_number_of_levels_does_not_matter_much():
    def error(n_levels):
        bounds = {"age": (0, 100), "job": [f"job {i}" for i in range(n_levels)]}
        return by_name(plan(n=50_000, k=5, delta=1e-6, bounds=bounds, method=DPM))["age"].error

    assert 0.5 < error(40) / error(4) < 2


def test_the_least_budget_of_a_table():
    # Clusters that touch are off by a part of their spread, whatever the budget.
    found = budget_for(n=50_000, k=5, method="dpm", bounds=BOUNDS, center_error=0.01, delta=1e-6)
    assert found.center_error <= 0.01
    assert found.d == 3 + 1 + 4 + 2


def mixed(seed, n=20_000):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, n)
    return pd.DataFrame(
        {
            "age": rng.normal(np.array([25, 40, 55, 70])[group], 9),
            "income": rng.normal(np.array([3, 7, 4, 9])[group], 1.5) * 10_000,
            "ward": np.where(rng.random(n) < 0.7, np.array(["a", "b", "c", "a"])[group], "b"),
        }
    )


def measured_error(model, rows):
    """Root mean squared error of centres against the rows of their clusters, in parts of the widths."""
    bounds, labels = model.bounds, model.labels_
    columns = {name: rows[name] for name in bounds if isinstance(bounds[name], tuple)}
    widths = [bounds[name][1] - bounds[name][0] for name in columns]
    places = [list(model.feature_names_in_).index(name) for name in columns]
    clipped = pd.DataFrame({name: values.clip(*bounds[name]) for name, values in columns.items()})
    means = clipped.groupby(labels).mean()
    errors = (model.cluster_centers_[means.index][:, places] - means.to_numpy()) / widths
    return np.sqrt((errors**2).mean())


@pytest.mark.parametrize("epsilon", [1.0, 0.2])
@pytest.mark.parametrize("cls", [DPM, LloydKMeans])
def test_errors_on_a_table_whose_clusters_touch(cls, epsilon):
    bounds = {"age": (0, 100), "income": (0, 200_000), "ward": ["a", "b", "c"]}
    errors = []
    for seed in range(4):
        rows = mixed(seed)
        model = cls(4, bounds=bounds, epsilon=epsilon, delta=1e-6, random_state=seed).fit(rows)
        errors.append(measured_error(model, rows))
    found = by_name(forecast(model, len(rows)))["age"].of_width
    assert 0.4 < found / np.sqrt(np.mean(np.square(errors))) < 2.5


@pytest.mark.skipif(datasets.data_home() is None, reason="needs SFUMATO_DATA")
def test_errors_on_adult():
    bounds = {
        "age": (15, 90),
        "fnlwgt": (0, 1_500_000),
        "educational_num": (1, 16),
        "capital_gain": (0, 100_000),
        "capital_loss": (0, 5_000),
        "hours_per_week": (0, 100),
    }
    rows = pd.read_parquet(datasets.data_home() / "adult_full.parquet", columns=list(bounds)).astype(float)
    errors = []
    for seed in range(3):
        model = DPM(5, bounds=bounds, epsilon=1, delta=1e-6, random_state=seed).fit(rows)
        errors.append(measured_error(model, rows))
    found = forecast(model, len(rows))
    assert 0.5 < found.center_error / np.sqrt(np.mean(np.square(errors))) < 2
    # As they are, the noise is as wide as the other columns: the forecast says so too.
    alone = forecast(model.set_params(scale=None), len(rows))
    assert by_name(alone)["age"].of_width > 0.25
    assert by_name(alone)["fnlwgt"].of_width < 0.01
    assert "noise would hide centres in age, educational_num, capital_loss, hours_per_week" in str(alone)
    assert not found.notes


def test_grids_have_errors_by_column():
    found = plan(n=5_000, k=4, bounds={"east": (0, 40), "north": (0, 30)}, method=GridKMeans)
    errors = by_name(found)
    assert errors["east"].error == errors["north"].error == found.center_error
