"""Wide tables: unit vectors, embeddings of texts, pictures, sparse rows, many numbers of clusters, loose bounds.

`python -m benchmarks.wide_tables part ...` measures some parts and adds them to what is kept.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.clocks import in_own_process
from benchmarks.kept import folder, keep, kept
from benchmarks.wide_cases import CASES, OTHERS, OURS, Case, fits_of, memory_of, reference_of, starts_of
from benchmarks.wide_data import NO_ENCODER, has_encoder, wide_table
from benchmarks.wide_page import rendered

SEEDS, OTHER_SEEDS, QUICK_SEEDS = 5, 2, 1
FEWER = {"unit_384": 3, "unit_768": 2}  # seeds of the slow parts
QUICK_ROWS, QUICK_PARTS = 3_000, ("unit_384", "sweep", "bounds")  # the others read and encode for minutes
PART = "wide_tables_part.json"  # what an unfinished run has
Found = dict[str, dict[str, Any]]
_timed: set[str] = set()  # references whose clock ran in this process


def empty() -> Found:
    return {"cells": {}, "references": {}, "memory": {}, "skipped": {}}


def measure(*, quick: bool) -> Found:
    path = folder(quick=quick) / PART
    path.parent.mkdir(parents=True, exist_ok=True)
    found: Found = json.loads(path.read_text()) if path.exists() else empty()
    parts = list(QUICK_PARTS if quick else CASES)
    run(parts, found, lambda: path.write_text(json.dumps(found, indent=1) + "\n"), quick=quick)
    path.unlink()
    return found


def run(
    parts: list[str], found: Found, save: Callable[[], object], *, quick: bool, others: bool = True
) -> None:
    """Measure what is not found yet, and save after each case."""
    start = time.perf_counter()
    for part in parts:
        if part == "texts" and not has_encoder():
            found["skipped"][part] = NO_ENCODER
            continue
        found["skipped"].pop(part, None)
        cases = CASES[part][:1] if quick else CASES[part]
        for case in cases:
            run_case(case, found, quick=quick, others=others)
            save()
            took = time.perf_counter() - start
            print(f"{took:.0f} s {case.key}: {line_of(case, found)}", flush=True)


def run_case(case: Case, found: Found, *, quick: bool, others: bool) -> None:
    n_rows = QUICK_ROWS if quick else None
    if case.has_memory and case.key not in found["memory"]:  # before this process holds the table
        found["memory"][case.key] = in_own_process("benchmarks.wide_tables", "memory", case.key, n_rows or 0)
    n_seeds = {name: QUICK_SEEDS if quick else OTHER_SEEDS for name in OTHERS if others and case.has_others}
    n_seeds[OURS] = QUICK_SEEDS if quick else FEWER.get(case.part, SEEDS)
    missing = [
        name for name in (OURS, *OTHERS) if name in n_seeds and key_of(case, name) not in found["cells"]
    ]
    if not missing:
        return
    table, about = wide_table(case.data, n_rows), f"{case.data}; {case.k}"
    if not case.is_sparse and about not in _timed:
        known, n_starts = found["references"].get(about), starts_of(case.part, quick=quick)
        found["references"][about] = reference_of(case, table, known, n_starts)
        _timed.add(about)
    reference = found["references"].get(about)
    for name in missing:
        cell = fits_of(name, case, table, reference, n_seeds[name])
        found["cells"][key_of(case, name)] = cell | {"shape": list(table.X.shape)}


def key_of(case: Case, method: str) -> str:
    return f"{case.key}; {method}"


def line_of(case: Case, found: Found) -> str:
    cells = {name: found["cells"].get(key_of(case, name)) for name in (OURS, *OTHERS)}
    score = "ari" if case.is_sparse else "ratio"
    texts = [
        f"{name} {sum(cell[score]) / len(cell[score]):.3f} in {min(cell['seconds']):.1f} s"
        for name, cell in cells.items()
        if cell
    ]
    return ", ".join(texts)


def render(measured: Found) -> str:
    return rendered(measured)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wide_tables", description=__doc__)
    parser.add_argument("parts", nargs="+", choices=list(CASES))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--ours", action="store_true", help=f"only {OURS}, not the methods to compare with")
    parser.add_argument("--missing", action="store_true", help="only what is not kept yet")
    parser.add_argument("--references", action="store_true", help="k-means to compare with is fitted again")
    arguments = parser.parse_args()
    last = kept("wide_tables", quick=arguments.quick)
    found: Found = last["measured"] if last else empty()
    if not arguments.missing:
        forget(arguments.parts, found, others=not arguments.ours, references=arguments.references)

    def save() -> None:
        from benchmarks.__main__ import machine

        content = {"machine": machine(), "quick": arguments.quick, "measured": found}
        keep("wide_tables", content, quick=arguments.quick)

    run(arguments.parts, found, save, quick=arguments.quick, others=not arguments.ours)
    save()


def forget(parts: list[str], found: Found, *, others: bool, references: bool) -> None:
    """Leave out what is measured again. References stay, unless told otherwise: k-means does not change."""
    cases = [case for part in parts for case in CASES[part]]
    for case in cases:
        found["memory"].pop(case.key, None)
        for name in (OURS, *OTHERS) if others else (OURS,):
            found["cells"].pop(key_of(case, name), None)
        if references:
            found["references"].pop(f"{case.data}; {case.k}", None)


if __name__ == "__main__":
    if sys.argv[1:2] == ["memory"]:
        print(json.dumps(memory_of(sys.argv[2], int(sys.argv[3]) or None)))
    else:
        main()
