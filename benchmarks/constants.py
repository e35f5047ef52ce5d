"""Every tuned constant of `cluster` and `public` at its value and at two others: what the choice is worth.

Each change is measured against the same method on the same rows with the same seed. A run keeps what it has after each
constant, and goes on from there.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.centre_data import markdown
from benchmarks.constant_list import TUNED, Tuned
from benchmarks.constant_trials import TRIALS, Trial
from benchmarks.kept import folder

SEEDS, QUICK_SEEDS, QUICK_STEP = 5, 1, 40  # a quick run takes every so many constants
PART = "constants_part.json"  # what an unfinished run has


def measure(*, quick: bool) -> dict[str, Any]:
    n_seeds, path = QUICK_SEEDS if quick else SEEDS, folder(quick=quick) / PART
    chosen = TUNED[::QUICK_STEP] if quick else TUNED
    trials = {trial for tuned in chosen for trial in tuned.trials} if quick else TRIALS
    path.parent.mkdir(parents=True, exist_ok=True)
    done: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    with threadpool_limits(1):
        for tuned in chosen:
            if tuned.key not in done:
                start = time.process_time()
                done[tuned.key] = rows_of(tuned, n_seeds)
                path.write_text(json.dumps(done, indent=1) + "\n")
                print(
                    f"{tuned.key}: {time.process_time() - start:.0f} s",
                    *map(line_of, done[tuned.key]),
                    flush=True,
                )
    rows = [row for tuned in chosen for row in done[tuned.key]]
    path.unlink()
    base = {name: base_of(name, n_seeds) for name in TRIALS if name in trials}
    return {"seeds": n_seeds, "rows": rows, "base": base}


def rows_of(tuned: Tuned, n_seeds: int) -> list[dict[str, Any]]:
    """Changes with each other value, by trial."""
    found = []
    for trial in tuned.trials:
        for i, other in enumerate(tuned.others):
            if tuned.is_compiled:
                losses = in_fresh_process(tuned, i, trial, n_seeds)
            else:
                with patched(tuned, other):
                    losses = losses_of(trial, n_seeds)
            changes = {on: changes_of(trial, on, losses[on]) for on in losses}
            parts = {
                kind: spread([c for on in getattr(TRIALS[trial], kind) for c in changes[on]])
                for kind in KINDS
            }
            row = {
                "module": tuned.module,
                "name": tuned.name,
                "value": text_of(tuned.value),
                "other": text_of(other),
            }
            found.append({**row, "trial": trial, **parts})
    return found


KINDS = ("chosen_on", "reported_on")


def losses_of(trial: str, n_seeds: int) -> dict[str, list[float]]:
    on = (*TRIALS[trial].chosen_on, *TRIALS[trial].reported_on)
    return {
        name: [TRIALS[trial].loss(name, seed) for seed in range(seeds_of(TRIALS[trial], n_seeds))]
        for name in on
    }


def seeds_of(trial: Trial, n_seeds: int) -> int:
    return n_seeds * trial.times_seeds


@lru_cache(maxsize=1000)
def base_loss(trial: str, on: str, seed: int) -> float:
    return TRIALS[trial].loss(on, seed)


def base_of(trial: str, n_seeds: int) -> dict[str, float]:
    """Mean loss on each table with every constant at its value."""
    on = (*TRIALS[trial].chosen_on, *TRIALS[trial].reported_on)
    seeds = range(seeds_of(TRIALS[trial], n_seeds))
    return {name: float(np.mean([base_loss(trial, name, seed) for seed in seeds])) for name in on}


def changes_of(trial: str, on: str, losses: list[float]) -> list[float]:
    """What each loss gained over that with the constant's value: in per cent of a cost, in hundredths otherwise."""
    base = [base_loss(trial, on, seed) for seed in range(len(losses))]
    if TRIALS[trial].measure == "cost":
        return [float(100 * np.log(loss / was)) for loss, was in zip(losses, base, strict=True)]
    return [100 * (loss - was) for loss, was in zip(losses, base, strict=True)]


def spread(changes: list[float]) -> list[float]:
    """Mean, and its standard error."""
    return [float(np.mean(changes)), float(np.std(changes, ddof=len(changes) > 1) / np.sqrt(len(changes)))]


@contextmanager
def patched(tuned: Tuned, other: Any) -> Iterator[None]:
    """Give a constant another value, in its module and in those that import it."""
    from sfumato.public.packing import unit_packing

    values = tuned.values_with(other)
    before = [
        (module, name, getattr(module, name))
        for module in map(importlib.import_module, (tuned.module, *tuned.importers))
        for name in values
        if hasattr(module, name)
    ]
    try:
        for module, name, _ in before:
            setattr(module, name, values[name])
        unit_packing.cache_clear()
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
        unit_packing.cache_clear()


def in_fresh_process(tuned: Tuned, i: int, trial: str, n_seeds: int) -> dict[str, list[float]]:
    """The same where compiled code holds the constant: compiled anew, in a folder of its own."""
    call = (
        f"from benchmarks import constants; constants.print_losses({tuned.key!r}, {i}, {trial!r}, {n_seeds})"
    )
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-c", call],
            env=os.environ | {"NUMBA_CACHE_DIR": cache},
            check=True,
            capture_output=True,
            text=True,
        )
    losses: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return losses


def print_losses(key: str, i: int, trial: str, n_seeds: int) -> None:
    tuned = next(t for t in TUNED if t.key == key)
    with threadpool_limits(1), patched(tuned, tuned.others[i]):
        print(json.dumps(losses_of(trial, n_seeds)))


def text_of(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{text_of(v)}" for v in value.values())
    if isinstance(value, tuple):
        return "(" + ", ".join(map(text_of, value)) + ")"
    return str(value) if isinstance(value, Fraction) else f"{value:g}"


def line_of(row: dict[str, Any]) -> str:
    return f"\n  {row['trial']} {row['other']}: " + "; ".join(change_text(row[kind]) for kind in KINDS)


def change_text(change: list[float]) -> str:
    mean, error = change
    text = f"{mean:+.1f} ± {error:.1f}"
    return f"**{text}**" if is_clear(change) else text


def is_clear(change: list[float]) -> bool:
    """Whether it is more than twice its standard error, and more than one half."""
    return abs(change[0]) > max(2 * change[1], 0.5)


def render(measured: dict[str, Any]) -> str:
    lines = [
        [
            f"`{row['module'].removeprefix('sfumato.')}.{row['name']}`",
            row["value"],
            row["other"],
            row["trial"],
            *(change_text(row[kind]) for kind in KINDS),
        ]
        for row in measured["rows"]
    ]
    return "\n".join(
        [
            "## Tuned constants",
            "",
            "Each tuned constant at another value, everything else as it is: what that changes, as mean ± standard error over "
            f"tables and {measured['seeds']} or more seeds, epsilon 1 unless the trial says otherwise. Positive is worse. In "
            "per cent of the cost for methods that release centres, for `SourceTargetClustering` and for `suggest_max_rows`; in "
            "hundredths of the adjusted Rand index for density and Morse clusters and for DPM without a number of clusters; in "
            "hundredths of the mean log density for mixtures. In bold where it is clear: above one half, and above two standard "
            "errors; of as many comparisons some are bold by chance. [What it means](docs/notes/constants.md).",
            "",
            *markdown(["constant", "value", "other", "trial", "kinds chosen on", "other tables"], lines),
            "",
            "The trials, and the mean of what they measure with every constant at its value:",
            "",
            *markdown(
                ["trial", "measure", "kinds chosen on", "other tables"],
                [trial_line(n, measured) for n in TRIALS],
            ),
            "",
        ]
    )


def trial_line(name: str, measured: dict[str, Any]) -> list[str]:
    trial, base = TRIALS[name], measured["base"].get(name, {})
    cells = [
        ", ".join(f"{on} {abs(base[on]):.3g}" if on in base else on for on in getattr(trial, kind))
        for kind in KINDS
    ]
    return [name, trial.title, *cells]
