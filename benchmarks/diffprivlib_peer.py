"""k-means of diffprivlib as a peer, in an environment of its own: it does not import with current scikit-learn."""

import json
import os
import subprocess
import tempfile
import venv
from functools import cache
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parent / ".venv-diffprivlib"
PYTHON = ENVIRONMENT / "bin" / "python"
PACKAGES = ("diffprivlib==0.6.6", "scikit-learn==1.5.2")


def prepare() -> None:
    """Make the environment, once, before several processes want it."""
    if not PYTHON.exists():
        venv.create(ENVIRONMENT, with_pip=True)
        subprocess.check_call([str(PYTHON), "-m", "pip", "install", "-q", *PACKAGES])


def peer_centers(
    X: np.ndarray, n_clusters: int, *, epsilon: float, bounds: tuple[float, float], seed: int
) -> np.ndarray:
    worker = _worker()
    assert worker.stdin is not None
    assert worker.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npy"
        np.save(rows, X)
        job = {
            "rows": str(rows),
            "n_clusters": n_clusters,
            "epsilon": epsilon,
            "bounds": bounds,
            "seed": seed,
        }
        worker.stdin.write(json.dumps(job) + "\n")
        worker.stdin.flush()
        answer = worker.stdout.readline()
    if not answer:
        raise RuntimeError(f"diffprivlib failed on {n_clusters} clusters, epsilon {epsilon}, seed {seed}")
    return np.array(json.loads(answer))


@cache
def _worker() -> "subprocess.Popen[str]":
    """One for each process: it ends when its input closes, with the process."""
    prepare()
    return subprocess.Popen(
        [str(PYTHON), str(HERE / "diffprivlib_worker.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
