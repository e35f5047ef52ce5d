"""Public starting centres, from balls packed into the domain. They do not depend on the rows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sfumato.domain import Domain, FloatArray

MOST_VALUES = 200_000  # a limit on the work; in many columns a few draws are as far apart as many
PUBLIC_SEED = 2016  # the same start in every run
# Tuned: docs/notes/constants.md#lloyd
DRAWS_PER_CENTRE, MOST_DRAWS = 100, 2000
HALVINGS = 12  # of the interval that holds the radius of the packing


def packed_start(domain: Domain, n_clusters: int) -> FloatArray:
    """Public starting centres, far from each other and from the border.

    With columns scaled to [-1, 1], each centre is the middle of a ball. All balls have the same radius, do
    not overlap and lie within the domain. The radius is about the largest for which random draws find room.

    Returns
    -------
    ndarray of shape (n_clusters, d)
    """
    unit_start, _ = unit_packing(domain.n_features, n_clusters, domain.radius is not None)
    return domain.clip(domain.midpoint + unit_start * domain.half_width)


@lru_cache(maxsize=64)
def unit_packing(n_features: int, n_clusters: int, ball: bool) -> tuple[FloatArray, float]:
    """Middles of equal balls in [-1, 1]^d, or in the ball of radius 1, and their radius."""
    rng = np.random.default_rng(PUBLIC_SEED)
    n_draws = max(2 * n_clusters, min(DRAWS_PER_CENTRE * n_clusters, MOST_DRAWS, MOST_VALUES // n_features))
    draws = rng.uniform(-1, 1, size=(n_draws, n_features))
    if ball:
        draws = rng.normal(size=draws.shape)
        depths = rng.uniform(size=(n_draws, 1)) ** (1 / n_features)
        draws *= depths / np.linalg.norm(draws, axis=1, keepdims=True)
    if n_clusters == 1:
        return np.zeros((1, n_features)), 1.0
    low, high = 0.0, 1.0
    found = draws[:n_clusters]
    for _ in range(HALVINGS):
        radius = (low + high) / 2
        # Shrunk draws keep their distance from the border.
        chosen = _far_apart(draws, 2 * radius / (1 - radius), n_clusters)
        if len(chosen) == n_clusters:
            low, found = radius, (1 - radius) * chosen
        else:
            high = radius
    return found, low


def _far_apart(draws: FloatArray, distance: float, n: int) -> FloatArray:
    """Take up to `n` draws in order, skipping those too close to one already taken."""
    squares = (draws**2).sum(axis=1)
    free = np.ones(len(draws), dtype=bool)
    taken: list[int] = []
    while len(taken) < n and free.any():
        taken.append(int(np.argmax(free)))
        gaps = squares + squares[taken[-1]] - 2 * (draws @ draws[taken[-1]])
        free &= gaps >= distance**2
        free[taken[-1]] = False
    return draws[taken]
