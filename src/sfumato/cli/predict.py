"""``sfumato predict``: the cluster of each row of a table, for its holder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.failures import say
from sfumato.cli.files import check_new
from sfumato.cli.text_options import described, takes_text_options
from sfumato.errors import DataError, ParameterError, ReleaseError

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.release import Release

FORMATS = (".parquet", ".csv")


@takes_text_options
def predict(
    release: options.ReleaseFile,
    data: options.Data,
    out: Annotated[Path, typer.Option(help="File to write, .parquet or .csv, e.g. --out labels.parquet.")],
    column: Annotated[str, typer.Option(help="Name of the new column, e.g. --column cluster.")] = "cluster",
    keep: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns of the table to copy, e.g. --keep cab.")
    ] = None,
    strengths: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="One more column: how firmly a row belongs to its span, 0 to 1, e.g. --strengths strength.",
        ),
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    *,
    written: dict[str, Any],
) -> None:
    """Write the cluster of each row of a table. Spends nothing; the labels are not private."""
    kept = options.split(keep) or []
    if column in kept or strengths in (column, *kept):
        raise ParameterError(
            "`--column` and `--strengths` must differ from each other and from the columns that are kept, "
            f"got {column!r} and {strengths!r}"
        )
    if out.suffix not in FORMATS:
        raise ParameterError(f"`--out` must end in {' or '.join(FORMATS)}, got {str(out)!r}")
    check_new(out, force=force)
    from sfumato.release import whole_file

    found = load(release)
    table = described(data, written, {}, None if found.reading is None else found.reading.text)
    with whole_file(out) as temporary:
        _write(temporary, found.predict_files(table, column, kept, strengths))
    if not quiet:
        say(f"Labels in {out} describe single rows: they are not private. Do not publish them.")


def load(path: Path) -> Release:
    """Read a release file."""
    from sfumato.release import Release

    try:
        return Release.load(path)
    except OSError as error:
        raise ReleaseError(f"{path} must be a release file, got: {error.strerror}") from None


def _write(path: Path, batches: Iterator[pa.RecordBatch]) -> None:
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    first = next(batches, None)
    if first is None:
        raise DataError("DATA must have rows to label, got none")
    open_writer = pq.ParquetWriter if path.suffix == ".parquet" else csv.CSVWriter
    with open_writer(path, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)
