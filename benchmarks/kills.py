"""Planted mistakes: which of them the exact meter sees by itself, what it says of them, and how long that takes."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.mutants.laboratory import Mutant, examine
from tests.mutants.mutants import METER, METERED, MUTANTS, UNMETERED

from benchmarks.centre_data import N_PROCESSES, markdown

QUICK_STEP = 12


def seen(mutant: Mutant) -> dict[str, Any]:
    """Run a mutant past the meter alone; one that the meter cannot see, past the tests that do."""
    tests = [METER + METERED[mutant.name]] if mutant.name in METERED else list(mutant.killers)
    start = time.perf_counter()
    _, failures = examine(tests, mutant)
    row = {"name": mutant.name, "module": mutant.module, "case": tests[0]}
    row |= {"said": said(failures[0].error) if failures else "", "seconds": time.perf_counter() - start}
    print(row, flush=True)
    return row


def said(error: str) -> str:
    """What the meter says of a pair, without its numbers; of another failure, the first line."""
    line = error.partition("\n")[0].removeprefix("AssertionError: ").removeprefix("sfumato.errors.")
    return line.partition("BROKEN: ")[2].partition(";")[0] or line


def measure(*, quick: bool) -> dict[str, Any]:
    mutants = MUTANTS[:: QUICK_STEP if quick else 1]
    start = time.perf_counter()
    _, failures = examine(sorted({METER + METERED[m.name] for m in mutants if m.name in METERED}))
    assert not failures, "the meter must pass on the library as it is"
    intact = time.perf_counter() - start
    with ThreadPoolExecutor(N_PROCESSES) as lanes:
        rows = list(lanes.map(seen, mutants))
    return {"rows": rows, "intact_s": intact, "wall_s": time.perf_counter() - start - intact}


def render(measured: dict[str, Any]) -> str:
    rows = measured["rows"]
    metered = [row for row in rows if row["name"] in METERED]
    others = [row for row in rows if row["name"] not in METERED]
    lost = [row["name"] for row in rows if not row["said"]]
    return "\n".join(
        [
            "## Planted mistakes",
            "",
            "Each mistake is made in a copy of the library, in one place (`tests/mutants/mutants.py`). In the first table one case of the exact meter "
            "(docs/audit.md) runs on it, and no other test. "
            f"It sees {sum(bool(row['said']) for row in metered)} of {len(metered)}, each in {max(row['seconds'] for row in metered):.0f} seconds at "
            f"most, with the start of a process of its own; on the library as it is, all these cases pass ({measured['intact_s']:.0f} s). The second table has the "
            f"mistakes at which the meter cannot look, and the tests that see them. All {len(rows)} took {measured['wall_s'] / 60:.1f} minutes, two at a time. "
            f"Not seen: {', '.join(lost) or 'none'}.",
            "",
            *markdown(
                ["mistake", "module", "what the meter says", "s"],
                [
                    [row["name"], f"`{row['module']}`", row["said"], f"{row['seconds']:.0f}"]
                    for row in metered
                ],
            ),
            "",
            *markdown(
                ["mistake", "module", "why the meter does not see it", "seen by", "s"],
                [
                    [
                        row["name"],
                        f"`{row['module']}`",
                        UNMETERED[row["name"]],
                        f"`{row['case']}`",
                        f"{row['seconds']:.0f}",
                    ]
                    for row in others
                ],
            ),
            "",
        ]
    )
