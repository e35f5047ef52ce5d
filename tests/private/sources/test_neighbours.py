"""Neighbours that were once told apart: one row more must not change how any other row is read."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn

from sfumato import Budget, GridKMeans, Ledger
from sfumato.curator.tables import open_table
from sfumato.domain import Domain, Grid, Unit
from sfumato.errors import DataError, ParameterError
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.engines.memory import MemoryEngine

BIRTHDAY = datetime.datetime(2026, 1, 1, 18)
PEOPLE = [f"{i:04}" for i in range(200)]


def cells(X, bounds, unit=None, missing="drop", n_cells=2):
    """Counts of rows in a grid, before noise."""
    table = open_table(X, bounds, unit or Unit(), missing)
    grid = Grid.over(table.domain, n_cells)
    return table._open_engine().fold(CellCounts(grid))


def distance(one, other):
    return np.abs(one - other).sum()


def csv(tmp_path, name, header, *lines):
    (tmp_path / name).write_text("\n".join([header, *lines]) + "\n")
    return tmp_path / name


SPELLINGS = [("1.0", "1"), ("01", "1"), ("1", " 1"), ("TRUE", "true"), ("1", "1e0")]


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_one_category_more_in_a_csv(tmp_path, one, other):
    rows = [f"{one},0.5"] * 500 + [f"{other},0.5"] * 500
    bounds = {"grade": [other.strip()], "x": (0, 1)}
    counts = [
        cells(csv(tmp_path, name, "grade,x", *rows, *more), bounds)
        for name, more in (("few.csv", []), ("more.csv", ["U,0.5"]))
    ]
    assert distance(*counts) == 1


def test_one_value_more_among_booleans_of_a_csv(tmp_path):
    rows = ["True", "False", "True"] * 1000
    bounds = {"smoker": [True, False]}
    counts = cells(csv(tmp_path, "few.csv", "smoker,x", *(f"{row},1" for row in rows)), bounds)
    more = cells(csv(tmp_path, "more.csv", "smoker,x", *(f"{row},1" for row in [*rows, "Unknown"])), bounds)
    assert distance(counts, more) <= 1
    assert sorted(counts)[-3:] == [0, 1000, 2000]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_one_person_more_in_folders(tmp_path, suffix):
    """Every name stays as it is spelled, and everyone keeps the same rows under the cap."""
    rows = np.random.default_rng(0).uniform(size=(len(PEOPLE) + 1, 8))
    counts = []
    for people in (PEOPLE, [*PEOPLE, "A017"]):
        for person, own in zip(people, rows, strict=False):
            folder = tmp_path / f"person={person}"
            folder.mkdir(exist_ok=True)
            if suffix == "csv":
                csv(folder, "part.csv", "x", *map(str, own))
            else:
                pq.write_table(pa.table({"x": own}), folder / "part.parquet")
        counts.append(cells(tmp_path, {"x": (0, 1)}, Unit("person", 1), n_cells=64))
    assert distance(*counts) == 1


class TestAssumeFinite:
    """scikit-learn can be told not to check for NaN and infinity; then the library does it all the same."""

    HOLES = np.array([[0.5, 0.5], [np.nan, np.nan], [0.25, np.inf], [-np.inf, np.inf], [0.75, 0.5]])
    TABLES = (
        lambda holes: holes,
        lambda holes: holes.astype(np.float32),
        lambda holes: holes.tolist(),
        lambda holes: pd.DataFrame(holes, columns=["x", "y"]),
        lambda holes: pa.table({"x": holes[:, 0], "y": holes[:, 1]}),
    )

    @pytest.fixture(autouse=True)
    def assume_finite(self):
        with sklearn.config_context(assume_finite=True):
            yield

    @pytest.mark.parametrize("table", TABLES)
    def test_an_error_before_the_charge(self, table, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
        with pytest.raises(DataError, match="finite values only"):
            GridKMeans(2, bounds=(0, 1), epsilon=0.5, ledger=ledger).fit(table(self.HOLES))
        assert ledger.history() == []

    @pytest.mark.parametrize("table", TABLES)
    def test_dropped(self, table):
        dropped = cells(table(self.HOLES), (0, 1))
        assert (dropped == cells(self.HOLES[[0, 4]], (0, 1))).all()

    @pytest.mark.parametrize("table", TABLES)
    def test_labels(self, table, quick):
        model = GridKMeans(2, bounds=(0, 1), missing="drop", random_state=0)
        labels = model.fit_predict(table(self.HOLES))
        assert (labels >= 0).tolist() == [True, False, False, False, True]
        assert (model.predict(table(self.HOLES)) == labels).all()

    def test_no_engine_passes_them_on(self):
        domain = Domain.from_bounds((0, 1), 2)
        assert MemoryEngine(self.HOLES, domain).fold(RowCount()).tolist() == [2]


def frame(column, values, **others):
    return pd.DataFrame({column: pd.Series(values, dtype=object), **others})


def test_one_date_among_times():
    """As objects; together they were once all cut down to dates."""
    bounds = {"day": (datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 2))}
    counts = cells(frame("day", [BIRTHDAY] * 1000), bounds)
    more = cells(frame("day", [BIRTHDAY.date(), *[BIRTHDAY] * 1000]), bounds)
    assert counts.tolist() == [0, 1000]
    assert more.tolist() == [1, 1000]


IDS = {
    "decimals": ([Decimal(i) for i in range(40)], Decimal("0.5")),
    "large integers": ([10**15 + i for i in range(40)], 0.5),
    "text": ([f"{i:03}" for i in range(40)], 7),
}


@pytest.mark.parametrize("kind", IDS)
def test_one_person_of_another_type(kind):
    people, other = IDS[kind]
    x = np.random.default_rng(0).uniform(size=201)
    unit, bounds = Unit("who", 1), {"x": (0, 1)}
    counts = cells(frame("who", people * 5, x=x[:200]), bounds, unit, n_cells=64)
    more = cells(frame("who", [*people * 5, other], x=x), bounds, unit, n_cells=64)
    assert distance(counts, more) <= 1
    assert counts.sum() == (0 if kind == "decimals" else 40)


@pytest.mark.parametrize("other", [Decimal("0.5"), Decimal("1e20"), Decimal("NaN"), 0.5, "text", None])
def test_one_number_of_another_type(other):
    numbers, bounds = [*range(100)], {"x": (0, 100)}
    counts = cells(frame("x", numbers), bounds, n_cells=16)
    assert distance(counts, cells(frame("x", [other, *numbers]), bounds, n_cells=16)) <= 1
    assert counts.sum() == 100


def test_long_ids_with_an_empty_one(tmp_path):
    """Read by pandas as floats, in which two people are one: refused. Read as text, everyone stays."""
    path = csv(tmp_path, "ids.csv", "who,x", *(f"{10**16 + i},0.{i}" for i in range(1, 40)), ",0.5")
    with pytest.raises(DataError, match="must hold text or integers"):
        cells(pd.read_csv(path), {"x": (0, 1)}, Unit("who", 1))
    as_text = pd.read_csv(path, dtype={"who": str})
    assert cells(as_text, {"x": (0, 1)}, Unit("who", 1)).sum() == 39
    assert cells(path, {"x": (0, 1)}, Unit("who", 1)).sum() == 39


class TestNoHeader:
    """The first row of a file without a header must not be published as names of columns."""

    @pytest.fixture
    def path(self, tmp_path):
        return csv(tmp_path, "rows.csv", "0.12345678901234567,0.5", "0.25,0.75", "0.5,0.5")

    def test_refused(self, path):
        with pytest.raises(ParameterError, match="must not be numbers") as error:
            GridKMeans(2, bounds=(0, 1)).fit(path)
        assert "12345678901234567" not in str(error.value)

    def test_refused_where_a_column_is_not_there(self, path):
        with pytest.raises(ParameterError, match="must not be numbers") as error:
            GridKMeans(2, bounds={"x": (0, 1)}).fit(path)
        assert "12345678901234567" not in str(error.value)

    def test_refused_in_a_frame(self, path):
        with pytest.raises(ParameterError, match="must not be numbers"):
            GridKMeans(2, bounds=(0, 1)).fit(pd.read_csv(path))

    def test_names_that_the_user_gives(self, quick):
        table = pd.DataFrame({"2024": [0.25, 0.5], "2025": [0.5, 0.75]})
        model = GridKMeans(2, bounds={"2024": (0, 1), "2025": (0, 1)}).fit(table)
        assert model.release_.columns == ("2024", "2025")


def test_a_level_need_not_occur(tmp_path):
    bounds = {"grade": ["1", "A1"]}
    counts = cells(csv(tmp_path, "few.csv", "grade,x", *["1,0"] * 9), bounds)
    more = cells(csv(tmp_path, "more.csv", "grade,x", *["1,0"] * 9, "A1,0"), bounds)
    assert distance(counts, more) == 1


@pytest.mark.parametrize("content", [b"", b"PAR1 and nothing else"])
def test_no_error_names_a_person_by_a_folder(tmp_path, content):
    for person in ("ada", "ben"):
        (tmp_path / f"person={person}").mkdir()
        pq.write_table(pa.table({"x": [0.5]}), tmp_path / f"person={person}" / "part.parquet")
    (tmp_path / "person=ben" / "part.parquet").write_bytes(content)
    with pytest.raises(DataError, match="could not be read") as error:
        GridKMeans(2, bounds={"x": (0, 1)}, unit="person").fit(tmp_path)
    assert "ben" not in str(error.value)
    assert error.value.__cause__ is None
