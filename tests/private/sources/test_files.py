"""The engine over files: the same bits as in memory however they are split, and clear errors."""

import gzip
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from tests.contract.test_aggregates import EXAMPLES

from sfumato import Budget, GridKMeans, Ledger, progress
from sfumato.domain import Domain, Grid, Unit
from sfumato.domain.columns import Columns, Coordinate, read_bounds
from sfumato.errors import DataError, ParameterError
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.engines import files as engine_module
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.people import cap_rows
from sfumato.private.sources import files as source_module
from sfumato.private.sources import open_source
from sfumato.private.sources.files import FileSource
from sfumato.private.sources.paths import Files

DOMAIN = Domain.from_bounds((-1, 1), 2)
CELLS = CellCounts(Grid.over(DOMAIN, 8))
KINDS = {name: examples[0] for name, examples in EXAMPLES.items()}
SECRET = "0.12345678901234567"


def some_rows(n_rows=3000, n_features=2):
    return np.random.default_rng(0).uniform(-1.2, 1.2, size=(n_rows, n_features))


def table_of(rows, **others):
    return pa.table({f"x{j}": column for j, column in enumerate(rows.T)} | others)


def write(folder, table, n_files=3, rows_per_group=211):
    folder.mkdir(exist_ok=True)
    cuts = np.linspace(0, table.num_rows, n_files + 1).astype(int)
    for i, (first, last) in enumerate(pairwise(cuts)):
        path = folder / f"part-{i}.parquet"
        pq.write_table(table.slice(first, last - first), path, row_group_size=rows_per_group)
    return folder


def fold(path, aggregate=CELLS, bounds=(-1, 1), unit=None, **options):
    source = open_source(path)
    columns, domain = read_bounds(bounds, source.names, unit or Unit(), **options, text=source.text)
    return source.engine(columns, domain).fold(aggregate)


@pytest.mark.parametrize("name", KINDS)
def test_every_aggregate_has_the_same_bits_as_in_memory(tmp_path, monkeypatch, name):
    example = KINDS[name]
    domain, rows = Domain.from_bounds((-1, 1), example.n_features), some_rows(n_features=example.n_features)
    expected = MemoryEngine(rows, domain).fold(example.aggregate)
    for n_files, batch_values in ((1, 2**19), (3, 1024 * example.n_features), (7, 1)):
        monkeypatch.setattr(source_module, "BATCH_VALUES", batch_values)
        state = fold(write(tmp_path / f"{n_files}", table_of(rows), n_files), example.aggregate)
        assert state.dtype == np.int64
        assert np.array_equal(state, expected)


@pytest.mark.parametrize("n_threads", [1, 2, 7])
@pytest.mark.parametrize("n_rows", [0, 1, 3000])
def test_threads_do_not_matter(tmp_path, monkeypatch, n_threads, n_rows):
    monkeypatch.setattr(engine_module, "N_THREADS", n_threads)
    rows = some_rows()[:n_rows]
    folder = write(tmp_path / "files", table_of(rows))
    assert fold(folder, RowCount()).tolist() == [n_rows]
    assert (fold(folder) == MemoryEngine(rows, DOMAIN).fold(CELLS)).all()


@pytest.mark.parametrize("max_rows", [1, 3, 10**6])
@pytest.mark.parametrize("n_files", [1, 5])
def test_people_are_capped_as_in_memory(tmp_path, n_files, max_rows):
    rows, people = some_rows(), np.random.default_rng(1).zipf(1.5, 3000).astype(str)
    expected = MemoryEngine(cap_rows(pa.array(people), rows, max_rows), DOMAIN).fold(CELLS)
    folder = write(tmp_path / "files", table_of(rows, person=people), n_files)
    assert (fold(folder, unit=Unit("person", max_rows)) == expected).all()


FORMATS = {
    "rows.parquet": pq.write_table,
    "rows.pq": pq.write_table,
    "rows.csv": pyarrow.csv.write_csv,
    "rows.feather": pyarrow.feather.write_feather,
    "rows.arrow": pyarrow.feather.write_feather,
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats(tmp_path, name):
    rows = some_rows().round(6)
    FORMATS[name](table_of(rows), tmp_path / name)
    expected = MemoryEngine(rows, DOMAIN).fold(CELLS)
    for path in (tmp_path / name, str(tmp_path), str(tmp_path / "r*")):
        assert (fold(path) == expected).all()


def test_compressed_csv(tmp_path):
    with gzip.open(tmp_path / "rows.csv.gz", "wt") as file:
        file.write("x,y\n0.5,1\n,0\n0.1,\n")
    assert fold(tmp_path / "rows.csv.gz", RowCount(), missing="drop").tolist() == [1]


def test_the_first_rows_of_a_csv_do_not_set_its_types(tmp_path):
    """Whole numbers first, fractions far below; a column that is empty first."""
    lines = ["1,"] * 400_000 + ["0.5,2"] * 3
    (tmp_path / "rows.csv").write_text("x,y\n" + "\n".join(lines) + "\n")
    assert fold(tmp_path / "rows.csv", RowCount(), missing="drop").tolist() == [3]


def test_persons_of_a_csv_are_what_is_written(tmp_path):
    """Not numbers, in which two people could be one, and not what the first rows look like."""
    people = ["7", "007"] * 200_000 + ["x"]
    (tmp_path / "rows.csv").write_text("who,x\n" + "\n".join(f"{who},0.5" for who in people) + "\n")
    assert fold(tmp_path / "rows.csv", RowCount(), unit=Unit("who", 1)).tolist() == [3]


def test_persons_from_folder_names(tmp_path):
    for who in (7, 8):
        (tmp_path / f"who={who}").mkdir()
        pyarrow.csv.write_csv(table_of(some_rows(100, 1)), tmp_path / f"who={who}" / "part.csv")
    assert fold(tmp_path, RowCount(), unit=Unit("who", 3)).tolist() == [6]


def test_columns_from_folder_names(tmp_path):
    for year in (2024, 2025):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(table_of(some_rows(100, 1)), tmp_path / f"year={year}" / "part.parquet")
    grid = CellCounts(Grid((0.0, 2023.0), (1.0, 2026.0), (1, 3)))
    assert fold(tmp_path, grid, {"x0": (0, 1), "year": (2023, 2026)}).tolist() == [0, 100, 100]


def test_a_filter_is_pushed_down(tmp_path):
    rows = some_rows()
    dataset = ds.dataset(write(tmp_path / "files", table_of(rows))).filter(pc.field("x0") > 0)
    columns = Columns((Coordinate("x1"), Coordinate("x0")))
    kept = rows[rows[:, 0] > 0][:, ::-1]
    state = FileSource(dataset).engine(columns, DOMAIN).fold(CELLS)
    assert (state == MemoryEngine(kept, DOMAIN).fold(CELLS)).all()


def test_memory_does_not_grow_with_the_files(tmp_path):
    """Of 64 MB in row groups of 2 MB, a few are held at a time."""
    pq.write_table(table_of(some_rows(2_000_000, 4)), tmp_path / "rows.parquet", row_group_size=62_500)
    before = pa.total_allocated_bytes()
    columns, _ = read_bounds((-1, 1), ["x0", "x1", "x2", "x3"], Unit())
    batches = FileSource.at(Files.at(tmp_path / "rows.parquet")).batches(columns)
    held = [pa.total_allocated_bytes() - before for _ in batches]
    assert max(held) < 56e6


@pytest.mark.parametrize("place", ["nothing", "no*.parquet", "folder"])
def test_nothing_there(tmp_path, place):
    (tmp_path / "folder").mkdir()
    with pytest.raises(ParameterError, match=r"`X` must be a table, or a path"):
        GridKMeans(2, bounds=(-1, 1)).fit(tmp_path / place)


def test_files_of_several_kinds(tmp_path):
    write(tmp_path, table_of(some_rows()))
    (tmp_path / "readme.txt").write_text("hello")
    with pytest.raises(ParameterError, match="txt"):
        open_source(tmp_path)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.db", "people", Budget(1))


def truncated(folder):
    path = folder / "part-1.parquet"
    path.write_bytes(path.read_bytes()[:-500])


def scribbled(folder):
    path = folder / "part-1.parquet"
    content = bytearray(path.read_bytes())
    content[100:4000] = b"\xff" * 3900
    path.write_bytes(content)


def without_a_column(folder):
    pq.write_table(table_of(some_rows(100, 1)), folder / "part-1.parquet")


def with_text(folder):
    texts = pa.table({"x0": [SECRET], "x1": [SECRET]})
    pq.write_table(texts, folder / "part-1.parquet")


def with_holes(folder):
    pq.write_table(table_of(np.array([[0.5, np.nan]])), folder / "part-1.parquet")


DAMAGES = {
    truncated: "a file of .* could not be read",
    scribbled: "could not be read to the end",
    without_a_column: "every file of .* must have a column 'x1'",
    with_text: "must be of type double",
    with_holes: "missing='drop'",
}


@pytest.mark.parametrize(
    ("damage", "words"), DAMAGES.items(), ids=lambda value: getattr(value, "__name__", "")
)
def test_a_damaged_file_in_a_folder(tmp_path, ledger, damage, words, quick):
    """A clear error without values; the charge stays spent, and nothing is released."""
    folder = write(tmp_path / "files", table_of(some_rows()))
    damage(folder)
    model = GridKMeans(3, bounds=(-1, 1), epsilon=0.25, ledger=ledger)
    with pytest.raises(DataError, match=words) as error:
        model.fit(folder)
    assert SECRET not in str(error.value)
    assert "part-1" not in str(error.value)
    assert error.value.__cause__ is None
    assert not hasattr(model, "release_")
    assert ledger.spent() == Budget(0.25)
    assert [entry.outcome for entry in ledger.history()] == ["failed"]


def test_text_is_refused_before_anything_is_charged(tmp_path, ledger):
    pq.write_table(pa.table({"x": [0.5], "who": [SECRET]}), tmp_path / "rows.parquet")
    with pytest.raises(DataError, match="column 'who' must hold numbers") as error:
        GridKMeans(3, bounds=(-1, 1), ledger=ledger).fit(tmp_path / "rows.parquet")
    assert SECRET not in str(error.value)
    assert ledger.history() == []


def test_labels_of_a_csv_whose_first_rows_are_whole_numbers(tmp_path, quick):
    (tmp_path / "rows.csv").write_text("x,y\n" + "1,0\n" * 300_000 + "0.5,0.5\n")
    model = GridKMeans(2, bounds=(-1, 1), random_state=0).fit(tmp_path / "rows.csv")
    assert len(model.labels_) == 300_001


def test_a_damaged_csv_shows_no_values(tmp_path, ledger):
    packed = gzip.compress(("x,y\n" + f"{SECRET},0.5\n" * 300_000).encode())
    (tmp_path / "rows.csv.gz").write_bytes(packed[:-100])
    with pytest.raises(DataError, match="could not be read to the end") as error:
        GridKMeans(3, bounds=(-1, 1), ledger=ledger).fit(tmp_path / "rows.csv.gz")
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__context__ is None


def test_what_is_no_number_is_missing(tmp_path, ledger):
    (tmp_path / "rows.csv").write_text("x,y\n" + "0.5,0.5\n" * 300_000 + f"{SECRET}a,0.5\n")
    with pytest.raises(DataError, match="missing='drop'") as error:
        GridKMeans(3, bounds=(-1, 1), ledger=ledger).fit(tmp_path / "rows.csv")
    assert SECRET not in str(error.value)
    assert fold(tmp_path / "rows.csv", RowCount(), missing="drop").tolist() == [300_000]


def test_progress(tmp_path, quick):
    folder = write(tmp_path / "files", table_of(some_rows()))
    seen = []
    with progress(lambda step, share: seen.append((step, share))):
        GridKMeans(3, bounds=(-1, 1)).fit(folder)
    shares = [share for step, share in seen if step == "grid"]
    assert shares[0] == 0.0
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    assert len(shares) > 3


def test_labels_of_files(tmp_path, quick):
    rows = some_rows()
    folder = write(tmp_path / "files", table_of(rows))
    model = GridKMeans(3, bounds=(-1, 1), random_state=0).fit(folder)
    assert (model.predict(folder) == model.release_.model.predict(rows)).all()
    assert (model.labels_ == model.predict(folder)).all()
