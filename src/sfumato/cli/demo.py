"""``sfumato demo``: a first look."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder to write to, e.g. --out demo.")] = Path("demo"),
) -> None:
    """Cluster a simulated city, and write a release, a picture, a report and a ledger."""
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"`--out` must be a folder, got the file {str(out)!r}")
    from sfumato.cli.city import show

    show(out)
