"""Attacks on every estimator with every kind of budget, on simple counts, and on k-means of diffprivlib."""

import inspect
import time
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from benchmarks.centre_data import in_processes, markdown
from benchmarks.diffprivlib_peer import peer_centers, prepare
from sfumato import SourceTargetClustering, cluster
from sfumato.audit import PAIRS, AuditResult, Pair, audit, audit_estimator, lower_bound
from sfumato.budget import Budget, Plan, Step, calibrate
from sfumato.cli.methods import BUILT_IN
from sfumato.curator import Curator
from sfumato.domain import Domain
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.public.models import CentreModel
from sfumato.release import Release

BUDGETS: dict[str, dict[str, float]] = {
    "pure": {"epsilon": 2.0},
    "approximate": {"epsilon": 2.0, "delta": 1e-5},
    "zCDP": {"rho": 0.5},
}
OWN = {"n_clusters": 2, "n_components": 2, "max_cells": 64, "radius": 0.5}
EMPTIED = "emptied cluster"  # breaks k-means of diffprivlib
PATIENT = "patient"  # a mixed table with profiles
TARGETS = np.array([[x, y] for x in (-0.75, 0.0, 0.75) for y in (-0.75, 0.0, 0.75)])
RUNS, QUICK_RUNS = 2_000, 100  # on each of two neighbours
SCREENED_RUNS = 100  # on each of two neighbours, of every pair, to find the worst
PEER_BUDGET = 1.0
CONFIDENCE = 0.99
SOURCE_TARGET = "SourceTargetClustering"
COUNT, HALF_NOISE, PEER = "noisy count", "count with half of the noise", "KMeans of diffprivlib 0.6.6"


def noisy_count(budget: Budget, noise: Fraction, table: np.ndarray, seed: int) -> int:
    """Ask a real curator for the number of rows, with so many times the noise that the budget calls for."""
    amounts = {
        name: Fraction(value) / noise ** (2 if name == "rho" else 1)
        for name, value in budget.to_dict().items()
        if name != "delta"
    }
    engine = MemoryEngine(table, Domain.from_bounds((-1.0, 1.0), 2))
    plan = calibrate(Plan(Step("rows", 1)), Budget(**amounts, delta=budget.delta))
    return int(Curator(engine, engine.domain, plan, Entropy(seed)).count("rows").values[0])


def peer(table: np.ndarray, seed: int) -> CentreModel:
    centers = peer_centers(table, 2, epsilon=PEER_BUDGET, bounds=(-1.0, 1.0), seed=seed)
    return CentreModel(centers, np.zeros(len(centers)))


def source_target(parameters: dict[str, Any], source: Any, seed: int) -> Release:
    model = SourceTargetClustering(2, coreset=0.2, **parameters, random_state=seed)
    named = isinstance(parameters["bounds"], dict)
    target = {name: TARGETS[:, j] for j, name in enumerate(parameters["bounds"])} if named else TARGETS
    if named:
        import pyarrow as pa

        target = pa.table(target)
    return model.fit(target, source).release_


def estimator(name: str, budget: dict[str, float]) -> Any:
    cls = getattr(cluster, name)
    known = inspect.signature(cls).parameters
    return cls(**{key: value for key, value in OWN.items() if key in known}, **budget)


def audit_of(name: str, kind: str, pair: Pair, n_runs: int, random_state: int = 0) -> AuditResult:
    options: dict[str, Any] = {"n_runs": n_runs, "random_state": random_state, "confidence": CONFIDENCE}
    budget = Budget(**BUDGETS[kind])
    if name == PEER:
        return audit(peer, pair, Budget(PEER_BUDGET), **options)
    if name in (COUNT, HALF_NOISE):
        noise = Fraction(1 if name == COUNT else 1 / 2)
        return audit(partial(noisy_count, budget, noise), pair, budget, **options)
    if name == SOURCE_TARGET:
        return audit(partial(source_target, {**pair.parameters, **BUDGETS[kind]}), pair, budget, **options)
    return next(audit_estimator(estimator(name, BUDGETS[kind]), [pair], **options))


def worst_pair(name: str) -> str:
    """The pair on which a few runs tell most, by a bound that is as often too high as too low."""

    def told(pair: Pair) -> float:
        found = audit_of(name, "pure", pair, SCREENED_RUNS)
        return lower_bound(found.budget, found.n_likely, found.n_unlikely, found.n_runs, confidence=0.5)

    return max((pair for pair in PAIRS if fits(name, pair)), key=lambda pair: told(PAIRS[pair]))


def fits(name: str, pair: str) -> bool:
    """Whether a pair suits a method: targets are points, and one radius for years and levels says nothing."""
    return pair != PATIENT or name not in (SOURCE_TARGET, "DPDBSCAN")


def audited(name: str, kind: str, pair: str, quick: bool) -> dict[str, Any]:
    start, cpu = time.perf_counter(), time.process_time()
    n_runs = QUICK_RUNS if quick else RUNS
    found = audit_of(name, kind, PAIRS[pair], n_runs, random_state=1)
    print(f"{time.perf_counter() - start:.0f} s {name}, {kind}, {n_runs} runs: {found}", flush=True)
    timed = {"runs": n_runs, "seconds": time.process_time() - cpu}
    return {"name": name, "kind": kind, **found.to_dict(), **timed}


def measure(*, quick: bool) -> dict[str, Any]:
    prepare()
    jobs = [(name, kind, "outlier", quick) for name in (COUNT, HALF_NOISE) for kind in BUDGETS]
    jobs.append((PEER, "pure", EMPTIED, quick))
    names = [*BUILT_IN.values(), SOURCE_TARGET]
    start = time.perf_counter()
    pairs = [EMPTIED] * len(names) if quick else list(in_processes(worst_pair, [(name,) for name in names]))
    kinds = list(BUDGETS)[:1] if quick else list(BUDGETS)
    jobs += [(name, kind, pair, quick) for name, pair in zip(names, pairs, strict=True) for kind in kinds]
    # Whole persons with categories and profiles, whatever told most about a method.
    jobs += [
        (name, "approximate", PATIENT, quick)
        for name, pair in zip(names, pairs, strict=True)
        if fits(name, PATIENT) and pair != PATIENT and not quick
    ]
    rows = list(in_processes(audited, jobs))
    told = {"confidence": CONFIDENCE, "pairs": len(PAIRS), "seconds": time.perf_counter() - start}
    return told | {"rows": rows}


def render(measured: dict[str, Any]) -> str:
    rows = measured["rows"]
    lines = [
        [
            row["name"],
            row["pair"],
            promise_of(row),
            f"{row['lower']:.2f}",
            f"{visible(row):.2f}",
            f"{2 * row['runs']:,}",
            "**broken**" if row["broken"] else "not contradicted",
        ]
        for row in rows
    ]
    return "\n".join(
        [
            "## Audits",
            "",
            "Lower bounds on what is lost about one unit, from runs on two neighbouring tables (`sfumato.audit`, docs/audit.md): "
            f"epsilon or rho is at least this, each with confidence {measured['confidence']:.0%}. Half of the runs choose an "
            "event in the released values, the other half count it. A bound below the promise proves nothing; one above it breaks the promise. "
            "*Could show*: the bound if the event always happened on the one table and never on the other, so that a promise beyond "
            "it cannot be broken with so few runs. "
            f"Runs are of both tables together. Each estimator meets the pair, of {measured.get('pairs', 6)}, on "
            f"which {2 * SCREENED_RUNS} runs beforehand told most{with_patients(rows)}. "
            f"{sum(row['seconds'] for row in rows) / 60:.0f} minutes of the processor in all.",
            "",
            *markdown(
                ["algorithm", "neighbours", "promise", "at least", "could show", "runs", "the promise"], lines
            ),
            "",
        ]
    )


def with_patients(rows: list[dict[str, Any]]) -> str:
    if not any(row["pair"] == PATIENT for row in rows):
        return ""
    return (
        f", and `{PATIENT}`: whole persons in a table with a category, with profiles in the release (but for "
        "`SourceTargetClustering`, whose targets are points, and `DPDBSCAN`: one radius for years and levels says nothing)"
    )


def visible(row: dict[str, Any]) -> float:
    n = row["n_runs"]
    return lower_bound(Budget.from_dict(row["budget"]), n, 0, n, row["confidence"])


def promise_of(row: dict[str, Any]) -> str:
    return ", ".join(f"{name} {float(Fraction(value)):g}" for name, value in row["budget"].items())
