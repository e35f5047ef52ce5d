"""A small DP-GAN in NumPy: a stand-in for the one of the source-target paper, which needs gigabytes of torch.

A Wasserstein GAN with clipped weights, whose critic learns from clipped gradients of the private rows in Gaussian noise
(L. Xie, K. Lin, S. Wang, F. Wang, J. Zhou. Differentially private generative adversarial network, 2018). All rows
take part in every step, so that a training is one Gaussian mechanism, and its cost is exact. The generator sees
nothing but the critic. Noise is in floating point: for comparison, not for release.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

Arrays = list[np.ndarray]

N_HIDDEN, N_LATENT = 32, 8
N_ROUNDS, CRITIC_STEPS = 300, 3
BATCH = 256  # of generated points
LARGEST_GRADIENT, LARGEST_WEIGHT = 1.0, 0.1
LEARNING_RATE = 5e-3
LEAK = 0.2  # slope of a hidden unit below zero
COUNT_SHARE = 0.01  # of the budget, for the number of rows


class Critic(NamedTuple):
    """One hidden layer; what it adds to all scores alike would cancel."""

    inner: np.ndarray  # (d, N_HIDDEN)
    shift: np.ndarray  # (N_HIDDEN,)
    outer: np.ndarray  # (N_HIDDEN,)

    def entering(self, points: np.ndarray) -> np.ndarray:
        return points @ self.inner + self.shift

    def slopes(self, entering: np.ndarray) -> np.ndarray:
        """Derivative of each score by what enters the hidden units."""
        return np.where(entering > 0, self.outer, LEAK * self.outer)

    def clipped_gradient(self, points: np.ndarray) -> Arrays:
        """Sum over the points of the gradient of their score, each of norm `LARGEST_GRADIENT` at most."""
        entering = self.entering(points)
        slopes = self.slopes(entering)
        hidden = np.maximum(entering, LEAK * entering)
        # The gradient of `inner` is an outer product, whose norm is the product of the norms.
        squares = squared_norms(slopes) * (1 + squared_norms(points)) + squared_norms(hidden)
        shrink = np.minimum(1.0, LARGEST_GRADIENT / np.sqrt(squares))
        slopes *= shrink[:, None]
        return [points.T @ slopes, slopes.sum(axis=0), shrink @ hidden]


class Generator(NamedTuple):
    """One hidden layer of rectified units."""

    inner: np.ndarray  # (N_LATENT, N_HIDDEN)
    shift: np.ndarray  # (N_HIDDEN,)
    outer: np.ndarray  # (N_HIDDEN, d)
    middle: np.ndarray  # (d,)

    def points(self, latent: np.ndarray) -> np.ndarray:
        return np.maximum(latent @ self.inner + self.shift, 0.0) @ self.outer + self.middle

    def gradient(self, latent: np.ndarray, pull: np.ndarray) -> Arrays:
        """Gradient of the sum over the points of their inner products with `pull`."""
        hidden = np.maximum(latent @ self.inner + self.shift, 0.0)
        slopes = (pull @ self.outer.T) * (hidden > 0)
        return [latent.T @ slopes, slopes.sum(axis=0), hidden.T @ pull, pull.sum(axis=0)]


def gan_samples(source: np.ndarray, n_samples: int, radius: float, mu: float, seed: int) -> np.ndarray:
    """Train on private rows in a ball of some radius around 0, and draw points of the ball.

    `mu` is the budget as the mean that a Gaussian of deviation 1 may move by, see `mu_of_rho` and `mu_of_epsilon`.
    """
    rng = np.random.default_rng(seed)
    rows, d = (source / radius).astype(np.float32), source.shape[1]
    noisy_count = max(len(rows) + rng.normal() / (mu * math.sqrt(COUNT_SHARE)), 1.0)
    n_steps = N_ROUNDS * CRITIC_STEPS
    deviation = LARGEST_GRADIENT / mu * math.sqrt(n_steps / (1 - COUNT_SHARE))
    critic = Critic(*started(rng, (d, N_HIDDEN), (N_HIDDEN,), (N_HIDDEN,)))
    generator = Generator(*started(rng, (N_LATENT, N_HIDDEN), (N_HIDDEN,), (N_HIDDEN, d), (d,)))
    squares = [[np.zeros_like(part) for part in net] for net in (critic, generator)]
    for _ in range(N_ROUNDS):
        for _ in range(CRITIC_STEPS):
            real = critic.clipped_gradient(rows)
            noisy = [(part + rng.normal(0.0, deviation, part.shape)) / noisy_count for part in real]
            fake = critic.clipped_gradient(generator.points(rng.normal(size=(BATCH, N_LATENT))))
            climb(critic, [a - b / BATCH for a, b in zip(noisy, fake, strict=True)], squares[0])
            for weights in critic:
                np.clip(weights, -LARGEST_WEIGHT, LARGEST_WEIGHT, out=weights)
        latent = rng.normal(size=(BATCH, N_LATENT))
        pull = critic.slopes(critic.entering(generator.points(latent))) @ critic.inner.T / BATCH
        climb(generator, generator.gradient(latent, pull), squares[1])
    points = generator.points(rng.normal(size=(n_samples, N_LATENT)))
    return radius * points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1.0)


def squared_norms(rows: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", rows, rows)


def started(rng: np.random.Generator, *shapes: tuple[int, ...]) -> Arrays:
    return [rng.normal(0.0, 0.5 / math.sqrt(shape[0]), shape).astype(np.float32) for shape in shapes]


def climb(parameters: Iterable[np.ndarray], gradients: Arrays, squares: Arrays) -> None:
    """Move the parameters in place, by RMSProp."""
    for parameter, gradient, square in zip(parameters, gradients, squares, strict=True):
        square += 0.1 * (gradient**2 - square)
        parameter += LEARNING_RATE * gradient / (np.sqrt(square) + 1e-8)


def mu_of_rho(rho: float) -> float:
    return math.sqrt(2 * rho)


def mu_of_epsilon(epsilon: float, delta: float) -> float:
    """The largest mean that costs no more than `epsilon` and `delta` (Balle and Wang 2018, Theorem 8)."""

    def surplus(mu: float) -> float:
        return ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)) - delta

    return float(brentq(surplus, 1e-3, 10 + 2 * epsilon))
