"""Groups of rows that an engine keeps from one fold to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import FloatArray, IntArray
from sfumato.domain.partitions import Partition, Subset, Tree, Voronoi
from sfumato.private.aggregates.base import Grouped

MOST_GROUPS = 2**15  # a limit: groups are kept in 16 bits

Kept: TypeAlias = NDArray[np.int16]
Find: TypeAlias = Callable[[FloatArray, Kept], IntArray]


class KnownGroups:
    """Groups of the rows of some blocks under the last partition that was asked about.

    If the next partition is the same one, or a tree that grew from it, rows are not sorted into groups anew.
    A partition is public and a group depends on its row alone, so this changes no group. The groups are
    private: they never leave an engine but into an aggregate.
    """

    def __init__(self) -> None:
        self._partition: Partition | None = None
        self._groups: list[Kept] = []

    def fold(self, aggregate: Grouped, blocks: Iterable[FloatArray]) -> IntArray:
        """Fold an aggregate over blocks: those of the last time, in the same order."""
        state = aggregate.zero()
        for block, groups in self._grouped(aggregate, blocks):
            state = aggregate.add_to_groups(state, block, groups)
        return state

    def _grouped(
        self, aggregate: Grouped, blocks: Iterable[FloatArray]
    ) -> Iterator[tuple[FloatArray, IntArray]]:
        subset = aggregate.partition if isinstance(aggregate.partition, Subset) else None
        partition = subset.partition if subset else aggregate.partition
        further, before, kept = _further(partition, self._partition), self._groups, []
        for place, block in enumerate(blocks):
            aggregate.check(block)
            is_known = further is not None and place < len(before) and len(before[place]) == len(block)
            groups = further(block, before[place]) if further and is_known else partition.index(block)
            kept.append(groups.astype(np.int16))
            yield block, subset.renumbered(groups) if subset else groups
        is_small = partition.n_cells <= MOST_GROUPS
        self._partition, self._groups = (partition, kept) if is_small else (None, [])


def _further(partition: Partition, before: Partition | None) -> Find | None:
    """How to find the groups of a partition from those of the one before; None if they must be found anew."""
    if partition is before:
        return lambda rows, groups: groups.astype(np.int64)
    if isinstance(partition, Tree) and isinstance(before, Tree):
        walk = partition.further(before)
        return walk.index if walk else None
    if isinstance(partition, Voronoi) and before is not None:
        hints = partition.further(before)
        return hints.index if hints else None
    return None
