"""k-prototypes: numbers in units of their public bounds and levels as codes, the cost of prototypes, and a fast batch version.

The cost of a row is its squared distance in the numbers plus GAMMA for every level that differs (Huang 1998).
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.table_bounds import Bounds

GAMMA = 1.0  # two different levels are as far apart as the two ends of a number
OTHER = "other"
MOST_STEPS = 100
CHUNK = 16_384  # rows at once


@dataclass(frozen=True)
class Mixed:
    """Rows, or prototypes: numbers in units of the bounds, and codes of levels, the last of which is "other"."""

    numbers: np.ndarray
    codes: np.ndarray
    n_levels: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, chosen: np.ndarray) -> "Mixed":
        return Mixed(self.numbers[chosen], self.codes[chosen], self.n_levels)


def number_columns(bounds: Bounds) -> list[str]:
    return [name for name, declared in bounds.items() if isinstance(declared, tuple)]


def level_columns(bounds: Bounds) -> list[str]:
    return [name for name, declared in bounds.items() if isinstance(declared, list)]


def mixed_rows(table: pa.Table, bounds: Bounds) -> Mixed:
    """Rows of a table: numbers clipped, levels that were not declared and missing ones as "other"."""
    numbers = [scaled(table[name], bounds[name]) for name in number_columns(bounds)]
    codes = []
    for name in level_columns(bounds):
        places = pc.index_in(table[name], value_set=pa.array(bounds[name]))
        codes.append(pc.fill_null(places, len(bounds[name])).to_numpy())
    n_levels = tuple(len(bounds[name]) + 1 for name in level_columns(bounds))
    shape = (table.num_rows, len(n_levels))
    return Mixed(np.column_stack(numbers), np.column_stack(codes).astype(np.int64).reshape(shape), n_levels)


def scaled(column: pa.ChunkedArray, bounds: tuple[float, float]) -> np.ndarray:
    low, high = bounds
    return np.clip((column.to_numpy().astype(np.float64) - low) / (high - low), 0.0, 1.0)


def costs(rows: Mixed, prototypes: Mixed) -> np.ndarray:
    """Cost of each row with each prototype, rows x prototypes."""
    squares = ((rows.numbers[:, None, :] - prototypes.numbers[None]) ** 2).sum(axis=2)
    return squares + GAMMA * (rows.codes[:, None, :] != prototypes.codes[None]).sum(axis=2)


def nearest(rows: Mixed, prototypes: Mixed) -> tuple[np.ndarray, float]:
    """The prototype of least cost for each row, and the sum of these costs."""
    labels, total = np.empty(len(rows), dtype=np.int64), 0.0
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        found = costs(rows[part], prototypes)
        labels[part] = found.argmin(axis=1)
        total += float(found.min(axis=1).sum())
    return labels, total


def prototypes_of(rows: Mixed, labels: np.ndarray, before: Mixed) -> Mixed:
    """Means and most frequent levels of each cluster; an empty one stays where it was."""
    k = len(before)
    sizes = np.bincount(labels, minlength=k)
    numbers, codes = before.numbers.copy(), before.codes.copy()
    for j in range(numbers.shape[1]):
        sums = np.bincount(labels, weights=rows.numbers[:, j], minlength=k)
        numbers[sizes > 0, j] = sums[sizes > 0] / sizes[sizes > 0]
    for j, n in enumerate(rows.n_levels):
        counts = np.bincount(labels * n + rows.codes[:, j], minlength=k * n).reshape(k, n)
        codes[sizes > 0, j] = counts[sizes > 0].argmax(axis=1)
    return Mixed(numbers, codes, rows.n_levels)


def descend(rows: Mixed, start: Mixed) -> tuple[Mixed, float]:
    """Assign and update until the cost no longer falls."""
    prototypes, (labels, cost) = start, nearest(rows, start)
    for _ in range(MOST_STEPS):
        moved = prototypes_of(rows, labels, prototypes)
        labels, lower = nearest(rows, moved)
        if lower >= cost:
            break
        prototypes, cost = moved, lower
    return prototypes, cost


def seeded(rows: Mixed, k: int, rng: np.random.Generator) -> Mixed:
    """k rows, each drawn in proportion to its cost with those drawn before (as k-means++)."""
    chosen = [int(rng.integers(len(rows)))]
    least = np.full(len(rows), np.inf)
    for _ in range(k - 1):
        least = np.minimum(least, costs(rows, rows[np.array(chosen[-1:])])[:, 0])
        chosen.append(int(rng.choice(len(rows), p=least / least.sum())))
    return rows[np.array(chosen)]


def best_of(rows: Mixed, k: int, n_starts: int, seed: int) -> tuple[Mixed, float]:
    """Batch k-prototypes: the best of several starts."""
    rng = np.random.default_rng(seed)
    return min((descend(rows, seeded(rows, k, rng)) for _ in range(n_starts)), key=lambda found: found[1])
