"""Recipes of labelled shapes for the density methods. Each phenomenon has two: rules are chosen on one and reported on the other.

Rows of a recipe are drawn anew for every seed. Class -1 is noise. Bounds belong to the recipe and are a little wider than
its shapes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Half = Literal["chosen", "reported"]
Bounds = tuple[list[float], list[float]]
Labelled = tuple[np.ndarray, np.ndarray]
Part = tuple[np.ndarray, int]  # rows and their class


@dataclass(frozen=True)
class Family:
    """A recipe of shapes.

    Parameters
    ----------
    name : str
    half : {"chosen", "reported"}
        Whether rules and constants were chosen on it, or only reported on it.
    rows : tuple of int
        Numbers of rows to draw; the first is the usual one.
    shapes : callable
        Takes a generator and a number of rows and returns parts, without noise.
    noise : float
        Share of the rows that are spread evenly over the bounds.
    bounds : (list of float, list of float)
    """

    name: str
    half: Half
    rows: tuple[int, ...]
    bounds: Bounds
    shapes: Callable[[np.random.Generator, int], Sequence[Part]]
    noise: float = 0.0

    def draw(self, n_rows: int, seed: int) -> Labelled:
        rng = np.random.default_rng([seed, n_rows])
        n_noise = round(self.noise * n_rows)
        parts = [*self.shapes(rng, n_rows - n_noise), (rng.uniform(*self.bounds, (n_noise, 2)), -1)]
        X = np.concatenate([rows for rows, _ in parts])
        y = np.concatenate([np.full(len(rows), label) for rows, label in parts])
        order = rng.permutation(len(X))
        return np.clip(X, *self.bounds)[order], y[order]


def shares(n_rows: int, weights: Sequence[float]) -> list[int]:
    """Whole numbers in proportion to weights that sum to `n_rows`."""
    borders = np.round(n_rows * np.cumsum([0, *weights]) / np.sum(weights)).astype(int)
    return np.diff(borders).tolist()


def disc(
    rng: np.random.Generator, n: int, at: Sequence[float], radius: float, stretch: float = 1.0
) -> np.ndarray:
    turn, distance = rng.uniform(0, 2 * np.pi, n), radius * np.sqrt(rng.random(n))
    return np.stack([distance * np.cos(turn) * stretch, distance * np.sin(turn)], axis=1) + at


def arc(
    rng: np.random.Generator,
    n: int,
    at: Sequence[float],
    radius: float,
    thickness: float,
    turns: tuple[float, float] = (0.0, 1.0),
) -> np.ndarray:
    """Part of a ring, evenly filled, from one turn to another (1 is once around)."""
    turn = 2 * np.pi * rng.uniform(*turns, n)
    distance = radius + thickness * rng.uniform(-0.5, 0.5, n)
    return np.stack([distance * np.cos(turn), distance * np.sin(turn)], axis=1) + at


def bar(
    rng: np.random.Generator, n: int, start: Sequence[float], end: Sequence[float], thickness: float
) -> np.ndarray:
    start, end = np.array(start, dtype=float), np.array(end, dtype=float)
    along = end - start
    across = np.array([-along[1], along[0]]) / np.hypot(*along)
    return start + rng.random((n, 1)) * along + thickness * rng.uniform(-0.5, 0.5, (n, 1)) * across


def wave(
    rng: np.random.Generator,
    n: int,
    left: float,
    right: float,
    height: float,
    swing: float,
    length: float,
    thickness: float,
) -> np.ndarray:
    x = rng.uniform(left, right, n)
    return np.stack(
        [x, height + swing * np.sin(2 * np.pi * x / length) + thickness * rng.uniform(-0.5, 0.5, n)], axis=1
    )


def spiral(
    rng: np.random.Generator, n: int, first: float, turns: float, pitch: float, spread: float
) -> np.ndarray:
    """An arm that begins at angle `first` (in turns), evenly filled along its length."""
    t = turns * np.sqrt(rng.uniform(0.06, 1.0, n))
    angle = 2 * np.pi * (t + first)
    X = np.stack([pitch * t * np.cos(angle), pitch * t * np.sin(angle)], axis=1)
    return X + rng.normal(0.0, spread, X.shape)


def normal(
    rng: np.random.Generator, n: int, at: Sequence[float], spread: float | Sequence[float], turn: float = 0.0
) -> np.ndarray:
    X = rng.normal(0.0, 1.0, (n, 2)) * spread
    c, s = np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)
    return X @ np.array([[c, s], [-s, c]]) + at


def apart(rng: np.random.Generator, k: int, low: float, high: float, distance: float) -> np.ndarray:
    """Points of a square that keep a distance from each other."""
    points: list[np.ndarray] = []
    while len(points) < k:
        point = rng.uniform(low, high, 2)
        if all(np.hypot(*(point - other)) >= distance for other in points):
            points.append(point)
    return np.array(points)


def numbered(parts: Sequence[np.ndarray]) -> list[Part]:
    return [(part, label) for label, part in enumerate(parts)]


# Each of the following takes a generator and a number of rows.


def two_spirals(rng: np.random.Generator, n: int) -> list[Part]:
    return numbered(
        [spiral(rng, m, first, 2.0, 1.0, 0.05) for m, first in zip(shares(n, [1, 1]), (0, 0.5), strict=True)]
    )


def three_spirals(rng: np.random.Generator, n: int) -> list[Part]:
    return numbered(
        [
            spiral(rng, m, first, 1.2, 1.0, 0.04)
            for m, first in zip(shares(n, [3, 2, 2]), (0, 1 / 3, 2 / 3), strict=True)
        ]
    )


def nested_rings(rng: np.random.Generator, n: int) -> list[Part]:
    radii = (0.6, 1.3, 2.0)
    return numbered([arc(rng, m, (0, 0), r, 0.2) for m, r in zip(shares(n, radii), radii, strict=True)])


def rings_in_rings(rng: np.random.Generator, n: int) -> list[Part]:
    sizes = shares(n, [4, 2, 1.5, 3, 1, 1])
    centres = [(-2.2, 0), (-2.2, 0), (-2.2, 0), (2.2, 0), (1.5, 0), (2.9, 0)]
    radii, thick = [1.9, 1.2, 0.5, 1.8, 0.35, 0.35], [0.15, 0.15, 0.15, 0.12, 0.1, 0.1]
    return numbered([arc(rng, *ring) for ring in zip(sizes, centres, radii, thick, strict=True)])


def bridged_discs(rng: np.random.Generator, n: int) -> list[Part]:
    a, b, c, bridge = shares(n, [10, 10, 4, 0.6])
    return [
        (disc(rng, a, (-2, 0), 1.2), 0),
        (disc(rng, b, (2, 0), 1.2), 1),
        (disc(rng, c, (0, 2.4), 0.4, 3.5), 2),
        (bar(rng, bridge, (-0.8, 0), (0.8, 0), 0.1), -1),
    ]


def dumbbells(rng: np.random.Generator, n: int) -> list[Part]:
    sizes = shares(n, [6, 6, 3, 3, 0.3, 0.3, 4])
    return [
        (disc(rng, sizes[0], (-2.4, -1.2), 1.0), 0),
        (disc(rng, sizes[1], (0.4, -1.2), 1.0), 1),
        (disc(rng, sizes[2], (-2.4, 1.6), 0.5, 2.0), 2),
        (disc(rng, sizes[3], (0.6, 1.6), 0.5, 2.0), 3),
        (bar(rng, sizes[4], (-1.4, -1.2), (-0.6, -1.2), 0.08), -1),
        (bar(rng, sizes[5], (-1.4, 1.6), (-0.4, 1.6), 0.08), -1),
        (disc(rng, sizes[6], (3.0, 0.2), 1.9, 0.35), 4),
    ]


def straight_bands(rng: np.random.Generator, n: int) -> list[Part]:
    heights = (-1.5, -0.9, -0.3, 0.3, 0.9, 1.5)
    sizes = shares(n, [3, 2, 3, 1.5, 3, 2])
    return numbered([bar(rng, m, (-3, h), (3, h), 0.45) for m, h in zip(sizes, heights, strict=True)])


def wavy_bands(rng: np.random.Generator, n: int) -> list[Part]:
    sizes = shares(n, [1, 1, 1, 1])
    waves = [
        wave(rng, m, -4, 4, h, 0.5, 4.0, 0.6) for m, h in zip(sizes, (-1.2, -0.4, 0.4, 1.2), strict=True)
    ]
    return numbered(waves)


def three_densities(rng: np.random.Generator, n: int) -> list[Part]:
    """Normal clusters of one size in rows, whose densities are as 1 to 10 to 100."""
    sizes = shares(n, [1, 1, 1])
    places, spreads = [(-2.5, 0), (1.2, 1.2), (2.2, -1.8)], [1.0, 0.316, 0.1]
    return numbered([normal(rng, *cloud) for cloud in zip(sizes, places, spreads, strict=True)])


def dense_in_sparse(rng: np.random.Generator, n: int) -> list[Part]:
    """Two sparse squares side by side; small discs a hundred times as dense stand near one and in a corner."""
    a, b, c, d = shares(n, [3, 3, 2, 1])
    return [
        (rng.uniform((-4, -2), (-0.4, 2), (a, 2)), 0),
        (rng.uniform((0.4, -2), (4, 2), (b, 2)), 1),
        (disc(rng, c, (0, 2.9), 0.35), 2),
        (disc(rng, d, (-3.4, 2.9), 0.25), 3),
    ]


def _plain_shapes(rng: np.random.Generator, n: int) -> list[Part]:
    a, b, c, d = shares(n, [1, 1, 1, 1])
    return numbered(
        [
            disc(rng, a, (-2.2, 1.3), 0.9),
            arc(rng, b, (1.8, 1.3), 1.1, 0.35),
            bar(rng, c, (-3.5, -1.8), (-0.3, -0.9), 0.4),
            wave(rng, d, 0.2, 3.6, -1.5, 0.5, 1.7, 0.3),
        ]
    )


def _letters(rng: np.random.Generator, n: int) -> list[Part]:
    """S, O, L, T and V, drawn with a thick pen."""
    sizes = shares(n, [2, 2, 1.5, 1.5, 1.5])
    pen = 0.25
    s = shares(sizes[0], [1, 1])
    el, te, ve = shares(sizes[2], [2, 1]), shares(sizes[3], [2, 1.4]), shares(sizes[4], [1, 1])
    return [
        (arc(rng, s[0], (-3.4, 0.5), 0.5, pen, (0.05, 0.75)), 0),
        (arc(rng, s[1], (-3.4, -0.5), 0.5, pen, (-0.45, 0.25)), 0),
        (arc(rng, sizes[1], (-1.6, 0), 0.8, pen), 1),
        (bar(rng, el[0], (-0.2, 1), (-0.2, -1), pen), 2),
        (bar(rng, el[1], (-0.2, -0.9), (0.9, -0.9), pen), 2),
        (bar(rng, te[0], (1.9, 0.8), (1.9, -1), pen), 3),
        (bar(rng, te[1], (1.2, 0.9), (2.6, 0.9), pen), 3),
        (bar(rng, ve[0], (3.0, 1), (3.5, -1), pen), 4),
        (bar(rng, ve[1], (4.0, 1), (3.5, -1), pen), 4),
    ]


def normals_on_a_grid(rng: np.random.Generator, n: int) -> list[Part]:
    places = [(x, y) for x in range(-2, 3) for y in range(-2, 3)]
    return numbered([normal(rng, m, at, 0.17) for m, at in zip(shares(n, [1] * 25), places, strict=True)])


def thirty_normals(rng: np.random.Generator, n: int) -> list[Part]:
    places = apart(np.random.default_rng(31), 30, -10, 10, 2.6)
    spreads = np.random.default_rng(32).uniform(0.45, 0.65, 30)
    return numbered([normal(rng, m, *c) for m, *c in zip(shares(n, [1] * 30), places, spreads, strict=True)])


def few_groups(rng: np.random.Generator, n: int) -> list[Part]:
    """A small table: two close balls, a ring around a core, a sparse cloud, a dense bar."""
    a, b, c, d, e, f = shares(n, [3, 3, 5, 3, 4, 4])
    return numbered(
        [
            normal(rng, a, (-2, 1.5), 0.25),
            normal(rng, b, (-0.8, 1.5), 0.25),
            arc(rng, c, (1.8, 1.2), 1.0, 0.2),
            disc(rng, d, (1.8, 1.2), 0.4),
            disc(rng, e, (-1.6, -1.4), 1.0),
            bar(rng, f, (0.6, -1.6), (2.8, -1.2), 0.15),
        ]
    )


def small_table(rng: np.random.Generator, n: int) -> list[Part]:
    """A dense group within a sparse one's reach, two touching ellipses, and a curve."""
    a, b, c, d, e = shares(n, [4, 5, 5, 5, 6])
    return numbered(
        [
            normal(rng, a, (-2.4, 1.2), 0.12),
            disc(rng, b, (-1.0, 1.2), 0.9),
            normal(rng, c, (1.6, 1.8), (0.6, 0.15), 0.05),
            normal(rng, d, (1.9, 1.1), (0.6, 0.15), 0.05),
            arc(rng, e, (0.2, -0.2), 1.7, 0.15, (0.55, 0.95)),
        ]
    )


def thin_curves(rng: np.random.Generator, n: int) -> list[Part]:
    sizes = shares(n, [3, 2, 2, 1.5, 2, 1, 1.5, 2.5])
    return numbered(
        [
            arc(rng, sizes[0], (-2.4, 1.4), 1.3, 0.08),
            arc(rng, sizes[1], (-2.4, 1.4), 0.8, 0.08, (0.1, 0.8)),
            disc(rng, sizes[2], (-2.4, 1.4), 0.35),
            bar(rng, sizes[3], (-0.6, 2.6), (3.4, 2.2), 0.08),
            wave(rng, sizes[4], -0.6, 3.6, 1.3, 0.25, 1.4, 0.08),
            bar(rng, sizes[5], (-3.6, -0.5), (-3.4, -2.6), 0.08),
            arc(rng, sizes[6], (-1.6, -1.6), 1.0, 0.08, (0.0, 0.5)),
            arc(rng, sizes[7], (1.9, -1.2), 1.2, 0.1, (0.3, 1.1)),
        ]
    )


def nine_curves(rng: np.random.Generator, n: int) -> list[Part]:
    sizes = shares(n, [4, 3, 2, 3, 2, 2, 3, 2, 3])
    return numbered(
        [
            arc(rng, sizes[0], (2.3, 1.0), 1.6, 0.1),
            arc(rng, sizes[1], (2.3, 1.0), 1.1, 0.1),
            disc(rng, sizes[2], (2.3, 1.0), 0.45),
            wave(rng, sizes[3], -4, 0.2, 2.4, 0.2, 2.1, 0.1),
            bar(rng, sizes[4], (-4, 1.6), (0.0, 1.3), 0.1),
            arc(rng, sizes[5], (-2.2, -0.2), 0.9, 0.1, (-0.1, 0.6)),
            arc(rng, sizes[6], (-2.2, -1.0), 1.5, 0.12, (0.45, 1.05)),
            bar(rng, sizes[7], (-0.2, 0.4), (-0.2, -1.0), 0.1),
            wave(rng, sizes[8], 0.4, 4.0, -1.8, 0.35, 1.2, 0.12),
        ]
    )


def stretched_normals(rng: np.random.Generator, n: int) -> list[Part]:
    turns, places = (
        (0.1, 0.35, 0.0, 0.2, 0.45),
        [(-2.4, 1.4), (-1.8, -1.6), (0.6, 0.2), (2.6, 1.8), (2.6, -1.6)],
    )
    sizes = shares(n, [4, 3, 2, 2, 1])
    return numbered(
        [normal(rng, m, at, (0.7, 0.16), turn) for m, at, turn in zip(sizes, places, turns, strict=True)]
    )


def heavy_tails(rng: np.random.Generator, n: int) -> list[Part]:
    places, spreads = [(-2, -1), (0.2, 1.8), (2.6, -0.6)], (0.3, 0.25, 0.35)
    sizes = shares(n, [3, 2, 2])
    return numbered(
        [at + s * rng.standard_t(2.5, (m, 2)) for m, at, s in zip(sizes, places, spreads, strict=True)]
    )


def one_cloud(rng: np.random.Generator, n: int) -> list[Part]:
    return [(normal(rng, n, (0, 0), (1.0, 0.6), 0.1), 0)]


def one_square(rng: np.random.Generator, n: int) -> list[Part]:
    return [(rng.uniform((-2, -1.5), (2, 1.5), (n, 2)), 0)]


def town(rng: np.random.Generator, n: int) -> list[Part]:
    """Forty quarters of very unequal size: normal, with a few streets."""
    layout = np.random.default_rng(40)
    places, spreads = apart(layout, 40, -9, 9, 2.1), layout.uniform(0.12, 0.4, 40)
    weights = 1 / np.arange(1, 41) ** 0.7
    return numbered([normal(rng, m, *c) for m, *c in zip(shares(n, weights), places, spreads, strict=True)])


def islands(rng: np.random.Generator, n: int) -> list[Part]:
    """Twelve shapes of unequal size and density: discs, rings and bars."""
    layout = np.random.default_rng(41)
    places, parts = apart(layout, 12, -8, 8, 4.0), []
    for i, (m, at) in enumerate(zip(shares(n, layout.uniform(0.3, 3.0, 12)), places, strict=True)):
        turn = layout.uniform(0, 2 * np.pi)
        tip = 1.5 * np.array([np.cos(turn), np.sin(turn)])
        kind = (
            disc(rng, m, at, layout.uniform(0.4, 1.5)),
            arc(rng, m, at, 1.3, 0.3),
            bar(rng, m, at - tip, at + tip, 0.3),
        )
        parts.append(kind[i % 3])
    return numbered(parts)


BOX: Bounds = ([-4.5, -3.5], [4.5, 3.5])
SQUARE: Bounds = ([-3.0, -3.0], [3.0, 3.0])
WIDE: Bounds = ([-12.0, -12.0], [12.0, 12.0])
FAMILIES = {
    family.name: family
    for family in (
        Family("two spirals", "chosen", (2_000, 20_000), SQUARE, two_spirals),
        Family(
            "three spirals", "reported", (2_100, 700, 7_000, 70_000), ([-1.5] * 2, [1.5] * 2), three_spirals
        ),
        Family("nested rings", "chosen", (1_500, 15_000), SQUARE, nested_rings),
        Family("rings in rings", "reported", (3_000, 1_000, 10_000, 100_000), BOX, rings_in_rings),
        Family("bridged discs", "chosen", (4_000,), BOX, bridged_discs, 0.05),
        Family("dumbbells", "reported", (4_200, 1_400, 14_000, 140_000), BOX, dumbbells, 0.08),
        Family("straight bands", "chosen", (6_000,), BOX, straight_bands, 0.05),
        Family(
            "wavy bands", "reported", (8_000, 2_000, 32_000), ([-5.0, -2.5], [5.0, 2.5]), wavy_bands, 0.05
        ),
        Family("three densities", "chosen", (3_000,), ([-7.0, -4.0], [4.0, 4.0]), three_densities),
        Family("dense in sparse", "reported", (4_500, 1_500, 15_000, 150_000), BOX, dense_in_sparse),
        Family("plain shapes", "chosen", (3_000,), BOX, _plain_shapes),
        Family("shapes, 10 % noise", "chosen", (3_000,), BOX, _plain_shapes, 0.1),
        Family("shapes, 40 % noise", "chosen", (5_000,), BOX, _plain_shapes, 0.4),
        Family("letters", "reported", (4_000, 1_000, 16_000), BOX, _letters),
        Family("letters, 20 % noise", "reported", (5_000, 1_250, 20_000), BOX, _letters, 0.2),
        Family("letters, 40 % noise", "reported", (6_600, 1_650, 26_000), BOX, _letters, 0.4),
        Family("normals on a grid", "chosen", (2_500,), SQUARE, normals_on_a_grid),
        Family("thirty normals", "reported", (3_000, 1_000, 10_000, 100_000), WIDE, thirty_normals),
        Family("few groups", "chosen", (400,), BOX, few_groups),
        Family("small table", "reported", (400, 1_000, 4_000), BOX, small_table),
        Family("thin curves", "chosen", (2_500,), BOX, thin_curves),
        Family("nine curves", "reported", (3_000, 1_000, 10_000, 100_000), BOX, nine_curves),
        Family("stretched normals", "chosen", (2_000,), ([-5.0, -4.0], [5.0, 4.0]), stretched_normals),
        Family("heavy tails", "reported", (2_100, 700, 7_000), ([-8.0, -8.0], [8.0, 8.0]), heavy_tails, 0.02),
        Family("one cloud", "chosen", (2_000,), BOX, one_cloud),
        Family("one square", "reported", (2_000, 20_000), BOX, one_square),
        Family("town", "chosen", (200_000,), WIDE, town, 0.1),
        Family("islands", "reported", (1_000_000, 10_000, 100_000), WIDE, islands, 0.1),
    )
}
