"""Public facts about a table: its space, its columns, and how space is cut into groups.

Everything here is declared before the data is opened, or maps one row at a time.
"""

from sfumato.domain.arrays import FloatArray, IntArray, check_shape
from sfumato.domain.clipping import LATTICE_RADIUS
from sfumato.domain.grids import MOST_CELLS, Grid
from sfumato.domain.measure import Measure as Measure
from sfumato.domain.space import ALL_ROWS, LARGEST_BOUND, MOST_COLUMNS, Domain, Unit
from sfumato.domain.space import Ball as Ball
from sfumato.domain.space import Outside as Outside
from sfumato.domain.space import Sphere as Sphere
from sfumato.domain.sparse import Sparse as Sparse

__all__ = ["ALL_ROWS", "LARGEST_BOUND", "LATTICE_RADIUS", "MOST_CELLS"]
__all__ += ["MOST_COLUMNS", "Ball", "Domain", "FloatArray", "Grid", "IntArray", "Measure", "Outside"]
__all__ += ["Sparse", "Sphere", "Unit", "check_shape"]
