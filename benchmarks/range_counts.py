"""Rows in boxes of a map: from DensityTree's release, from one grid, and from a private quadtree."""

from typing import Any

import numpy as np

from benchmarks.centre_data import markdown
from benchmarks.density_data import cabs
from sfumato import DensityTree
from sfumato.datasets import data_home, load

SEEDS, QUICK_SEEDS = 10, 2
N_BOXES = 200
SHARES = (1e-4, 1e-3, 1e-2, 1e-1)  # of the area of the map
EPSILONS = (1.0, 0.1)
MAPS = ("nyc_crashes", "uk_accidents", "cabs")
N_CABS = 1_000_000
LEAST = 1e-3  # share of the rows below which errors are not taken as relative to the count
HEIGHT, FANOUT = 8, 4  # of the quadtree
METHODS = ("DensityTree", "one grid", "quadtree")


def measure(*, quick: bool) -> dict[str, Any]:
    rows = []
    maps = MAPS[:1] if quick else MAPS
    for name in maps if data_home() else ():
        X, low, high = rows_of(name)
        boxes = {share: boxes_of(X, low, high, share) for share in SHARES}
        truths = {share: np.array([inside(X, *box) for box in found]) for share, found in boxes.items()}
        for epsilon in EPSILONS:
            errors: dict[tuple[str, float], list[float]] = {}
            for seed in range(QUICK_SEEDS if quick else SEEDS):
                for method, answer in answers(X, low, high, epsilon, seed).items():
                    for share, found in boxes.items():
                        off = np.abs([answer(*box) for box in found] - truths[share])
                        relative = off / np.maximum(truths[share], LEAST * len(X))
                        errors.setdefault((method, share), []).append(float(relative.mean()))
            rows += [
                {"map": name, "rows": len(X), "epsilon": epsilon, "method": m, "share": s}
                | {"error": [float(np.mean(e)), float(np.std(e, ddof=1))]}
                for (m, s), e in errors.items()
            ]
            print(name, epsilon, flush=True)
    return {"rows": rows}


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, and a box around most of them, in steps of a tenth of a degree."""
    X = cabs(N_CABS) if name == "cabs" else load(name)[0][:, :2]
    low, high = np.quantile(X, 0.001, axis=0), np.quantile(X, 0.999, axis=0)
    low, high = np.floor(10 * low) / 10, np.ceil(10 * high) / 10
    return X[((low <= X) & (high > X)).all(axis=1)], low, high


def boxes_of(
    X: np.ndarray, low: np.ndarray, high: np.ndarray, share: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Boxes of one size around rows, as a person asks: not where nothing is."""
    rng, side = np.random.default_rng(0), np.sqrt(share) * (high - low)
    corners = X[rng.integers(len(X), size=N_BOXES)] - side * rng.random((N_BOXES, 2))
    corners = np.clip(corners, low, high - side)
    return [(corner, corner + side) for corner in corners]


def inside(X: np.ndarray, low: np.ndarray, high: np.ndarray) -> int:
    return int(((low <= X) & (high > X)).all(axis=1).sum())


def answers(X: np.ndarray, low: np.ndarray, high: np.ndarray, epsilon: float, seed: int) -> dict[str, Any]:
    """For each method, what answers a box."""
    tree = DensityTree(
        epsilon=epsilon, bounds=(low.tolist(), high.tolist()), random_state=seed, scale=None
    ).fit(X)
    rng = np.random.default_rng(seed)
    side = max(10, round(np.sqrt(len(X) * epsilon / 10)))  # Qardaji, Yang, Li 2013: uniform grid
    raw = counts_on(X, low, high, side)
    grid = raw + rng.laplace(0, 1 / epsilon, raw.shape)
    leaves = quadtree(counts_on(X, low, high, 2**HEIGHT), epsilon, rng)
    return {
        "DensityTree": lambda a, b: tree.histogram_.range_count(a, b)[0],
        "one grid": lambda a, b: summed(grid, low, high, a, b),
        "quadtree": lambda a, b: summed(leaves, low, high, a, b),
    }


def counts_on(X: np.ndarray, low: np.ndarray, high: np.ndarray, side: int) -> np.ndarray:
    return np.histogram2d(*X.T, bins=side, range=list(zip(low, high, strict=True)))[0]


def quadtree(leaves: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Consistent leaves of a noisy quadtree, with geometric budgets (Cormode et al. 2012) and least squares (Hay et al. 2010)."""
    shares = 2.0 ** (np.arange(HEIGHT + 1) / 3)
    scales = 1 / (epsilon * shares / shares.sum())
    raw = [
        leaves.reshape(2**h, 2 ** (HEIGHT - h), 2**h, 2 ** (HEIGHT - h)).sum((1, 3))
        for h in range(HEIGHT + 1)
    ]
    noisy = [counts + rng.laplace(0, scale, counts.shape) for counts, scale in zip(raw, scales, strict=True)]
    up, variances = noisy[HEIGHT], [0.0] * (HEIGHT + 1)
    variances[HEIGHT], ups = 2 * scales[HEIGHT] ** 2, [noisy[HEIGHT]]
    for h in range(HEIGHT - 1, -1, -1):  # from the leaves: each node with its children
        below, own = FANOUT * variances[h + 1], 2 * scales[h] ** 2
        weight = below / (own + below)
        up = weight * noisy[h] + (1 - weight) * up.reshape(2**h, 2, 2**h, 2).sum((1, 3))
        variances[h] = own * below / (own + below)
        ups.append(up)
    ups.reverse()
    for h in range(HEIGHT):  # from the root: children add up to their parent
        rest = (ups[h] - ups[h + 1].reshape(2**h, 2, 2**h, 2).sum((1, 3))) / FANOUT
        ups[h + 1] = ups[h + 1] + np.repeat(np.repeat(rest, 2, 0), 2, 1)
    return ups[HEIGHT]


def summed(counts: np.ndarray, low: np.ndarray, high: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Rows in a box if those of each cell are spread evenly."""
    shares = []
    for j in range(2):
        edges = np.linspace(low[j], high[j], counts.shape[j] + 1)
        shares.append(
            ((np.minimum(edges[1:], b[j]) - np.maximum(edges[:-1], a[j])) / np.diff(edges)).clip(0, 1)
        )
    return float(shares[0] @ counts @ shares[1])


def render(measured: dict[str, Any]) -> str:
    cells = {(r["map"], r["epsilon"], r["method"], r["share"]): r for r in measured["rows"]}
    places = list(dict.fromkeys((r["map"], r["rows"], r["epsilon"]) for r in measured["rows"]))
    head = ["map", "rows", "epsilon", "method", *(f"{share:g} of the area" for share in SHARES)]
    lines = []
    for name, n_rows, epsilon in places:
        for method in METHODS:
            found = [cells[name, epsilon, method, share]["error"] for share in SHARES]
            best = [
                min(cells[name, epsilon, other, share]["error"][0] for other in METHODS) for share in SHARES
            ]
            shown = [
                f"**{mean:.3f}** ± {std:.3f}" if mean <= least else f"{mean:.3f} ± {std:.3f}"
                for (mean, std), least in zip(found, best, strict=True)
            ]
            lines.append([name, f"{n_rows:,}", f"{epsilon:g}", method, *shown])
    return "\n".join(
        [
            "## Rows in boxes of a map",
            "",
            f"Mean relative error of the rows in {N_BOXES} boxes around rows, relative to at least {LEAST:.1%} of all rows; mean ± "
            "standard deviation over seeds, which draw the noise. `DensityTree`: `histogram_.range_count`, from the counts that "
            "its clusters come from. One grid: as Qardaji, Yang and Li (2013) size it. Quadtree: eight levels with geometric "
            "budgets and least squares (Cormode et al. 2012). Grid and quadtree have float noise, drawn here; they are no part "
            "of the library.",
            "",
            *markdown(head, lines),
            "",
        ]
    )
