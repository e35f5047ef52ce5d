"""The places that DensityTree finds in the positions of cabs, and whether they stay the same from run to run."""

from itertools import combinations
from typing import Any

import numpy as np

from benchmarks import pictures
from benchmarks.centre_data import markdown
from benchmarks.density_data import CABS_BOX, cabs
from sfumato import DensityTree, plot
from sfumato.datasets import data_home

SEEDS, QUICK_SEEDS = 10, 2
N_TOP = 20
NOISELESS = 1e4
ROWS_PER_CAB = 500
# Names of what lies there, for readers; positions are longitude and latitude.
LANDMARKS = {
    "San Francisco International Airport": (-122.389, 37.617),
    "Union Square": (-122.4075, 37.788),
    "Caltrain station, 4th and King": (-122.3946, 37.7765),
    "Fisherman's Wharf": (-122.4177, 37.808),
    "North Beach": (-122.41, 37.8005),
    "Marina": (-122.437, 37.8005),
    "Bay Bridge and Treasure Island": (-122.366, 37.815),
    "Yellow Cab's yard": (-122.3985, 37.7515),
    "Japantown": (-122.43, 37.785),
    "Castro and Mission": (-122.428, 37.763),
    "US-101 at Brisbane": (-122.397, 37.675),
    "US-101 at Bayshore": (-122.402, 37.723),
    "South of Market": (-122.4, 37.773),
    "Embarcadero": (-122.394, 37.7935),
    "Golden Gate Park": (-122.48, 37.769),
    "Daly City": (-122.468, 37.69),
}
NEAR = 0.012  # degrees


def measure(*, quick: bool) -> dict[str, Any]:
    X = cabs()
    exact = fitted(X, NOISELESS, 0)
    runs = [fitted(X, 1.0, seed) for seed in range(QUICK_SEEDS if quick else SEEDS)]
    tops = [top(model) for model in runs]
    people = by_cab(QUICK_SEEDS if quick else 5)
    _draw(runs[0])
    between = [overlap(one, other) for one, other in combinations(tops, 2)]
    return {
        "rows": len(X),
        "spans": [model.n_clusters_ for model in runs],
        "between": [float(np.mean(between)), float(np.min(between))],
        "exact": [float(np.mean([overlap(cells, top(exact)) for cells in tops]))],
        "cabs": people,
        "top": [described(span) for span in runs[0].spans_[:N_TOP]],
    }


def fitted(X: Any, epsilon: float, seed: int, **options: Any) -> Any:
    options = {"bounds": CABS_BOX} | options
    return DensityTree(epsilon=epsilon, metric="geo", random_state=seed, **options).fit(X)


def by_cab(n_seeds: int) -> dict[str, Any]:
    """The same for whole cabs, with at most so many rows of each."""
    (west, south), (east, north) = CABS_BOX
    options = {
        "bounds": {"lon": (west, east), "lat": (south, north)},
        "unit": "cab",
        "max_rows_per_unit": ROWS_PER_CAB,
    }
    path = f"{data_home()}/cabs.parquet"
    tops = [top(fitted(path, 1.0, seed, **options)) for seed in range(n_seeds)]
    between = [overlap(one, other) for one, other in combinations(tops, 2)]
    return {"spans": [len(cells) for cells in tops], "between": float(np.mean(between))}


def top(model: Any) -> list[np.ndarray]:
    """Points of the largest spans, on a fixed lattice, so that runs with other grids compare."""
    (west, south), (east, north) = CABS_BOX
    lattice = np.stack(
        np.meshgrid(np.linspace(west, east, 600), np.linspace(south, north, 600)), axis=-1
    ).reshape(-1, 2)
    labels = model.release_.predict(lattice) if not model.release_.columns else _named(model, lattice)
    return [np.flatnonzero(labels == span.label) for span in model.spans_[:N_TOP]]


def _named(model: Any, lattice: np.ndarray) -> np.ndarray:
    import pandas as pd

    return np.asarray(model.release_.predict(pd.DataFrame(lattice, columns=list(model.release_.columns))))


def overlap(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    """Share of the places of one list that share at least half of their joint area with a place of the other."""
    found = [
        max((len(np.intersect1d(a, b)) / max(len(np.union1d(a, b)), 1) for b in other), default=0.0)
        for a in one
    ]
    return float(np.mean(np.array(found) >= 0.5)) if found else 0.0


def described(span: Any) -> dict[str, Any]:
    names = [
        name
        for name, at in LANDMARKS.items()
        if span.grid.index([at])[0] in span.cells or np.hypot(*(span.centroid - at)) < NEAR
    ]
    km2 = span.volume * 111.2 * 111.2 * np.cos(np.radians(37.7))
    return {"count": span.count, "km2": float(km2), "at": span.centroid.round(4).tolist(), "near": names[:4]}


def _draw(model: Any) -> None:
    ax = plot.spans(model)
    ax.figure.set_size_inches(8, 8)
    pictures.PICTURES.mkdir(parents=True, exist_ok=True)
    ax.figure.savefig(pictures.PICTURES / "places.png", dpi=90, bbox_inches="tight")


def render(measured: dict[str, Any]) -> str:
    head = ["rank", "rows", "km²", "centre", "in it or near"]
    lines = [
        [
            str(i),
            f"{one['count']:,.0f}",
            f"{one['km2']:.2f}",
            f"{one['at'][1]:.3f}, {one['at'][0]:.3f}",
            ", ".join(one["near"]),
        ]
        for i, one in enumerate(measured["top"], 1)
    ]
    mean, least = measured["between"]
    return "\n".join(
        [
            "## Places of the cabs of San Francisco",
            "",
            f'`DensityTree` with default settings and `metric="geo"` on {measured["rows"]:,} positions, epsilon 1. Of the {N_TOP} '
            f"largest places, the share that share at least half of their joint area with one of another run: {mean:.2f} in the mean over "
            f"pairs of seeds, at least {least:.2f}; with the run without noise {measured['exact'][0]:.2f}. {np.mean(measured['spans']):.0f} "
            f"places in all. With the cab as the unit, at most {ROWS_PER_CAB} rows each: "
            f"{np.mean(measured['cabs']['spans']):.0f} of {N_TOP} places, {measured['cabs']['between']:.2f} between seeds.",
            "",
            *markdown(head, lines),
            "",
            "![Places of the cabs](docs/pictures/places.png)",
            "",
        ]
    )
