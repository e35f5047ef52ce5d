"""Pairs of a private source and a public target, for the benchmark of source-target clustering."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sklearn.neighbors import KDTree

from sfumato.datasets import data_home, load
from sfumato.domain import Ball
from sfumato.projection import RandomProjection

Rows = tuple[np.ndarray, np.ndarray]

BALL = Ball(0.5)
N_ROWS = 2_000  # of each synthetic source and target
MOST_TARGETS = 1_200
N_COMPONENTS = 8
# Plausible ranges of the columns of California housing without the value; rows outside are clipped.
HOUSING_LOW = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 32.5, -124.5)
HOUSING_HIGH = (15.0, 52.0, 20.0, 4.0, 6_000.0, 10.0, 42.0, -114.0)
QUARTERS = ("low", "middle-low", "middle-high", "high")


class Pair(NamedTuple):
    """Rows of norm 1/2 at most, and how far each target is from the source, which only the scoring may know."""

    source: np.ndarray
    target: np.ndarray
    to_source: np.ndarray


class Kind(NamedTuple):
    """How a pair is made: source and target before scaling."""

    title: str
    make: Callable[[], Rows]
    is_synthetic: bool = False


def two_gaussians() -> Rows:
    """One round Gaussian each, of standard deviation 0.4 along both columns."""
    rng = np.random.default_rng(0)
    return rng.normal(0.15, 0.4, (N_ROWS, 2)), rng.normal(0.95, 0.4, (N_ROWS, 2))


def quadrants() -> Rows:
    """Narrow clusters on a grid of 6 x 6 in the unit square: source in three quadrants, target in the lower two."""
    x, y = np.meshgrid(np.arange(6), np.arange(6))
    means = (np.stack([x, y], axis=2) + 0.5) / 6
    upper, lower_left, lower_right = (
        part.reshape(-1, 2) for part in (means[3:], means[:3, :3], means[:3, 3:])
    )
    rng = np.random.default_rng(0)
    source, target = np.concatenate([upper, lower_right]), np.concatenate([lower_left, lower_right])
    return around(source, 0.01, rng), around(target, 0.01, rng)


def scattered() -> Rows:
    """Six clusters of the source and twelve narrow ones of the target, anywhere in the unit square."""
    # The first seed at which three clusters of the target lie within two deviations of one of the source: at
    # most others, source and target hardly meet, and there is nothing to gain from knowing the source.
    rng = np.random.default_rng(38)
    return around(rng.random((6, 2)), 0.03, rng), around(rng.random((12, 2)), 0.01, rng)


def around(means: np.ndarray, deviation: float, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(means[rng.integers(len(means), size=N_ROWS)], deviation)


def digits(source: int, target: int) -> Rows:
    rows, classes = projected_digits()
    return rows[classes == source], rows[classes == target]


@lru_cache(maxsize=1)
def projected_digits() -> Rows:
    X, classes = load("mnist")
    return RandomProjection(N_COMPONENTS, bounds=(0, 255)).fit(X).transform(X), classes


def quarters(source: str, target: str) -> Rows:
    """Block groups by the quarter that their house value is in; eight columns, so that none need be projected."""
    table, _ = load("california_housing")
    low, high = np.array(HOUSING_LOW), np.array(HOUSING_HIGH)
    X = 2 * (np.clip(table[:, :-1], low, high) - low) / (high - low) - 1
    parts = np.array_split(X[np.argsort(table[:, -1], kind="stable")], len(QUARTERS))
    return parts[QUARTERS.index(source)], parts[QUARTERS.index(target)]


KINDS = {
    "synthetic_1": Kind("Synthetic 1", two_gaussians, True),
    "synthetic_2": Kind("Synthetic 2", quadrants, True),
    "synthetic_3": Kind("Synthetic 3", scattered, True),
    "mnist_1_7": Kind("MNIST 1 → 7", lambda: digits(1, 7)),
    "mnist_5_2": Kind("MNIST 5 → 2", lambda: digits(5, 2)),
    "mnist_9_6": Kind("MNIST 9 → 6", lambda: digits(9, 6)),
    "mnist_7_1": Kind("MNIST 7 → 1", lambda: digits(7, 1)),
    "mnist_2_5": Kind("MNIST 2 → 5", lambda: digits(2, 5)),
    "mnist_6_9": Kind("MNIST 6 → 9", lambda: digits(6, 9)),
    "housing_low": Kind("Housing low → middle-low", lambda: quarters("low", "middle-low")),
    "housing_high": Kind("Housing high → middle-high", lambda: quarters("high", "middle-high")),
}


def at_hand() -> list[str]:
    """Names of the pairs at hand: those of the data folder only if SFUMATO_DATA names it."""
    return [name for name, kind in KINDS.items() if kind.is_synthetic or data_home()]


def pair_of(name: str) -> Pair:
    """Scale a pair so that its largest norm is 1/2, a figure that is taken as public, as in the paper."""
    source, target = KINDS[name].make()
    if len(target) > MOST_TARGETS:
        target = target[np.random.default_rng(0).permutation(len(target))[:MOST_TARGETS]]
    scale = BALL.radius / max(np.linalg.norm(rows, axis=1).max() for rows in (source, target))
    source, target = scale * source, scale * target
    return Pair(source, target, KDTree(source).query(target)[0][:, 0])
