"""Run tables of measurements, keep them as JSON, and render them: one page each, and BENCHMARKS.md over all."""

import argparse
import importlib
import os
import platform
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import diffprivlib_peer, mixed_peers, pictures, r_data, stale
from benchmarks.kept import folder, keep, kept
from sfumato.datasets import data_home

TABLES = (
    "samplers",
    "quick_start",
    "grid_accuracy",
    "grid_scale",
    "kmeans_accuracy",
    "kmeans_budgets",
    "dpm_protocol",
    "google_page",
    "fastlloyd_suite",
    "hst_suite",
    "how_many",
    "real_tables",
    "r_tables",
    "wide_tables",
    "recommendation",
    "mixed_tables",
    "planner_accuracy",
    "profiles",
    "profile_costs",
    "terms",
    "kmeans_time",
    "growth",
    "density_accuracy",
    "density_shapes",
    "range_counts",
    "places",
    "density_time",
    "people",
    "mixture_accuracy",
    "morse_time",
    "medoids_time",
    "source_target",
    "reading",
    "files_scale",
    "spark_scale",
    "spark_files",
    "audit",
    "meter",
    "kills",
    "paper_tables",
)
# What was measured once, to say what choices are worth: run by name only.
STUDIES = ("constants",)
COMPARISON = "paper_tables"  # of what the others have kept: last
# Tables of times are measured alone. The others are measured so many at a time, each in a process of its own.
TIMES = (
    "samplers",
    "quick_start",
    "grid_scale",
    "kmeans_time",
    "growth",
    "density_time",
    "morse_time",
    "medoids_time",
    "reading",
    "files_scale",
    "spark_scale",
    "spark_files",
)
AT_A_TIME = 2
# Their rows come from the folder that SFUMATO_DATA names.
NEED_DATA = (
    "google_page",
    "fastlloyd_suite",
    "hst_suite",
    "real_tables",
    "wide_tables",
    "recommendation",
    "mixed_tables",
    "profiles",
    "profile_costs",
    "terms",
    "range_counts",
    "places",
    "density_time",
    "people",
)
# A quick run of all tables leaves these out: it should take a quarter of an hour, and `spark_files` tries Spark as well.
NOT_QUICK = ("spark_scale",)
ROOT = Path(__file__).parents[1]
PAGE = "BENCHMARKS.md"
TO_ROOT = "../../"  # from the folder of the tables


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "tables",
        nargs="*",
        choices=[*TABLES, *STUDIES, []],
        help="which tables or studies; all tables whose data are at hand by default",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer seeds and rows, to try it out; kept, rendered and drawn in benchmarks/results/quick; "
        f"without {', '.join(NOT_QUICK)}, unless named",
    )
    pages = parser.add_mutually_exclusive_group()
    pages.add_argument("--render", action="store_true", help="only write the pages again")
    pages.add_argument("--no-pages", action="store_true", help="only measure and keep")
    parser.add_argument(
        "--stale", action="store_true", help="only list the kept tables whose code has changed since"
    )
    arguments = parser.parse_args()
    if arguments.stale:
        print("\n".join(stale.report([name for name in TABLES if kept(name)])))
        return
    if arguments.quick:  # before any table is imported, since tables take the folder from there
        pictures.PICTURES = folder(quick=True) / "pictures"
    left_out = (*(() if data_home() else NEED_DATA), *(NOT_QUICK if arguments.quick else ()))
    at_hand = [name for name in TABLES if name not in left_out]
    if not arguments.render:
        run(arguments.tables or at_hand, quick=arguments.quick)
    if arguments.no_pages:
        return
    for path, text in rendered(quick=arguments.quick).items():
        path.write_text(text)
        print(f"wrote {path}")


def run(names: list[str], *, quick: bool) -> None:
    """Measure tables; of more than one, each in a process of its own, and those that take no times side by side.

    Times of a quick run say nothing.
    """
    if len(names) == 1:
        measure(names[0], quick=quick)
        return
    beside = [name for name in names if name != COMPARISON and (quick or name not in TIMES)]
    if len(beside) >= AT_A_TIME:
        prepare_peers(beside)
    for name in names:
        if name != COMPARISON and name not in beside:
            measure_apart(name, quick=quick)
    with ThreadPoolExecutor(AT_A_TIME) as lanes:  # the longest first, so that none is left alone at the end
        list(lanes.map(partial(measure_apart, quick=quick), sorted(beside, key=minutes, reverse=True)))
    if COMPARISON in names:
        measure(COMPARISON, quick=quick)


def prepare_peers(names: list[str]) -> None:
    """Make the environments of peers before tables that run side by side both want them."""
    diffprivlib_peer.prepare()
    if "mixed_tables" in names:
        mixed_peers.prepare()
    if "r_tables" in names:
        r_data.prepare()


def measure(name: str, *, quick: bool) -> None:
    """Measure one table, and keep it."""
    print(f"== {name}", flush=True)
    start = time.perf_counter()
    measured = importlib.import_module(f"benchmarks.{name}").measure(quick=quick)
    took = time.perf_counter() - start
    facts = machine() | {"minutes": round(took / 60, 1)}
    keep(name, {"machine": facts, "quick": quick, "measured": measured}, quick=quick)
    print(f"== {name}: {took:.0f} s", flush=True)


def measure_apart(name: str, *, quick: bool) -> None:
    """The same in a process of its own, whose memory is its own. Its pages are written by the one that waits."""
    flags = ["--no-pages", *(["--quick"] if quick else [])]
    subprocess.run([sys.executable, "-m", "benchmarks", name, *flags], check=True)


def minutes(name: str) -> float:
    """How long the last full run of a table took; 0 if that is not known."""
    return float((kept(name) or {}).get("machine", {}).get("minutes", 0))


def machine() -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "commit": stale.head(),
    }


def rendered(*, quick: bool = False) -> dict[Path, str]:
    """Text of each page: one for every table that is kept, and of full results one over all."""
    tables = {name: table for name in (*TABLES, *STUDIES) if (table := rendered_table(name, quick=quick))}
    pages = {folder(quick=quick) / f"{name}.md": table for name, table in tables.items()}
    if quick:
        return pages
    # It imports tables, which must come after the choice of a folder for pictures.
    from benchmarks.page import page

    titles = {name: table.partition("\n")[0].removeprefix("# ") for name, table in tables.items()}
    return {ROOT / PAGE: page(titles)} | pages


def rendered_table(name: str, *, quick: bool) -> str:
    """A kept table as a page of its own, or nothing if it never ran."""
    found = kept(name, quick=quick)
    if not found:
        return ""
    body = importlib.import_module(f"benchmarks.{name}").render(found["measured"])
    body = re.sub(r"^#(#+ )", r"\1", body, flags=re.MULTILINE).replace("](docs/", f"]({TO_ROOT}docs/")
    facts = ", ".join(f"{key} {value}" for key, value in found["machine"].items())
    flag = " --quick" if found["quick"] else ""
    return f"{body}\n`python -m benchmarks {name}{flag}`; {facts}.\n"


if __name__ == "__main__":
    main()
