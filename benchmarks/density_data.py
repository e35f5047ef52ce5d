"""What the benchmarks of the density methods share: data sets with their bounds, and a fit whose warning is expected."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.preprocessing import StandardScaler

from sfumato.datasets import data_home, load
from sfumato.errors import GuaranteeWarning

Bounds = tuple[list[float], list[float]]
Labelled = tuple[np.ndarray, np.ndarray]

N_ROWS, SEED = 2_000, 30  # of the scikit-learn data sets in the DP-DBSCAN paper
MOONS_BOX: Bounds = ([-1.5, -1.0], [2.5, 1.5])
CIRCLES_BOX: Bounds = ([-1.5, -1.5], [1.5, 1.5])
BARS_BOX: Bounds = ([0.0, 0.0], [10.0, 10.5])
SHAPES_BOX: Bounds = ([0.0, 0.0], [12.0, 6.0])
CORNERS_BOX: Bounds = ([-5.0, -5.0], [5.0, 5.0])
CABS_BOX: Bounds = ([-122.6, 37.55], [-122.3, 37.85])


@dataclass(frozen=True)
class DataSet:
    """Rows with their classes, class -1 for noise, and public bounds a little wider than the rows.

    Parameters
    ----------
    name, title : str
    bounds : (list of float, list of float)
    make : callable, optional
        Returns rows and classes, the same at every call. None: read from the data folder under `name`.
    radius, min_samples : float, int
        The setting of DBSCAN in Table 1 of the DP-DBSCAN paper, for the data sets there.
    is_new_kind : bool
        Whether no data set of its kind was looked at when the rules were set, see docs/notes/density.md.
    """

    name: str
    title: str
    bounds: Bounds
    make: Callable[[], Labelled] | None = None
    radius: float = 0.0
    min_samples: int = 0
    is_new_kind: bool = False


def circles() -> Labelled:
    return standardised(*make_circles(N_ROWS, factor=0.5, noise=0.05, random_state=SEED))


def moons() -> Labelled:
    return standardised(*make_moons(N_ROWS, noise=0.05, random_state=SEED))


def blobs() -> Labelled:
    centers, spreads = [(1, 1), (-1, -1), (1.5, -1.5)], [0.4, 0.1, 0.75]
    return standardised(*make_blobs(N_ROWS, centers=centers, cluster_std=spreads, random_state=SEED))


def spirals() -> Labelled:
    """Two arms of one and a half turns, 3,000 rows each."""
    rng = np.random.default_rng(2)
    classes = np.repeat([0, 1], 3_000)
    turn = 3 * np.pi * np.sqrt(rng.uniform(0.05, 1.0, 6_000))
    angle = turn + np.pi * classes
    X = np.stack([turn * np.cos(angle), turn * np.sin(angle)], axis=1)
    return X + rng.normal(0.0, 0.3, X.shape), classes


def bars() -> Labelled:
    """Four bars of one size, of 2,400, 1,600, 800 and 400 rows, and 700 rows of noise."""
    rng, sizes = np.random.default_rng(3), (2_400, 1_600, 800, 400)
    X = [rng.uniform((1.0, 1 + 2.5 * i), (9.0, 2 + 2.5 * i), (size, 2)) for i, size in enumerate(sizes)]
    return with_noise(np.concatenate(X), np.repeat(range(4), sizes), 700, BARS_BOX)


def sheared_blobs() -> Labelled:
    """Three blobs of 1,500 rows each, stretched along diagonals."""
    X, classes = make_blobs(4_500, random_state=170)
    return X @ np.array([[0.6, -0.6], [-0.4, 0.8]]), classes


def noisy_moons() -> Labelled:
    return with_noise(*make_moons(3_500, noise=0.05, random_state=1), 500, MOONS_BOX)


def noisy_circles() -> Labelled:
    return with_noise(*make_circles(3_500, factor=0.5, noise=0.05, random_state=1), 500, CIRCLES_BOX)


def waves() -> Labelled:
    """Three sine waves one above the other, 2,000 rows each."""
    rng, classes = np.random.default_rng(4), np.repeat(range(3), 2_000)
    along = rng.uniform(0.0, 10.0, len(classes))
    X = np.stack([along, np.sin(along) + 1.5 * classes], axis=1)
    return X + rng.normal(0.0, 0.1, X.shape), classes


def shapes() -> Labelled:
    """A disc, a ring and a cross, 2,000 rows each, and 600 rows of noise."""
    rng, n = np.random.default_rng(5), 2_000
    turn = rng.uniform(0.0, 2 * np.pi, (2, n))
    distance = np.stack([1.5 * np.sqrt(rng.random(n)), rng.uniform(1.3, 1.7, n)])
    disc, ring = np.moveaxis(distance * (np.cos(turn), np.sin(turn)), 0, 2)
    arms = rng.uniform((-1.5, -0.25), (1.5, 0.25), (n, 2))
    cross = np.where(rng.random((n, 1)) < 0.5, arms, arms[:, ::-1])
    X = np.concatenate([disc, ring, cross]) + np.repeat([(2, 3), (6, 3), (10, 3)], n, axis=0)
    return with_noise(X, np.repeat(range(3), n), 600, SHAPES_BOX)


def links() -> Labelled:
    """Two linked rings in three columns, 5,000 rows each."""
    rng, classes = np.random.default_rng(6), np.repeat(range(2), 5_000)
    turn = rng.uniform(0.0, 2 * np.pi, len(classes))
    across, none = np.sin(turn), np.zeros(len(turn))
    lying = np.stack([np.cos(turn), across, none], axis=1)
    standing = np.stack([1 + np.cos(turn), none, across], axis=1)
    X = np.where(classes[:, None] == 0, lying, standing)
    return X + rng.normal(0.0, 0.08, X.shape), classes


def corners() -> Labelled:
    """Four L-shaped clusters of 1,000 rows each around a disc of 1,500, and 500 rows of noise."""
    rng, n = np.random.default_rng(7), 1_000
    strip = rng.uniform((0.0, 0.0), (3.0, 0.6), (4, n, 2))
    bent = np.where(rng.random((4, n, 1)) < 0.5, strip, strip[..., ::-1])
    signs = np.array([(1, 1), (1, -1), (-1, 1), (-1, -1)])[:, None]
    turn, distance = rng.uniform(0.0, 2 * np.pi, 1_500), 0.9 * np.sqrt(rng.random(1_500))
    disc = np.stack([distance * np.cos(turn), distance * np.sin(turn)], axis=1)
    X = np.concatenate([*(signs * (bent - 4.2)), disc])
    return with_noise(X, np.repeat(range(5), (n, n, n, n, 1_500)), 500, CORNERS_BOX)


def arches() -> Labelled:
    """Three half rings one inside the other, of 3,000, 2,000 and 1,000 rows."""
    rng, sizes = np.random.default_rng(8), (3_000, 2_000, 1_000)
    classes = np.repeat(range(3), sizes)
    turn = rng.uniform(0.0, np.pi, len(classes))
    distance = np.array([3.5, 2.25, 1.0])[classes] + rng.normal(0.0, 0.12, len(classes))
    return np.stack([distance * np.cos(turn), distance * np.sin(turn)], axis=1), classes


def standardised(X: np.ndarray, classes: np.ndarray) -> Labelled:
    return StandardScaler().fit_transform(X), classes


def with_noise(X: np.ndarray, classes: np.ndarray, n_noise: int, box: Bounds) -> Labelled:
    """Append noise spread evenly over a box."""
    noise = np.random.default_rng(1).uniform(*box, (n_noise, 2))
    return np.concatenate([X, noise]), np.append(classes, np.full(n_noise, -1))


PAPER_SETS = {
    data.name: data
    for data in (
        DataSet("circles", "circles", ([-2.2, -2.2], [2.2, 2.2]), circles, 0.2, 10),
        DataSet("moons", "moons", ([-2.0, -2.0], [2.0, 2.0]), moons, 0.2, 7),
        DataSet("blobs", "blobs", ([-2.0, -3.0], [3.0, 3.0]), blobs, 0.2, 7),
        DataSet("cluto_t4_8k", "Cluto-t4", ([0.0, 0.0], [650.0, 350.0]), None, 9.0, 11),
        DataSet("cluto_t5_8k", "Cluto-t5", ([0.0, 0.0], [820.0, 170.0]), None, 9.0, 20),
        DataSet("cluto_t7_10k", "Cluto-t7", ([-10.0, 0.0], [720.0, 500.0]), None, 12.0, 20),
    )
}
OTHER_SETS = {
    data.name: data
    for data in (
        DataSet("s_set1", "S-set 1", ([0.0, 0.0], [1e6, 1e6])),
        DataSet("s_set2", "S-set 2", ([0.0, 0.0], [1e6, 1e6])),
        DataSet("r15", "R15", ([3.0, 3.0], [18.0, 18.0])),
        DataSet("spirals", "two spirals", ([-11.0, -10.0], [11.0, 10.0]), spirals),
        DataSet("bars", "bars of unequal density in noise", BARS_BOX, bars),
        DataSet("sheared_blobs", "sheared blobs", ([-7.0, -6.0], [5.0, 8.0]), sheared_blobs),
        DataSet("noisy_moons", "moons in noise", MOONS_BOX, noisy_moons),
        DataSet("noisy_circles", "circles in noise", CIRCLES_BOX, noisy_circles),
        DataSet("waves", "three waves", ([-1.0, -2.0], [11.0, 5.0]), waves),
        DataSet("shapes", "disc, ring and cross in noise", SHAPES_BOX, shapes),
        DataSet("links", "two links, 3 columns", ([-2.0] * 3, [3.0, 2.0, 2.0]), links),
        DataSet("corners", "four corners and a disc in noise", CORNERS_BOX, corners, is_new_kind=True),
        DataSet("arches", "three nested arches", ([-4.5, -1.0], [4.5, 4.5]), arches, is_new_kind=True),
    )
}
DATA_SETS = PAPER_SETS | OTHER_SETS


def at_hand(data_sets: dict[str, DataSet]) -> list[str]:
    """Names of the data sets at hand: those of the folder only if SFUMATO_DATA names it."""
    return [name for name, data in data_sets.items() if data.make or data_home()]


@lru_cache(maxsize=1)
def rows_of(name: str) -> Labelled:
    data = DATA_SETS[name]
    return data.make() if data.make else load(name)


def cabs(n_rows: int | None = None) -> np.ndarray:
    """Positions of the cabs of San Francisco inside the box, in the order of the file: all, or the first."""
    X, _ = load("cabs")
    np.round(X, 5, out=X)
    low, high = CABS_BOX
    return X[((low <= X) & (high >= X)).all(axis=1)][:n_rows]


def accelerations(n_rows: int) -> np.ndarray:
    """Rows of the three accelerations of a watch, drawn without replacement."""
    X, _ = load("watch_accel")
    return X[np.random.default_rng(0).permutation(len(X))[:n_rows]]


def fit(model: Any, X: np.ndarray) -> Any:
    """Fit without the warning that `min_samples` is small for the noise: it is the paper's setting."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        return model.fit(X)
