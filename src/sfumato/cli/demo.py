"""``sfumato demo``: a first look."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder to write to, e.g. --out demo.")] = Path("demo"),
) -> None:
    """Cluster a simulated city, and write a release, a picture, a report and a ledger."""
    from sfumato.cli.city import show

    show(out)
