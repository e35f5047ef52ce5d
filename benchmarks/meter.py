"""The exact privacy loss of every estimator with every kind of budget, on all pairs and on the worst neighbours found."""

import time
from functools import partial
from typing import Any

import numpy as np

from benchmarks.audit import BUDGETS, SOURCE_TARGET, TARGETS, estimator, fits, promise_of, source_target
from benchmarks.centre_data import in_processes, markdown
from sfumato.audit import PAIRS, MeterResult, Pair, meter, meter_estimator, worst_neighbour
from sfumato.budget import Budget
from sfumato.cli.methods import BUILT_IN

PATHS, QUICK_PATHS = 2, 1
QUICK_PAIRS = ("outlier", "person")
ROWS = np.random.default_rng(0).uniform(-1, 1, size=(12, 2))


def metered(name: str, kind: str, quick: bool) -> dict[str, Any]:
    start, budget = time.process_time(), Budget(**BUDGETS[kind])
    n_paths = QUICK_PATHS if quick else PATHS
    found = list(
        of_source(kind, budget, n_paths) if name == SOURCE_TARGET else of_method(name, kind, n_paths, quick)
    )
    worst = max(found, key=lambda result: result.share)
    row = {"name": name, "kind": kind, "pairs": len(found), "budget": budget.to_dict(), "worst": worst.pair}
    row |= {"share": worst.share, "least": min(result.share for result in found), "lost": worst.lost}
    row |= {"complaints": sorted({complaint for result in found for complaint in result.complaints})}
    row |= {"broken": any(result.broken for result in found), "seconds": time.process_time() - start}
    print(row, flush=True)
    return row


def of_method(name: str, kind: str, n_paths: int, quick: bool) -> list[MeterResult]:
    pairs = [PAIRS[pair] for pair in (QUICK_PAIRS if quick else PAIRS) if fits(name, pair)]
    found = list(meter_estimator(estimator(name, BUDGETS[kind]), pairs, n_paths=n_paths))
    if not quick and kind != "approximate":  # whose laws take seconds to compose, for each candidate
        found += [
            worst_neighbour(estimator(name, BUDGETS[kind]), by_person=by_person, n_random=4, n_paths=n_paths)
            for by_person in (False, True)
        ]
    return found


def of_source(kind: str, budget: Budget, n_paths: int) -> list[MeterResult]:
    """Rows at a target, far from all, and far outside, for each sanitizer."""
    units = {"at a target": TARGETS[0], "in a corner": [1.0, 1.0], "far outside": [1e6, 1e6]}
    options: list[dict[str, Any]] = [{}, {"sanitizer": "nna"}, {"sanitizer": "nas", "t": 5}]
    return [
        meter(
            partial(source_target, {"bounds": (-1.0, 1.0), **BUDGETS[kind], **option}),
            Pair(place, np.concatenate([ROWS, [unit]]), ROWS, np.array([unit])),
            budget,
            n_paths=n_paths,
        )
        for option in options
        for place, unit in units.items()
    ]


def measure(*, quick: bool) -> dict[str, Any]:
    jobs = [(name, kind, quick) for name in (*BUILT_IN.values(), SOURCE_TARGET) for kind in BUDGETS]
    return {"paths": QUICK_PATHS if quick else PATHS, "rows": list(in_processes(metered, jobs))}


def render(measured: dict[str, Any]) -> str:
    rows = measured["rows"]
    lines = [
        [
            row["name"],
            promise_of(row),
            str(row["pairs"]),
            row["worst"],
            f"**{row['share']:.3f}**",
            f"{row['least']:.2f}",
            "; ".join(row["complaints"]) or ("broken" if row["broken"] else "none"),
        ]
        for row in rows
    ]
    return "\n".join(
        [
            "## The exact meter",
            "",
            "Every noisy answer about one table is replayed on its neighbour, and the exact losses of all answers are added up (`sfumato audit "
            "--white-box`, docs/audit.md). *Lost*: the largest part of the promise, over the pairs of the audit and, without a delta, the worst row and person that a "
            f"search finds, with {measured['paths']} seeds in both directions on each; *least*: on the mildest pair. Complaints would be: noise of another size, values that "
            "move too far, anything seen that differs though all answers are equal, steps that are not stated, a ledger charged late. "
            f"{sum(row['seconds'] for row in rows) / 60:.0f} minutes of the processor in all.",
            "",
            *markdown(["algorithm", "promise", "pairs", "worst pair", "lost", "least", "complaints"], lines),
            "",
        ]
    )
