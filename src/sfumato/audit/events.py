"""Choose an event that tells two neighbours apart, on runs that are not counted afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.audit.limits import least_loss, limits
from sfumato.budget import Budget
from sfumato.domain import FloatArray, IntArray

MOST_THRESHOLDS = 512
RIDGE = 0.1  # in units of a feature's variance
CAUTION = 0.01  # times the probability with which limits may fail, where an event is chosen
EVEN_ODDS = 0.9  # limits close to the frequencies themselves
FARTHEST = 5.0  # standard deviations: noise has long tails, which would drown a sum


@dataclass(frozen=True)
class Combination:
    """A weighted sum of features, each in units of its standard deviation."""

    mean: FloatArray
    scale: FloatArray
    weights: FloatArray

    @classmethod
    def learned(cls, one: FloatArray, other: FloatArray) -> Combination:
        """Fisher's linear discriminant of two samples of shape (n, n_features)."""
        both = np.concatenate([one, other])
        mean, spread = both.mean(axis=0), both.std(axis=0)
        start = cls(mean, np.where(spread > 0, spread, 1.0), np.zeros(both.shape[1]))
        one, other = start._standard(one), start._standard(other)
        within = (np.cov(one, rowvar=False) + np.cov(other, rowvar=False)) / 2
        within = np.atleast_2d(within) + RIDGE * np.eye(both.shape[1])
        weights = np.linalg.solve(within, one.mean(axis=0) - other.mean(axis=0))
        return cls(start.mean, start.scale, weights)

    def of(self, rows: FloatArray) -> FloatArray:
        """The sum for each row of features."""
        sums: FloatArray = self._standard(rows) @ self.weights
        return sums

    def _standard(self, rows: FloatArray) -> FloatArray:
        return np.clip((rows - self.mean) / self.scale, -FARTHEST, FARTHEST)


@dataclass(frozen=True)
class Event:
    """A score reaches a threshold, or stays below it."""

    score: int  # column of the scores
    threshold: float
    at_least: bool  # whether the event means reaching the threshold, or staying below it
    likelier_on_one: bool  # whether the event is more likely on the first of the two tables

    def count(self, scores: FloatArray) -> int:
        """Number of rows of scores in which the event happened."""
        reached = int((scores[:, self.score] >= self.threshold).sum())
        return reached if self.at_least else len(scores) - reached

    def in_words(self, names: Sequence[str]) -> str:
        """The score and the side of the threshold."""
        return f"{names[self.score]} {'>=' if self.at_least else '<'} {self.threshold:.6g}"


def choose_event(one: FloatArray, other: FloatArray, budget: Budget, miss: float) -> Event:
    """The event with the largest lower bound on these samples, both of shape (n, n_scores).

    Among many events some look good by chance, above all rare ones. The limits are therefore wider here than
    where the event is counted. If no event stands out, frequencies alone decide.
    """
    best, event = _best_event(one, other, budget, miss * CAUTION)
    return event if best > 0 else _best_event(one, other, budget, EVEN_ODDS)[1]


def _best_event(one: FloatArray, other: FloatArray, budget: Budget, miss: float) -> tuple[float, Event]:
    low, high = limits(len(one), miss)
    best, event = -1.0, Event(0, 0.0, True, True)
    for score in range(one.shape[1]):
        thresholds = _thresholds(one[:, score], other[:, score])
        reached_one, reached_other = (_reached(table[:, score], thresholds) for table in (one, other))
        for at_least in (True, False):
            hits_one = reached_one if at_least else len(one) - reached_one
            hits_other = reached_other if at_least else len(other) - reached_other
            for on_one, likely, unlikely in ((True, hits_one, hits_other), (False, hits_other, hits_one)):
                found = least_loss(budget, low[likely], high[unlikely])
                if found.max() > best:
                    best = float(found.max())
                    event = Event(score, float(thresholds[found.argmax()]), at_least, on_one)
    return best, event


def _thresholds(one: FloatArray, other: FloatArray) -> FloatArray:
    values = np.unique(np.concatenate([one, other]))
    if len(values) <= MOST_THRESHOLDS:
        return values
    kept = np.linspace(0, len(values) - 1, MOST_THRESHOLDS).astype(np.int64)
    return values[kept]


def _reached(scores: FloatArray, thresholds: FloatArray) -> IntArray:
    below = np.searchsorted(np.sort(scores), thresholds, side="left")
    return len(scores) - below.astype(np.int64)
