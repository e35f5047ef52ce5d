"""Figures that papers print, in ``papers/tables.json`` beside the data folder that SFUMATO_DATA names."""

import json
from typing import Any

from sfumato.datasets import data_home


def published(paper: str) -> dict[str, Any] | None:
    """Tables of a paper in numbers, None without the file."""
    home = data_home()
    path = home.parent / "papers" / "tables.json" if home else None
    if path is None or not path.exists():
        return None
    tables: dict[str, Any] = json.loads(path.read_text())[paper]
    return tables


def inertia_ratios(tables: dict[str, Any], data: str) -> dict[str, float]:
    """Inertia over that of non-private k-means, by method, for a data set of the DPM paper."""
    means = {
        method: mean for method, (mean, _) in zip(tables["columns"], tables[data]["inertia"], strict=True)
    }
    return {method: mean / means["kmeans"] for method, mean in means.items()}
