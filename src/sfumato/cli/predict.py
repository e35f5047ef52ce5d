"""``sfumato predict``: clusters of the rows of a table, for whoever holds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import options
from sfumato.cli.failures import say
from sfumato.cli.files import check_new

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.columns import Coordinate
    from sfumato.release import Release

FORMATS = (".parquet", ".csv")


def predict(
    release: options.ReleaseFile,
    data: options.Data,
    out: Annotated[Path, typer.Option(help="File of labels to write, e.g. --out labels.parquet, or .csv.")],
    column: Annotated[
        str, typer.Option(help="Name of the column of labels, e.g. --column cluster.")
    ] = "cluster",
    keep: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns of the table to write as well, e.g. --keep cab."),
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the cluster of each row of a table. Spends nothing; the labels are not private."""
    from sfumato.errors import ParameterError

    kept = options.split(keep) or []
    if column in kept:
        raise ParameterError(f"`--column` must differ from the columns that are kept, got {column!r}")
    if out.suffix not in FORMATS:
        raise ParameterError(f"`--out` must end in {' or '.join(FORMATS)}, got {str(out)!r}")
    check_new(out, force=force)
    from sfumato.release import whole_file

    with whole_file(out) as temporary:
        _write(temporary, _labelled(load(release), data, column, kept))
    if not quiet:
        say(f"Labels in {out} describe single rows: they are not private, and not for publication.")


def load(path: Path) -> Release:
    """Read a release file."""
    from sfumato.errors import ReleaseError
    from sfumato.release import Release

    try:
        return Release.load(path)
    except OSError as error:
        raise ReleaseError(f"{path} must be a release file, got: {error.strerror}") from None


def _labelled(release: Release, data: str, column: str, kept: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Batches of the columns that are kept, and of labels: none for rows with missing values."""
    import pyarrow as pa

    from sfumato.columns import Columns, Coordinate, check_names
    from sfumato.engine.parquet import ParquetEngine, open_dataset

    dataset = open_dataset(data)
    coordinates = _coordinates(release, dataset.schema.names)
    check_names([*(coordinate.column for coordinate in coordinates), *kept], dataset.schema.names)
    # Columns that are only kept pass as they are, whatever they hold; nothing is read from them as a level.
    scanned = Columns((*coordinates, *(Coordinate(name, "level") for name in kept)))
    for batch in ParquetEngine(dataset, scanned, release.domain, strict=True).batches():
        values = [batch.column(name) for name in kept]
        yield pa.record_batch([*values, _labels(release, coordinates, batch)], names=[*kept, column])


def _coordinates(release: Release, names: Sequence[str]) -> tuple[Coordinate, ...]:
    from sfumato.columns import Coordinate
    from sfumato.errors import DataError

    if release.table is not None:
        return release.table.coordinates
    found = tuple(Coordinate(name) for name in release.columns or names)
    if len(found) != release.model.n_features:
        raise DataError(f"DATA must have {release.model.n_features} columns, got {len(found)}")
    return found


def _labels(release: Release, coordinates: Sequence[Coordinate], batch: pa.RecordBatch) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    rows = np.column_stack([coordinate.read(batch.column(coordinate.column)) for coordinate in coordinates])
    complete = np.isfinite(rows).all(axis=1)
    labels = np.zeros(len(rows), dtype=np.int64)
    labels[complete] = release.model.predict(np.ascontiguousarray(rows[complete]))
    return pa.array(labels, mask=~complete)


def _write(path: Path, batches: Iterator[pa.RecordBatch]) -> None:
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    first = next(batches, None)
    if first is None:
        from sfumato.errors import DataError

        raise DataError("DATA must have rows to label, got none")
    open_writer = pq.ParquetWriter if path.suffix == ".parquet" else csv.CSVWriter
    with open_writer(path, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)
