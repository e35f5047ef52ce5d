"""Private choice of the row cap: how many rows of one person are worth their noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.budget import Step
from sfumato.cluster.bounds import noise_of_runs, visible_bins
from sfumato.curator import Curator, Noisy, histograms_sensitivity
from sfumato.domain import FloatArray, IntArray
from sfumato.posterior import project_to_simplex

CONTRIBUTIONS = "contributions"
LARGEST_EXPONENT = 40
FALSE_ALARM = 1e-2  # that noise passes for people who have more rows than anybody has
LONGEST = 8  # bins in a run: four powers of two


@dataclass(frozen=True, eq=False)
class Contributions:
    """A row cap, and what it was chosen from. Public.

    Parameters
    ----------
    max_rows : int
        The cap.
    edges : float array of shape (n_bins + 1,)
        Bin b holds the people with edges[b] to edges[b + 1] - 1 rows.
    noisy_people : int array of shape (n_bins,)
        As released.
    kept : float
        Estimated share of the rows that the cap keeps, as far as people stand out; 0 if nobody does.
    noise_std : float
        Standard deviation of the noise in each number of people.
    """

    max_rows: int
    edges: FloatArray
    noisy_people: IntArray
    kept: float
    noise_std: float


def contribution_steps() -> tuple[Step, ...]:
    """Steps that `choose_max_rows` asks, with shares that sum to 1."""
    return (Step(CONTRIBUTIONS, 1, sensitivity=histograms_sensitivity(1)),)


def choose_max_rows(curator: Curator, n_clusters: int, noise_per_row: float) -> Contributions:
    """Choose the cap with which the sizes of clusters come out most accurately.

    With K(m) rows kept under the cap m, a cluster that holds one in `n_clusters` of them has a size of
    relative variance

        n_clusters / K(m)  +  (n_clusters m noise_per_row / K(m))^2.

    The first term is the chance of drawing these rows and not others, the second the noise, which grows with
    the cap. K(m) / m never rises with m, so the noise alone always asks for one row per person; only the
    first term speaks for more. It takes rows for independent draws. If the rows of a person are alike,
    further ones tell less and the cap comes out too large: were they all the same, the first term would be
    n_clusters (sum of min(rows, m)^2) / K(m)^2, least at m = 1, and one row per person would be best
    throughout. Nor does the rule see that a low cap gives people with few rows more weight.

    Parameters
    ----------
    curator : Curator
        Over a table with one row per person and one column, that person's number of rows, with the steps of
        `contribution_steps` in its plan.
    n_clusters : int
        Clusters that are expected.
    noise_per_row : float
        Standard deviation of the noise in a count under a cap of one; sqrt(2) / epsilon for a pure budget.

    Privacy
    -------
    One noisy histogram, of sensitivity 1 for one person. All else is computed from it and from public
    numbers. Proof: docs/proofs/bounds.md.

    Examples
    --------
    >>> from sfumato.budget import Budget, Plan, calibrate
    >>> from sfumato.curator import open_curator
    >>> from sfumato.domain import Domain
    >>> rows_of_each = np.repeat([[1], [20]], 5000, axis=0)
    >>> plan = calibrate(Plan(*contribution_steps()), Budget(0.1))
    >>> curator = open_curator(rows_of_each, Domain.from_bounds((1, 2**40), 1), plan, seed=0)
    >>> choose_max_rows(curator, n_clusters=5, noise_per_row=1.5).max_rows
    23
    """
    edges = contribution_edges()
    noisy = curator.histograms(CONTRIBUTIONS, edges[None])
    people = _estimated(noisy)
    caps, typical = edges[:-1], np.sqrt(edges[:-1] * (edges[1:] - 1))
    rows_kept = np.minimum(typical, caps[:, None]) @ people  # per cap
    relative = n_clusters / np.maximum(rows_kept, 1e-100)  # the first cap, 1, wins if nobody stands out
    best = int(np.argmin(relative + (relative * caps * noise_per_row) ** 2))
    kept = float(rows_kept[best] / max(float(typical @ people), 1.0))
    return Contributions(int(caps[best]), edges, noisy.values[0], kept, noisy.std)


def _estimated(noisy: Noisy) -> FloatArray:
    """People per bin, not negative; none beyond the bins in which some stand out.

    There noise would count as people with up to 2^40 rows each.
    """
    counts = noisy.values[0].astype(np.float64)
    lengths = 2 ** np.arange(LONGEST.bit_length())
    noise = noise_of_runs(noisy, lengths, FALSE_ALARM / (len(counts) * len(lengths)))
    first, last = visible_bins(noisy.values[0], lengths, noise)
    people = np.zeros(len(counts))
    if first < last:
        people[first:last] = project_to_simplex(counts[first:last], max(float(counts[first:last].sum()), 1.0))
    return people


def contribution_edges() -> FloatArray:
    """Whole numbers next to the powers of the square root of two: 1, 2, 3, 4, 6, 8, 11, 16, ..."""
    return np.unique(np.rint(2.0 ** (np.arange(2 * LARGEST_EXPONENT + 1) / 2)))
