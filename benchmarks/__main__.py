"""Run tables of measurements, keep them as JSON, and render BENCHMARKS.md from all that are kept."""

import argparse
import importlib
import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.datasets import data_home

TABLES = (
    "samplers",
    "grid_accuracy",
    "grid_scale",
    "kmeans_accuracy",
    "kmeans_budgets",
    "kmeans_time",
    "density_accuracy",
    "density_time",
    "people",
    "mixture_accuracy",
    "morse_time",
    "medoids_time",
    "source_target",
    "files_scale",
    "spark_scale",
)
NEED_DATA = ("density_time", "people")  # all their rows come from the folder that SFUMATO_DATA names
HERE = Path(__file__).parent
RESULTS = HERE / "results"
INTRODUCTION = """# Benchmarks

Every figure here is produced by `make bench` (or `python -m benchmarks NAME`) and kept in `benchmarks/results/`.
Figures of papers are cited as such.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "tables", nargs="*", choices=[*TABLES, []], help="which tables; all whose data are at hand by default"
    )
    parser.add_argument("--quick", action="store_true", help="fewer seeds and rows, to try it out")
    parser.add_argument("--render", action="store_true", help="only write BENCHMARKS.md again")
    arguments = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    at_hand = [name for name in TABLES if data_home() or name not in NEED_DATA]
    for name in [] if arguments.render else arguments.tables or at_hand:
        print(f"== {name}", flush=True)
        measured = importlib.import_module(f"benchmarks.{name}").measure(quick=arguments.quick)
        kept = {"machine": machine(), "quick": arguments.quick, "measured": measured}
        (RESULTS / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")
    (HERE.parent / "BENCHMARKS.md").write_text(rendered())


def machine() -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
    }


def rendered() -> str:
    sections = [INTRODUCTION]
    for name in TABLES:
        path = RESULTS / f"{name}.json"
        if path.exists():
            kept = json.loads(path.read_text())
            facts = ", ".join(f"{key} {value}" for key, value in kept["machine"].items())
            quick = " --quick" if kept["quick"] else ""
            body = importlib.import_module(f"benchmarks.{name}").render(kept["measured"])
            sections.append(f"{body}\n`python -m benchmarks {name}{quick}`; {facts}.\n")
    return "\n".join(sections)


if __name__ == "__main__":
    main()
