"""Mergeable integer summaries of rows, each with a proved sensitivity.

An engine folds an aggregate over rows: ``zero()``, then ``add(state, block)`` per block, then ``merge(a,
b)``. States are integers and merging is exactly associative, so the result does not depend on how rows are
split. There is no noise and no budget here.
"""

from sfumato.private.aggregates.base import Aggregate
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.aggregates.coverage import Coverage
from sfumato.private.aggregates.distances import Distances
from sfumato.private.aggregates.histograms import Histograms
from sfumato.private.aggregates.mapped import Clipped, Projected
from sfumato.private.aggregates.moments import GroupedMoments, SoftMoments
from sfumato.private.aggregates.nearest import NearestDistance, NearestSums
from sfumato.private.aggregates.sparse_cells import SparseCells
from sfumato.private.aggregates.splits import Marginals, SplitRule
from sfumato.private.aggregates.sums import GroupedSums
from sfumato.private.aggregates.swaps import Swaps

__all__ = [
    "Aggregate",
    "CellCounts",
    "Clipped",
    "Coverage",
    "Distances",
    "GroupedMoments",
    "GroupedSums",
    "Histograms",
    "Marginals",
    "NearestDistance",
    "NearestSums",
    "Projected",
    "RowCount",
    "SoftMoments",
    "SparseCells",
    "SplitRule",
    "Swaps",
]
