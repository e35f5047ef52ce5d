"""``sfumato report``: a page about a release, for people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.bounds_option import read_toml
from sfumato.cli.files import check_new
from sfumato.cli.predict import load
from sfumato.errors import ParameterError

LABELS = "labels"  # the table with texts for columns


def report(
    release: options.ReleaseFile,
    out: Annotated[Path, typer.Option(help="HTML file to write, e.g. --out report.html.")] = Path(
        "report.html"
    ),
    title: Annotated[
        str | None, typer.Option(help="Title of the page, e.g. --title 'Kinds of stays'.")
    ] = None,
    labels: options.Labels = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a report on a release: one HTML file, from the release alone. Spends nothing."""
    check_new(out, force=force)
    found, texts = load(release), read_labels(labels)
    from sfumato.report import write

    write(found, out, title, texts)
    if not quiet:
        print(f"report: {out}")


def read_labels(path: Path | None) -> dict[str, Any]:
    """Texts for columns in a TOML file, which may hold other tables besides."""
    if path is None:
        return {}
    found = read_toml(path).get(LABELS)
    if not isinstance(found, dict):
        raise ParameterError(
            f"{path} must have a table [{LABELS}] with a line per column: age = 'Age in years'"
        )
    return found
