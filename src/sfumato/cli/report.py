"""``sfumato report``: a page about a release, for people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli import options
from sfumato.cli.files import check_new
from sfumato.cli.predict import load


def report(
    release: options.ReleaseFile,
    out: Annotated[Path, typer.Option(help="HTML file to write, e.g. --out report.html.")] = Path(
        "report.html"
    ),
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a report on a release: one HTML file, from the release alone. Spends nothing."""
    check_new(out, force=force)
    found = load(release)
    from sfumato.report import write

    write(found, out)
    if not quiet:
        print(f"report: {out}")
