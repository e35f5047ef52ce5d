"""Mergeable integer summaries of rows, each with a proved sensitivity.

An aggregate is folded over rows by an engine: ``zero()``, then ``add(state, block)`` per block, then
``merge(a, b)``. States are integers and merging is exactly associative, so the result does not depend on
how rows were split. No noise and no budget here.
"""

from sfumato.aggregates.base import Aggregate, Sensitivity
from sfumato.aggregates.cells import Cells
from sfumato.aggregates.counts import RowCount
from sfumato.aggregates.coverage import Coverage
from sfumato.aggregates.distances import Distances
from sfumato.aggregates.histograms import Histograms
from sfumato.aggregates.mapped import Clipped, Projected
from sfumato.aggregates.moments import GroupedMoments, SoftMoments
from sfumato.aggregates.nearest import NearestDistance, NearestSums
from sfumato.aggregates.sparse import SparseCells
from sfumato.aggregates.splits import Marginals, SplitRule
from sfumato.aggregates.sums import GroupedSums
from sfumato.aggregates.swaps import Swaps

__all__ = [
    "Aggregate",
    "Cells",
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
    "Sensitivity",
    "SoftMoments",
    "SparseCells",
    "SplitRule",
    "Swaps",
]
