"""Where measurements are kept: full ones under version control, those of a quick run beside them."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def folder(*, quick: bool) -> Path:
    return RESULTS / "quick" if quick else RESULTS


def kept(name: str, *, quick: bool = False) -> dict[str, Any] | None:
    """What the last run of a table left: `machine`, `quick` and `measured`. None if it never ran."""
    path = folder(quick=quick) / f"{name}.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def keep(name: str, found: dict[str, Any], *, quick: bool = False) -> None:
    path = folder(quick=quick) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")
