"""Profiles of clusters: what every estimator asks after clustering, if a share of the budget is set aside."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sfumato.budget import Step
from sfumato.curator import Questions, profiles_sensitivity
from sfumato.domain import IntArray
from sfumato.domain.columns import Described
from sfumato.domain.partitions import Partition, Tree
from sfumato.public.profiles import Profiles
from sfumato.public.profiles.bins import bins_for, cluster_edges, rows_in, smoothed, table_edges

TABLE, CLUSTERS = "table", "profiles"  # names of the steps

# Tuned: docs/notes/constants.md#profiles
TABLE_SHARE = Fraction(1, 4)  # of the budget for profiles


def profile_steps(n_columns: int) -> tuple[Step, ...]:
    """Steps that `find_profiles` asks, with shares that sum to 1.

    Examples
    --------
    >>> [(step.name, str(step.share)) for step in profile_steps(3)]
    [('table', '1/4'), ('profiles', '3/4')]
    """
    sensitivity = profiles_sensitivity(n_columns)
    return (
        Step(TABLE, TABLE_SHARE, sensitivity=sensitivity),
        Step(CLUSTERS, 1 - TABLE_SHARE, sensitivity=sensitivity),
    )


def find_profiles(
    curator: Questions, partition: Partition, described: Sequence[Described], *, complete: bool = True
) -> Profiles:
    """Ask for the distribution of every described column, in the whole table and in each cluster.

    Parameters
    ----------
    curator : Questions
        Its plan must have the steps of `profile_steps`.
    partition : Partition
        The released clusters. At least one.
    described : sequence of Described
        At least one.
    complete : bool
        Whether every row is in a cluster.

    Privacy
    -------
    Two noisy tables of counts. The bins of the first are public; those of the second depend only on the
    first, which is released. Proof: docs/proofs/profiles.md.
    """
    fine = tuple(table_edges(column) for column in described)
    noisy_table = curator.profiles(TABLE, Tree.root(), fine)
    table = _split(noisy_table.values[0], [len(edges) for edges in fine])
    n_rows = rows_in(table)
    n_bins = bins_for(n_rows, partition.n_cells, curator.noise_std(CLUSTERS))
    edges = tuple(
        cluster_edges(column, line, smoothed(line, counts[:-1], noisy_table.std, n_rows), n_bins)
        for column, line, counts in zip(described, fine, table, strict=True)
    )
    noisy = curator.profiles(CLUSTERS, partition, edges)
    return Profiles(
        tuple(described),
        fine,
        tuple(table),
        edges,
        tuple(_split(noisy.values, [len(line) for line in edges])),
        noisy.record.mechanism,
        noisy_table.std,
        noisy.std,
        complete,
    )


def _split(values: IntArray, lengths: Sequence[int]) -> list[IntArray]:
    """Counts of each column, along the last axis."""
    return [np.ascontiguousarray(part) for part in np.split(values, np.cumsum(lengths)[:-1], axis=-1)]
