"""Digests of seeded releases: what a change that should change nothing must leave as it was.

``python -m benchmarks.digests record before.json`` fits every estimator with every kind of budget on every
kind of table and writes the SHA-256 of each model, its bounds and its noise. ``python -m benchmarks.digests
compare before.json after.json`` lists what differs. What else a release says is left out. Digests hold for
one machine: another one may round differently. ``python -m benchmarks.digests time`` prints how long some
fits take.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

import sfumato
from sfumato import (
    DPDBSCAN,
    DPM,
    CoresetKMeans,
    DensityTree,
    DPMoG,
    GridKMeans,
    LloydKMeans,
    LocalSearchKMeans,
    MaxCoverKMeans,
    MorseClustering,
    PrivateKMeans,
    SourceTargetClustering,
)
from sfumato.budget.bought import plain
from sfumato.datasets import separated_gaussians

SEED = 7
COLUMNS = ["x", "y", "z"]
BUDGETS: dict[str, dict[str, Any]] = {
    "pure": {"epsilon": 1.5},
    "approximate": {"epsilon": 1.5, "delta": 1e-6},
    "zcdp": {"rho": 0.4},
}
ESTIMATORS: dict[str, Any] = {
    "PrivateKMeans": PrivateKMeans(4),
    "PrivateKMeans, k open": PrivateKMeans(),
    "DPM": DPM(),
    "DPM without refinement": DPM(4, refine=False, interval=0.2),
    "GridKMeans": GridKMeans(4),
    "GridKMeans eugkm": GridKMeans(4, rule="eugkm", n_public=4000),
    "LloydKMeans": LloydKMeans(4),
    "LloydKMeans without refinement": LloydKMeans(4, refine=False),
    "LloydKMeans with covariances": LloydKMeans(4, covariances=True),
    "CoresetKMeans": CoresetKMeans(4),
    "MaxCoverKMeans": MaxCoverKMeans(4),
    "LocalSearchKMeans": LocalSearchKMeans(4),
    "DPDBSCAN": DPDBSCAN(radius=0.5, min_samples=60),
    "DPDBSCAN sparse": DPDBSCAN(radius=0.3, min_samples=60, max_memory=9e7),
    "DensityTree": DensityTree(),
    "DPMoG": DPMoG(4),
    "DPMoG from centres": DPMoG(4, start="centers", assign="hard", covariance="full"),
    "MorseClustering": MorseClustering(n_clusters=4),
    "MorseClustering of a grid": MorseClustering(GridKMeans(8), labels="basin"),
    "MorseClustering of centres": MorseClustering(DPM(), n_clusters=3),
    "SourceTargetClustering": SourceTargetClustering(4),
    "SourceTargetClustering nna": SourceTargetClustering(4, "nna", coreset=0.05),
    "SourceTargetClustering nas": SourceTargetClustering(4, "nas", t=20, coreset=0.05, bound_share=0.2),
}


def cases(folder: Path) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Name of each case, and what makes its release."""
    rows, _ = separated_gaussians(4000, n_clusters=4, n_features=3, random_state=0)
    frame = pd.DataFrame(rows, columns=COLUMNS)
    persons = frame.assign(person=np.arange(len(rows)) // 3 % 1000)
    frame.to_parquet(folder / "rows.parquet")
    tables: dict[str, tuple[Any, dict[str, Any]]] = {
        "array": (rows, {"bounds": (-1, 1)}),
        "frame": (frame, {"bounds": {"x": (-1, 1), "y": (-1, 1), "z": (-1.0, 1.0)}}),
        "parquet": (folder / "rows.parquet", {"bounds": (-1, 1)}),
        "unit": (persons, {"bounds": (-1, 1), "unit": "person", "max_rows_per_unit": 2}),
        "private bounds": (rows, {"bounds": "private"}),
    }
    for method, estimator in ESTIMATORS.items():
        for kind, budget in BUDGETS.items():
            for name, (table, given) in tables.items():
                is_source = isinstance(estimator, SourceTargetClustering)
                if is_source and name == "private bounds":
                    continue
                fitted = clone(estimator).set_params(random_state=SEED, **budget, **given)
                if "profiles" in fitted.get_params():  # which cost a part of the budget
                    fitted.set_params(profiles=0)
                target = (rows if name == "array" else frame)[:300]
                tables_given = (target, table) if is_source else (table,)
                yield f"{method}, {kind}, {name}", lambda f=fitted, t=tables_given: _release(f, t)
    yield "mixed columns, pure, frame", lambda: _release(*_mixed(persons))
    for kind, budget in BUDGETS.items():
        yield f"estimate_bounds, {kind}", lambda b=budget: _bounds(frame, b)
        yield f"suggest_max_rows, {kind}", lambda b=budget: _cap(persons, b)


def _mixed(persons: pd.DataFrame) -> tuple[Any, tuple[Any]]:
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(persons["person"] % 365, unit="D")
    table = persons.assign(day=days, kind=np.where(persons["x"] > 0, "a", "b"))
    table.loc[::97, "x"] = np.nan
    dates = (pd.Timestamp("2020-01-01").to_pydatetime(), pd.Timestamp("2021-01-01").to_pydatetime())
    bounds = {"x": (-1, 1), "day": dates, "kind": ["a", "b"]}
    return LloydKMeans(3, bounds=bounds, missing="drop", unit="person", random_state=SEED), (table,)


def _release(estimator: Any, tables: tuple[Any, ...]) -> dict[str, Any]:
    found = estimator.fit(*tables).release_
    domain, content = found.domain, found.to_dict()
    noise = [(record.step, record.mechanism, str(record.scale)) for record in found.privacy.steps]
    return {
        "model": _told(content["model"]),
        "bounds": (domain.low, domain.high, domain.radius),
        "noise": noise,
    }


def _told(content: Any) -> Any:
    """A model without parts that say nothing: columns measured as they are, and no categories."""
    if isinstance(content, list):
        return [_told(part) for part in content]
    if not isinstance(content, dict):
        return content
    silent = {"measure": not (content.get("measure") or {}).get("step"), "blocks": not content.get("blocks")}
    return {name: _told(part) for name, part in content.items() if not silent.get(name, False)}


def _bounds(frame: pd.DataFrame, budget: dict[str, Any]) -> dict[str, Any]:
    found = sfumato.estimate_bounds(frame, random_state=SEED, **budget)
    low, high = plain((found.low, found.high))
    return {"low": low, "high": high, "noise": [str(r.scale) for r in found.privacy.steps]}


def _cap(persons: pd.DataFrame, budget: dict[str, Any]) -> dict[str, Any]:
    found = sfumato.suggest_max_rows(persons, "person", random_state=SEED, **budget)
    return {"max_rows": found.max_rows.value, "noise": [str(r.scale) for r in found.privacy.steps]}


def record(path: Path) -> None:
    """Write the digest of every case."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in cases(Path(folder)):
            text = json.dumps(make(), sort_keys=True, default=str)
            found[name] = hashlib.sha256(text.encode()).hexdigest()
            print(f"\r{len(found):4} {name:70.70}", end="", file=sys.stderr, flush=True)
    path.write_text(json.dumps(found, indent=1))
    print(f"\n{len(found)} releases recorded in {path}")


def compare(before: Path, after: Path) -> int:
    """Print what differs; 0 if nothing does."""
    old, new = (json.loads(path.read_text()) for path in (before, after))
    different = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    print(f"{len(old.keys() & new.keys())} releases compared, {len(different)} differ")
    for name in different:
        print(f"  {name}")
    return int(bool(different))


def clock(repeats: int = 5) -> None:
    """Print the least and the median seconds of fits with warm kernels."""
    rows, _ = separated_gaussians(100_000, n_clusters=8, n_features=10, random_state=0)
    of_rows = [DPM(bounds=(-1, 1)), LloydKMeans(8, bounds=(-1, 1)), DPMoG(8, bounds=(-1, 1))]
    timed = [(f"{type(e).__name__}, 100,000 x 10", e, rows) for e in of_rows]
    cabs = Path(os.environ.get("SFUMATO_DATA", ".")) / "cabs.parquet"
    if cabs.exists():
        bounds = {"lon": (-122.6, -122.3), "lat": (37.55, 37.85)}
        on_map = DensityTree(bounds=bounds, metric="geo"), GridKMeans(20, bounds=bounds)
        timed += [(f"{type(e).__name__}, 11 million positions in Parquet", e, cabs) for e in on_map]
    for name, estimator, table in timed:
        estimator.set_params(random_state=SEED).fit(table)
        seconds = []
        for _ in range(repeats):
            start = perf_counter()
            estimator.fit(table)
            seconds.append(perf_counter() - start)
        print(f"{name}: {min(seconds):.3f} s at least, median {np.median(seconds):.3f} s")


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    sys.exit({"record": record, "compare": compare, "time": clock}[command](*map(Path, paths)))
