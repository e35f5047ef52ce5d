"""kmodes, and synthetic tables by MST and AIM, in an environment of their own: their versions of NumPy are older than ours."""

import json
import os
import subprocess
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.baselines import remembered
from benchmarks.prototypes import Mixed

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parent / ".venv-mixed"
PYTHON = ENVIRONMENT / "bin" / "python"
PACKAGES = ("kmodes==0.12.2", "dpmm==0.1.9")


def prepare() -> None:
    """Make the environment, once, before several processes want it."""
    if not PYTHON.exists():
        venv.create(ENVIRONMENT, with_pip=True)
        subprocess.check_call([str(PYTHON), "-m", "pip", "install", "-q", *PACKAGES])


@remembered
def peer(rows: Mixed, **job: Any) -> tuple[float, Mixed]:
    """What a peer makes of rows, prototypes or a synthetic table, and its seconds. See `mixed_worker` for the jobs."""
    prepare()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "given.npz", Path(folder) / "made.npz"
        np.savez(given, numbers=rows.numbers, codes=rows.codes, n_levels=np.array(rows.n_levels))
        subprocess.run(
            [str(PYTHON), str(HERE / "mixed_worker.py"), str(given), str(made), json.dumps(job)],
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with np.load(made) as found:
            made_rows = Mixed(found["numbers"], found["codes"], rows.n_levels)
    return time.perf_counter() - start, made_rows
