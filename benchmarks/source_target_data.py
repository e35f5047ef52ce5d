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


def letters(source: str, target: str) -> Rows:
    X, classes = load("letter")
    X, names = X - X.mean(axis=0), np.unique(classes)
    return X[classes == names[ord(source) - 65]], X[classes == names[ord(target) - 65]]


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


def two_apart(seed: int, d: int, n_source: int, shift: float, deviations: tuple[float, float]) -> Rows:
    """One round Gaussian each, a shift apart in a random direction."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    source = rng.normal(0, deviations[0], (n_source, d))
    return source, rng.normal(0, deviations[1], (N_ROWS, d)) + shift * direction


def groups(
    seed: int,
    d: int,
    numbers: tuple[int, int, int],
    n_source: int,
    deviations: tuple[float, float],
    evenness: float = 1e3,
) -> Rows:
    """Clusters of source and target anywhere in the unit cube; of the third number each is near one of the other."""
    rng = np.random.default_rng(seed)
    of_source, of_target, common = numbers
    means = rng.random((of_source, d)), rng.random((of_target, d))
    means[1][:common] = means[0][:common] + rng.normal(size=(common, d)) * deviations[0] * 0.7

    def drawn(means: np.ndarray, deviation: float, n: int) -> np.ndarray:
        shares = rng.dirichlet(np.full(len(means), evenness))
        return rng.normal(means[rng.choice(len(means), p=shares, size=n)], deviation)

    return drawn(means[0], deviations[0], n_source), drawn(means[1], deviations[1], N_ROWS)


def tiles(seed: int, side: int, numbers: tuple[int, int, int], n_source: int, deviation: float) -> Rows:
    """Narrow clusters on tiles of a square: of the source, of the target, and of both."""
    rng = np.random.default_rng(seed)
    of_source, of_target, common = numbers
    places = (np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=2).reshape(-1, 2) + 0.5) / side
    places = places[rng.permutation(len(places))]
    alone = places[of_source : of_source + of_target - common]
    means = places[:of_source], np.concatenate([places[:common], alone])
    source = rng.normal(means[0][rng.integers(of_source, size=n_source)], deviation)
    return source, rng.normal(means[1][rng.integers(of_target, size=N_ROWS)], deviation)


# Pairs that constants were chosen on; the benchmark reports none of them.
TRIED = {
    "wide_2": Kind("two Gaussians", lambda: two_apart(1, 2, 2000, 1.0, (0.4, 0.4)), True),
    "wide_2_few": Kind("two, 1,000 rows", lambda: two_apart(2, 2, 1000, 1.5, (0.5, 0.4)), True),
    "wide_2_many": Kind("two, 4,000 rows", lambda: two_apart(3, 2, 4000, 0.8, (0.3, 0.5)), True),
    "wide_3": Kind("two, 3 columns", lambda: two_apart(4, 3, 2000, 1.2, (0.4, 0.4)), True),
    "wide_5": Kind("two, 5 columns", lambda: two_apart(5, 5, 3000, 1.0, (0.4, 0.4)), True),
    "groups_18": Kind("8 and 18 clusters", lambda: groups(1, 2, (8, 18, 5), 2000, (0.03, 0.015)), True),
    "groups_30": Kind(
        "20 and 30, uneven", lambda: groups(2, 2, (20, 30, 12), 2000, (0.015, 0.015), 1.0), True
    ),
    "groups_8": Kind("5 and 8, 1,000 rows", lambda: groups(3, 2, (5, 8, 3), 1000, (0.04, 0.01)), True),
    "groups_10": Kind("12 and 10, uneven", lambda: groups(6, 2, (12, 10, 6), 3000, (0.01, 0.02), 1.0), True),
    "groups_20": Kind("10 and 20, 3 columns", lambda: groups(4, 3, (10, 20, 8), 2000, (0.03, 0.02)), True),
    "groups_12": Kind("6 and 12, 8 columns", lambda: groups(5, 8, (6, 12, 4), 3000, (0.08, 0.06)), True),
    "tiles_14": Kind("12 and 14 tiles", lambda: tiles(1, 5, (12, 14, 6), 2000, 0.01), True),
    "tiles_26": Kind("20 and 26 tiles", lambda: tiles(2, 7, (20, 26, 12), 2000, 0.012), True),
    "tiles_9": Kind("6 and 9 tiles, 1,000 rows", lambda: tiles(3, 4, (6, 9, 4), 1000, 0.015), True),
    "mnist_3_8": Kind("MNIST 3 → 8", lambda: digits(3, 8)),
    "mnist_8_1": Kind("MNIST 8 → 1", lambda: digits(8, 1)),
    "mnist_0_1": Kind("MNIST 0 → 1", lambda: digits(0, 1)),
    "mnist_4_9": Kind("MNIST 4 → 9", lambda: digits(4, 9)),
    "mnist_3_0": Kind("MNIST 3 → 0", lambda: digits(3, 0)),
    "mnist_4_1": Kind("MNIST 4 → 1", lambda: digits(4, 1)),
    "letters_O_Q": Kind("Letters O → Q", lambda: letters("O", "Q")),
    "letters_I_J": Kind("Letters I → J", lambda: letters("I", "J")),
}


def at_hand() -> list[str]:
    """Names of the pairs at hand: those of the data folder only if SFUMATO_DATA names it."""
    return [name for name, kind in KINDS.items() if kind.is_synthetic or data_home()]


def pair_of(name: str) -> Pair:
    """Scale a pair so that its largest norm is 1/2, a figure that is taken as public, as in the paper."""
    source, target = (KINDS | TRIED)[name].make()
    if len(target) > MOST_TARGETS:
        target = target[np.random.default_rng(0).permutation(len(target))[:MOST_TARGETS]]
    scale = BALL.radius / max(np.linalg.norm(rows, axis=1).max() for rows in (source, target))
    source, target = scale * source, scale * target
    return Pair(source, target, KDTree(source).query(target)[0][:, 0])
