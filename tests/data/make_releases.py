"""Write small release files of the current format: `python -m tests.data.make_releases`, once per format.

Files that exist stay: `tests/test_stored_releases.py` reads those of every format that a release of the
library wrote. The tables are simulated.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from sfumato import (
    DPDBSCAN,
    DensityTree,
    DPMoG,
    GridKMeans,
    LloydKMeans,
    MorseClustering,
    SourceTargetClustering,
    Sparse,
)
from sfumato.release import FORMAT_VERSION

FOLDER = Path(__file__).parent / "releases"
OF_ARRAYS = {"epsilon": 5, "bounds": (-1, 1), "random_state": 0}


def array():
    """Three blobs in [-1, 1]^2."""
    rng = np.random.default_rng(0)
    centers = np.array([[-0.6, -0.6], [0.6, -0.5], [0.0, 0.7]])
    return np.clip(centers[rng.integers(3, size=900)] + rng.normal(scale=0.08, size=(900, 2)), -1, 1)


def table():
    """Numbers, categories and dates of people."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.normal(60, 10, 600).round(),
            "ward": rng.choice(["icu", "er"], 600),
            "day": np.datetime64("2026-01-01", "s") + rng.integers(0, 180, 600) * np.timedelta64(86_400, "s"),
            "readmitted": rng.choice(["no", "yes"], 600),
            "patient": np.arange(600) % 250,
        }
    )


def of_table():
    """Estimator for `table`: bounds by name, people, profiles."""
    days = (np.datetime64("2026-01-01"), np.datetime64("2026-07-01"))
    bounds = {"age": (0, 100, "years"), "ward": ["icu", "er"], "day": days}
    people = {"unit": "patient", "max_rows_per_unit": 2, "describe": {"readmitted": ["no", "yes"]}}
    return LloydKMeans(2, rho=2, bounds=bounds, random_state=0, **people)


def sparse_rows():
    """Rows with few active columns."""
    rng = np.random.default_rng(2)
    return csr_array((rng.random((300, 30)) < 0.1).astype(np.float64))


def fitted():
    """A release of every kind of model, by name."""
    rows = array()
    few = {"max_active": 4, "n_components": 16}
    return {
        "grid": GridKMeans(3, max_cells=25, **OF_ARRAYS).fit(rows),
        "lloyd": LloydKMeans(3, delta=1e-6, **OF_ARRAYS).fit(rows),
        "table": of_table().fit(table()),
        "sparse": LloydKMeans(2, epsilon=5, bounds=Sparse(**few), random_state=0).fit(sparse_rows()),
        "mixture": DPMoG(3, **OF_ARRAYS).fit(rows),
        "morse": MorseClustering(n_clusters=2, **OF_ARRAYS).fit(rows),
        "dbscan": DPDBSCAN(radius=0.25, min_samples=100, **OF_ARRAYS).fit(rows),
        "tree": DensityTree(cell=0.2, **OF_ARRAYS).fit(rows),
        "places": SourceTargetClustering(2, **OF_ARRAYS).fit(rows[:40], rows),
    }


if __name__ == "__main__":
    folder = FOLDER / f"format-{FORMAT_VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in fitted().items():
        if not (folder / f"{name}.json").exists():
            model.release_.save(folder / f"{name}.json")
