"""Pictures of a release: centres, sizes, spans, mixtures, trees of peaks, chosen places, noisy grid, budget.

Pictures show released values and public parameters. `spans` and `mixture` also draw rows if you pass any.
Install matplotlib with the extra ``report``.
"""

from sfumato.plot.bars import sizes
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

__all__ = ["blank", "budget", "centres", "column_names", "grid", "mixture", "places", "saddles", "sizes"]
__all__ += ["spans", "step_shares", "tree"]
