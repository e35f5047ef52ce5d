"""Settings drawn at random with a public seed, and their tables: rows, columns, clusters, bounds and shapes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import sfumato
from sfumato.datasets import load

PUBLIC_SEED = 2027
ROWS, COLUMNS, NUMBERS, FACTORS = (2_000, 100_000), (2, 200), (2, 50), (1, 16)
MOST_VALUES = 2_000_000  # of a table: more rows are cut
INSIDE = 0.001  # of the values of a real table are beyond each of its bounds, and clipped
REAL = ("letter", "gas_turbine", "fashion_embs", "shuttle", "covertype", "california_housing")
FIRST_COLUMNS = {"covertype": 10}  # the others are categories


class Setting(NamedTuple):
    """What is drawn. The bounds are `factor` times as wide as the rows."""

    number: int
    shape: str
    n: int
    d: int
    k: int
    factor: float


def settings(n_settings: int) -> list[Setting]:
    """The first settings. Each has a seed of its own, so that fewer are the beginning of more."""
    return [drawn(number) for number in range(n_settings)]


def drawn(number: int) -> Setting:
    rng = np.random.default_rng([PUBLIC_SEED, number])
    n, d, factor = (float(np.exp(rng.uniform(*np.log(ends)))) for ends in (ROWS, COLUMNS, FACTORS))
    k = int(rng.integers(NUMBERS[0], NUMBERS[1] + 1))
    shapes = (*SHAPES, *SHAPES, *REAL)  # each simulated one twice as often
    shape = shapes[rng.integers(len(shapes))]
    if shape in REAL:
        n_rows, columns = real(shape).shape
        return Setting(number, shape, int(min(n, n_rows, MOST_VALUES / columns)), columns, k, factor)
    return Setting(number, shape, int(min(n, MOST_VALUES / round(d))), round(d), k, factor)


def real(name: str) -> np.ndarray:
    return load(name)[0][:, : FIRST_COLUMNS.get(name)]


def bounds_of(setting: Setting) -> Any:
    """Public bounds. Those of a real table name its columns."""
    if setting.shape in REAL:
        return {f"x{j}": (-setting.factor, setting.factor) for j in range(setting.d)}
    if setting.shape == "unit vectors":
        return sfumato.Ball(setting.factor)
    return (-setting.factor, setting.factor)


def rows_of(setting: Setting) -> np.ndarray:
    """Rows from -1 to 1, or of length 1."""
    rng = np.random.default_rng([PUBLIC_SEED, setting.number, 1])
    if setting.shape in REAL:
        X = real(setting.shape)
        low, high = np.quantile(X, [INSIDE, 1 - INSIDE], axis=0)
        X = X[rng.permutation(len(X))[: setting.n]]
        return np.clip(2 * (X - low) / np.where(high > low, high - low, 1.0) - 1, -1.0, 1.0)
    X = SHAPES[setting.shape](rng, setting)
    if setting.shape == "unit vectors":
        return X / np.linalg.norm(X, axis=1, keepdims=True)
    return np.clip(X / np.quantile(np.abs(X), 1 - INSIDE), -1.0, 1.0)


def as_table(setting: Setting, X: np.ndarray) -> Any:
    """Rows as a fit takes them."""
    return pa.table({f"x{j}": X[:, j] for j in range(setting.d)}) if setting.shape in REAL else X


def _blobs(rng: np.random.Generator, setting: Setting) -> np.ndarray:
    """Round clusters of equal size, which are apart or touch."""
    return _round(rng, setting, rng.integers(setting.k, size=setting.n))


def _uneven(rng: np.random.Generator, setting: Setting) -> np.ndarray:
    return _round(rng, setting, _ranked(rng, setting))


def _stretched(rng: np.random.Generator, setting: Setting) -> np.ndarray:
    """Clusters that are long in some directions, each in its own."""
    labels = rng.integers(setting.k, size=setting.n)
    lengths = np.arange(1, setting.d + 1) ** -0.7
    X = rng.uniform(-1, 1, (setting.k, setting.d))[labels]
    spread = rng.uniform(0.05, 0.4)
    for j in range(setting.k):
        turn = np.linalg.qr(rng.normal(size=(setting.d, setting.d)))[0]
        mine = labels == j
        X[mine] += spread * (rng.normal(size=(mine.sum(), setting.d)) * lengths) @ turn
    return X


def _unit(rng: np.random.Generator, setting: Setting) -> np.ndarray:
    """Directions with noise, more of it in some columns; lengths are made 1 later."""
    labels = _ranked(rng, setting)
    lengths = rng.permutation(np.arange(1, setting.d + 1) ** -0.3)
    lengths /= np.linalg.norm(lengths)
    centers = rng.normal(size=(setting.k, setting.d)) * lengths
    noise = rng.uniform(0.3, 1.0) * lengths
    return np.asarray(centers[labels] + rng.normal(size=(setting.n, setting.d)) * noise)


def _round(rng: np.random.Generator, setting: Setting, labels: np.ndarray) -> np.ndarray:
    centers = rng.uniform(-1, 1, (setting.k, setting.d))
    return np.asarray(centers[labels] + rng.uniform(0.05, 0.4) * rng.normal(size=(setting.n, setting.d)))


def _ranked(rng: np.random.Generator, setting: Setting) -> np.ndarray:
    """Clusters with sizes like 1 / rank."""
    sizes = 1 / np.arange(1, setting.k + 1)
    return rng.choice(setting.k, setting.n, p=sizes / sizes.sum())


SHAPES: dict[str, Callable[[np.random.Generator, Setting], np.ndarray]] = {
    "blobs": _blobs,
    "stretched": _stretched,
    "unit vectors": _unit,
    "uneven sizes": _uneven,
}
