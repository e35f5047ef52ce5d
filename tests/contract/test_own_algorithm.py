"""An algorithm from outside, in one file of at most 60 lines, gets all that those of the library have."""

import importlib.util
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.contract.test_spend import check_spend

from sfumato import Budget, Ledger, Release, metrics, report
from sfumato.datasets import separated_gaussians
from sfumato.errors import BudgetExceededError, ParameterError
from sfumato.public.models import encode

FILE = Path(__file__).parents[2] / "docs" / "examples" / "hot_spots.py"
COMMAND = Path(sys.executable).with_name("sfumato")
KINDS = [{"epsilon": "1"}, {"epsilon": "1", "delta": "1e-6"}, {"rho": "0.1"}]
IDS = ["pure", "approximate", "zcdp"]
PEOPLE = {"unit": "person", "max_rows_per_unit": 3}


def load():
    spec = importlib.util.spec_from_file_location("hot_spots", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["hot_spots"] = module  # for pickles
    spec.loader.exec_module(module)
    return module.HotSpots


HotSpots = load()


@pytest.fixture
def table(rows):
    """Three blobs, 3000 rows of 1100 people."""
    rng = np.random.default_rng(1)
    many = np.clip(np.repeat(rows, 10, axis=0) + rng.normal(scale=0.05, size=(3000, 2)), -1, 1)
    return pd.DataFrame(many, columns=["east", "north"]).assign(person=rng.integers(0, 1100, len(many)))


def own(**parameters):
    return HotSpots(**{"bounds": {"east": (-1, 1), "north": (-1, 1)}, "random_state": 0} | parameters)


def test_it_is_short():
    assert len(FILE.read_text(encoding="utf-8").splitlines()) <= 60


def test_it_knows_neither_engines_nor_noise_nor_aggregates():
    text = FILE.read_text(encoding="utf-8")
    assert "sfumato.private" not in text


@pytest.mark.slow
@parametrize_with_checks(
    [HotSpots(per_side=2, bounds=(-3, 3), epsilon=10)],
    expected_failed_checks=lambda _: {
        "check_estimators_empty_data_messages": "no rows are a neighbour of one row, and must work",
        "check_clustering": "two cells per side, which ten columns allow, do not show three blobs",
        "check_clustering(readonly_memmap=True)": "the same",
    },
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("seed", range(3))
def test_it_clusters(table, seed):
    found = own(random_state=seed).fit(table)
    true = np.array([[-0.6, -0.6], [0.6, -0.5], [0.0, 0.7]])
    distances = np.linalg.norm(found.cluster_centers_[:, None] - true, axis=2)
    assert found.n_clusters_ == 3
    assert distances.min(axis=0).max() < 0.05
    assert found.cluster_sizes_.sum() == pytest.approx(3000, abs=300)


@pytest.mark.parametrize("epsilon", [0.25, 1])
def test_it_is_as_good_as_k_means_where_groups_are_large(epsilon):
    X, _ = separated_gaussians(20_000, 8, 2, random_state=1)
    exact = KMeans(8, n_init=10, random_state=0).fit(X).inertia_
    for seed in range(3):
        found = HotSpots(bounds=(-1, 1), epsilon=epsilon, random_state=seed).fit(X)
        assert found.n_clusters_ == 8
        assert metrics.inertia(X, found.cluster_centers_) == pytest.approx(exact, rel=0.005)


@pytest.mark.parametrize("n_rows", [0, 1])
def test_without_rows(n_rows):
    found = HotSpots(bounds=(-1, 1), random_state=0).fit(np.zeros((n_rows, 2)))
    assert found.n_clusters_ >= 1
    assert np.isfinite(found.cluster_centers_).all()


@pytest.mark.parametrize("unit", [{}, PEOPLE], ids=["row", "person"])
@pytest.mark.parametrize("place", ["file", pytest.param("spark", marks=pytest.mark.slow)])
def test_the_same_release_on_all_engines(table, place, unit, request, tmp_path):
    if place == "file":
        table.to_parquet(elsewhere := tmp_path / "rows.parquet")
    elif not unit:
        pytest.skip("slow: with people, a cluster does the same and more")
    else:
        spark = request.getfixturevalue("spark")
        elsewhere = spark.createDataFrame(pa.Table.from_pandas(table, preserve_index=False)).repartition(2)
    here, there = (own(**unit).fit(X) for X in (table, elsewhere))
    assert encode(here.release_.model) == encode(there.release_.model)
    assert here.privacy_ == there.privacy_


def test_a_person_as_the_unit(table):
    row, person = (own(**unit).fit(table).privacy_ for unit in ({}, PEOPLE))
    assert str(person.unit) == "one person (column 'person', at most 3 rows each)"
    assert [record.scale for record in person.steps] == [3 * record.scale for record in row.steps]


@pytest.mark.parametrize("unit", [{}, PEOPLE], ids=["row", "person"])
@pytest.mark.parametrize("budget", KINDS, ids=IDS)
def test_what_is_spent_is_what_was_promised(table, budget, unit):
    found = own(**budget, **unit).fit(table)
    check_spend(found.privacy_.steps, **budget)
    assert found.privacy_.spent <= found.privacy_.budget == Budget(**budget)


def test_bounds_that_are_bought(table):
    found = own(bounds="private", epsilon=5).fit(table[["east", "north"]])
    assert {record.step for record in found.privacy_.steps} > {"grid", "means"}
    assert found.privacy_.spent <= Budget(5)
    assert found.n_clusters_ >= 2


def test_the_ledger_is_charged(table, tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", "rows", Budget("1.5"))
    own(ledger=ledger, random_state=None).fit(table)
    (charge,) = ledger.history()
    assert (charge.method, charge.outcome) == ("HotSpots", "released")
    with pytest.raises(BudgetExceededError, match="does not cover"):
        own(ledger=ledger, random_state=None).fit(table)
    assert ledger.remaining() == Budget(Fraction(1, 2))


def test_its_release_and_report(table, tmp_path):
    found = own(random_state=None).fit(table)
    release = Release.load(found.release_.save(tmp_path / "release.json"))
    assert release.method == "HotSpots"
    shared = {"missing": "error", "outside": "clip", "scale": "bounds", "weights": None, "profiles": "auto"}
    assert release.parameters == {"per_side": 24, **shared}
    assert (release.predict(table) == found.predict(table)).all()
    text = report.write(release, tmp_path / "report.html").read_text()
    assert "HotSpots" in text
    assert "<svg" in text
    assert "no picture" not in text


def test_its_own_parameter_is_checked():
    assert "means" in str(own().plan(2))
    with pytest.raises(ParameterError, match="`per_side` must be"):
        own(per_side=10_000).plan(2)


@pytest.fixture
def installed(tmp_path):
    """Install the file as a package would, in its own folder; returns how to run the command with it."""
    folder = tmp_path / "site"
    (folder / "hot_spots-1.dist-info").mkdir(parents=True)
    (folder / "hot_spots.py").write_text(FILE.read_text(encoding="utf-8"))
    (folder / "hot_spots-1.dist-info" / "METADATA").write_text("Name: hot-spots\nVersion: 1\n")
    points = "[sfumato.methods]\nhot-spots = hot_spots:HotSpots\n"
    (folder / "hot_spots-1.dist-info" / "entry_points.txt").write_text(points)

    def run(*arguments):
        environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
        done = subprocess.run(
            [COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=tmp_path, env=environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.slow
def test_the_command_takes_it_from_its_entry_point(table, installed, tmp_path):
    table.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "bounds.toml").write_text("east = [-1, 1]\nnorth = [-1, 1]\n")
    assert "hot-spots            hot_spots:HotSpots" in installed("methods")
    options = ["--method", "hot-spots", "--epsilon", 1, "--set", "per_side=20"]
    assert "means" in installed("plan", *options, "--columns-number", 2)
    installed("ledger", "create", "budget.db", "rows", "--epsilon", 2)
    account = ["--ledger", "budget.db", "--dataset", "rows"]
    installed("fit", "rows.csv", *options, *account, "--bounds", "bounds.toml", "--unit", "person")
    installed("report", "release.json", "--out", "report.html")
    installed("predict", "release.json", "rows.csv", "--out", "labels.csv")
    release = Release.load(tmp_path / "release.json")
    assert release.method == "HotSpots"
    assert release.parameters["per_side"] == 20
    assert "HotSpots" in (tmp_path / "report.html").read_text()
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 1 + len(table)
    assert Ledger(tmp_path / "budget.db", "rows").remaining() == Budget(1)
