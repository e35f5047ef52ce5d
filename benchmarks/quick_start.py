"""CPU seconds of a first use: each in a process of its own, and compiled kernels in an empty folder."""

import compileall
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

TABLE = "from benchmarks.quick_start import blobs; import sfumato; X = blobs({n}, {k}); "
FIRST = {
    "`import sfumato`": "import sfumato",
    "`sfumato --help`": "import sys; from sfumato.cli import main; sys.argv[1:] = ['--help']; main()",
    "`sfumato demo`, 300,000 x 2": "import sys; from sfumato.cli import main; sys.argv[1:] = ['demo']; main()",
    "`GridKMeans(3)`, 50,000 x 2": TABLE.format(n=50_000, k=3)
    + "sfumato.GridKMeans(3, bounds=(0, 1)).fit(X)",
    "`DPM()`, 50,000 x 2": TABLE.format(n=50_000, k=3) + "sfumato.DPM(bounds=(0, 1)).fit(X)",
    "`PrivateKMeans(3)`, 50,000 x 2": TABLE.format(n=50_000, k=3)
    + "sfumato.PrivateKMeans(3, bounds=(0, 1)).fit(X)",
}
SIZES, CLUSTERS, N_REPEATS = (2_000, 50_000, 1_000_000), (3, 8), 5
BUDGETS = ((0.1, 1e-9), (1, 1e-6), (4, 1e-5))
METHODS = ("GridKMeans", "LloydKMeans", "CoresetKMeans", "PrivateKMeans", "DPM")


def measure(*, quick: bool) -> dict[str, Any]:
    n_first, n_sizes, n_methods = (2, 1, 1) if quick else (len(FIRST), len(SIZES), len(METHODS))
    # Who installs a package gets its bytecode, too. Processes that may not write it would make it each time.
    compileall.compile_dir(str(find_spec("sfumato").submodule_search_locations[0]), quiet=1)
    first = {name: cpu_seconds(code) for name, code in list(FIRST.items())[:n_first]}
    print(first, flush=True)
    warm = [in_process(f"fits({n}, {k})") for n in SIZES[:n_sizes] for k in CLUSTERS]
    plans = [in_process(f"plans('{method}')") for method in METHODS[:n_methods]]
    return {"first": first, "warm": warm, "plans": plans}


def cpu_seconds(code: str) -> dict[str, float]:
    """CPU seconds of a process with nothing compiled, and of the next one, which finds what the first compiled."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        taken = []
        for run in ("first", "later"):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            (place := Path(folder, run)).mkdir()
            path = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
            subprocess.run(
                [sys.executable, "-W", "ignore", "-c", code],
                env=environment | {"PYTHONPATH": path},
                cwd=place,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return dict(zip(("first", "later"), taken, strict=True))


def in_process(call: str) -> Any:
    code = f"import json; from benchmarks import quick_start; print(json.dumps(quick_start.{call}))"
    found = json.loads(subprocess.check_output([sys.executable, "-W", "ignore", "-c", code], text=True))
    print(found, flush=True)
    return found


def fits(n: int, k: int) -> dict[str, Any]:
    """CPU seconds of a fit when all is compiled, and of k-means with ten starts."""
    from sklearn.cluster import KMeans

    from sfumato import GridKMeans

    X = blobs(n, k)
    GridKMeans(k, bounds=(0, 1)).fit(X)
    ours = median(lambda: GridKMeans(k, bounds=(0, 1)).fit(X))
    return {"rows": n, "k": k, "ours": ours, "KMeans": median(lambda: KMeans(k, n_init=10).fit(X))}


def plans(method: str) -> dict[str, Any]:
    """CPU seconds of calibrating budgets that were not met before; the first includes imports of SciPy."""
    import sfumato

    class_ = getattr(sfumato, method)
    class_(epsilon=2, delta=1e-7, bounds=(0, 1)).plan(n_features=2)
    taken = {}
    for epsilon, delta in BUDGETS:
        start = time.process_time()
        class_(epsilon=epsilon, delta=delta, bounds=(0, 1)).plan(n_features=2)
        taken[f"{epsilon:g}, {delta:g}"] = time.process_time() - start
    return {"method": method, "budgets": taken}


def median(call: Any) -> float:
    taken = []
    for _ in range(N_REPEATS):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return float(np.median(taken))


def blobs(n: int, k: int) -> np.ndarray:
    """Rows around k centres in the unit square."""
    rng = np.random.default_rng(k)
    centers = rng.uniform(0.1, 0.9, (k, 2))
    return np.clip(centers[rng.integers(k, size=n)] + 0.03 * rng.standard_normal((n, 2)), 0, 1)


def render(measured: dict[str, Any]) -> str:
    from benchmarks.centre_data import (
        markdown,
    )  # would import scikit-learn and more into the processes measured

    first = [[name, f"{t['first']:.2f}", f"{t['later']:.2f}"] for name, t in measured["first"].items()]
    warm = [
        [f"{row['rows']:,}", str(row["k"]), f"{row['ours']:.3f}", f"{row['KMeans']:.3f}"]
        for row in measured["warm"]
    ]
    plans = [[row["method"], *(f"{t:.2f}" for t in row["budgets"].values())] for row in measured["plans"]]
    return "\n".join(
        [
            "## Quick start: first use, small tables, new budgets",
            "",
            "CPU seconds of whole processes, imports included. `first`: nothing is compiled yet (an empty `NUMBA_CACHE_DIR`). "
            "`later`: the next process finds the compiled kernels.",
            "",
            *markdown(["what", "first", "later"], first),
            "",
            f"A fit of rows in 2 columns when all is compiled and imported, median of {N_REPEATS}: CPU seconds of all threads.",
            "",
            *markdown(["rows", "k", "`GridKMeans`", "`KMeans`, ten starts"], warm),
            "",
            "CPU seconds of calibrating a plan for 2 columns to a new (epsilon, delta).",
            "",
            *markdown(["method", *measured["plans"][0]["budgets"]], plans),
            "",
        ]
    )
