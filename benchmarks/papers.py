"""Figures that papers print, in `papers.json`: facts, each table under the paper that it is from."""

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def tables() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "papers.json").read_text())
    return found


def published(paper: str) -> dict[str, Any]:
    """Tables of a paper in numbers."""
    return tables()[paper]


def inertia_ratios(tables: dict[str, Any], data: str) -> dict[str, float]:
    """Inertia over that of non-private k-means, by method, for a data set of the DPM paper."""
    means = {
        method: mean for method, (mean, _) in zip(tables["columns"], tables[data]["inertia"], strict=True)
    }
    return {method: mean / means["kmeans"] for method, mean in means.items()}
