"""Pictures of a release: centres, sizes, numbers of clusters, spans, mixtures, trees, places, grid, budget.

Pictures show released values and public parameters. `spans` and `mixture` also draw rows if you pass any.
Install matplotlib with the extra ``report``.
"""

from sfumato.plot.bars import sizes
from sfumato.plot.curves import numbers
from sfumato.plot.grids import grid
from sfumato.plot.levels import tree
from sfumato.plot.marks import centres
from sfumato.plot.mixtures import mixture
from sfumato.plot.outlines import spans
from sfumato.plot.places import places
from sfumato.plot.steps import budget, step_shares
from sfumato.plot.style import Source as Source  # for annotations, not a picture
from sfumato.plot.style import blank, column_names
from sfumato.plot.trees import saddles

__all__ = ["blank", "budget", "centres", "column_names", "grid", "mixture", "numbers", "places", "saddles"]
__all__ += ["sizes", "spans", "step_shares", "tree"]
