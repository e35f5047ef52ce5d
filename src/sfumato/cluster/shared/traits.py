"""What a method states about itself, so that a forecast can be made before anything is spent.

A method states facts, each next to the constants that it uses. The planner has the formulas: it reads these
facts, the plan, and the questions that the method asks in a rehearsal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from sfumato.curator import Questions
from sfumato.domain import Domain, FloatArray, Grid
from sfumato.public.density.dbscan import Guarantee
from sfumato.public.density.geometry import Metric
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.reach import Reach


@dataclass(frozen=True)
class Visible:
    """A group stands out when it has this many times the noise of a step.

    Parameters
    ----------
    step : str
    times : float
    in_sums : bool
        Whether the step releases sizes together with sums, and not counts alone.
    """

    step: str
    times: float
    in_sums: bool = True

    def least_rows(self, questions: Questions) -> float:
        """Rows of the smallest group that stands out."""
        noise = questions.noise_of_sizes if self.in_sums else questions.noise_std
        return self.times * noise(self.step)


@dataclass(frozen=True)
class SplitTree:
    """A tree of splits whose leaves are parts of clusters.

    Parameters
    ----------
    sizes : tuple of str
        Steps that count the two sides of the splits, one per level.
    above : float
        A leaf is kept when its size is this many times the noise in it.
    least : function
        Least size of a leaf, from the noise and the number of rows.
    """

    sizes: tuple[str, ...]
    above: float
    least: Callable[[Questions, float], float]


@dataclass(frozen=True)
class Refinement:
    """Rounds that move centres to the noisy means of the rows around them.

    Parameters
    ----------
    last : str
        Step of the last round, whose noise decides the error of a centre.
    distances : str
        Step that measures how far rows are from their centres, before the last round.
    splits : str, optional
        Step that splits a cell in two.
    n_part_rounds : int
        Rounds that move the parts of a cluster before they are merged.
    within : float
        Share of the rows that these rounds do not clip.
    edges : function
        Bins of the distances.
    last_radius : function
        Clipping radius of the last round, from the distances and the noise in a mean per unit of radius.
    """

    last: str
    distances: str
    splits: str | None
    n_part_rounds: int
    within: float
    edges: Callable[[Domain], FloatArray]
    last_radius: Callable[[Reach, float], float]


@dataclass(frozen=True)
class Moments:
    """Rounds of noisy moments around centres.

    Parameters
    ----------
    step : str
    within_first : float
        Share of the rows that the first round does not clip.
    radius : float
        Clipping radius of later rounds, in root mean squared distances from the mean.
    """

    step: str
    within_first: float
    radius: float


@dataclass(frozen=True)
class Denoising:
    """A model that reads all cells of a grid together.

    Parameters
    ----------
    n_sweeps : function
        Sweeps of its chains, for a grid and a number of clusters.
    misfit : float
        Relative deviation of a cell from the model.
    clear, nearly_all : float
        Without the model: how many times the noise a clear cell has, and the share of the rows that clear
        cells must hold for the others to count as empty.
    rows : str, optional
        Step that counts all rows.
    """

    n_sweeps: Callable[[Grid, int], int]
    misfit: float
    clear: float
    nearly_all: float
    rows: str | None


class Promise(NamedTuple):
    """What dense places will satisfy.

    Parameters
    ----------
    guarantee : Guarantee
    report : int
        Noisy rows around a place from which on it is reported.
    n_cells : int
        Cells whose counts make up this number.
    """

    guarantee: Guarantee
    report: int
    n_cells: int


@dataclass(frozen=True)
class Cells:
    """Noisy counts of the cells of a grid, from which a method computes everything else.

    Parameters
    ----------
    bytes_per_cell : int
        Memory, if all cells are released.
    bytes_listed : int
        Memory, if only those are released that stand out from the noise.
    are_spans : bool
        Whether clusters are sets of cells instead of centres.
    denoising : Denoising, optional
    promise : function, optional
        For a method with a radius and `min_samples`: what it promises for a histogram.
    """

    bytes_per_cell: int
    bytes_listed: int = 0
    are_spans: bool = False
    denoising: Denoising | None = None
    promise: Callable[[NoisyHistogram], Promise] | None = None


@dataclass(frozen=True)
class Traits:
    """What a forecast needs to know about a method. The defaults suit a method that states nothing.

    Parameters
    ----------
    visible : tuple of Visible
        What a cluster must pass to be found.
    size_step : str, optional
        Step of sums whose noise is the error of a size.
    n_integers : int
        Integers in the largest summary of the rows.
    tree, refinement, moments, cells : optional
        Parts of the method.
    are_joined : bool
        Whether clusters are parts joined into any shape, without errors of centres and sizes.
    metric : {"euclidean", "geo"}
        Unit of lengths.
    """

    visible: tuple[Visible, ...] = ()
    size_step: str | None = None
    n_integers: int = 0
    tree: SplitTree | None = None
    refinement: Refinement | None = None
    moments: Moments | None = None
    cells: Cells | None = None
    are_joined: bool = False
    metric: Metric = "euclidean"

    def then(self, later: Traits) -> Traits:
        """Traits of both, for a method that goes on from what it has found so far."""
        return Traits(
            self.visible + later.visible,
            later.size_step or self.size_step,
            max(self.n_integers, later.n_integers),
            later.tree or self.tree,
            later.refinement or self.refinement,
            later.moments or self.moments,
            later.cells or self.cells,
            later.are_joined or self.are_joined,
            self.metric,
        )
