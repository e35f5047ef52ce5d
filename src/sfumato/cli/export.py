"""``sfumato export``: the clusters of a release in formats of other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli import options
from sfumato.cli.failures import say
from sfumato.cli.files import check_new
from sfumato.cli.predict import load
from sfumato.errors import ParameterError

_NOWHERE = (
    "note: the map has the coordinates of the table, and states no reference system. If they are longitude "
    "and latitude, fit a density method with --set metric=geo, or tell the program that draws the map"
)


def export(
    release: options.ReleaseFile,
    geojson: Annotated[
        Path | None, typer.Option(help="Map to write as GeoJSON, e.g. --geojson places.geojson.")
    ] = None,
    geoparquet: Annotated[
        Path | None, typer.Option(help="The same as GeoParquet, e.g. --geoparquet places.parquet.")
    ] = None,
    as_csv: Annotated[
        Path | None,
        typer.Option(
            "--csv", help="Table to write, with a line per cluster, of any columns, e.g. --csv places.csv."
        ),
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the clusters of a release for maps and spreadsheets, from the release alone. Spends nothing."""
    if geojson is None and geoparquet is None and as_csv is None:
        raise ParameterError(
            "`--geojson`, `--geoparquet` or `--csv` must be given, got none. Try --geojson places.geojson"
        )
    check_new(geojson, geoparquet, as_csv, force=force)
    found = load(release)
    writers: dict[str, tuple[Path | None, Callable[[Path], object]]] = {
        "geojson": (geojson, found.to_geojson),
        "geoparquet": (geoparquet, found.to_geoparquet),
        "csv": (as_csv, found.to_csv),
    }
    for name, (path, write) in writers.items():
        if path is not None:
            write(path)
            if not quiet:
                print(f"{name}: {path}")
    if not (quiet or found.is_in_degrees or (geojson is None and geoparquet is None)):
        say(_NOWHERE)
    if found.privacy.seeded and not quiet:
        say("warning: the noise came from a seed: do not publish these files")
