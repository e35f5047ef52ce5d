"""What a method states about itself, so that the planner can forecast before anything is spent.

A method states facts, next to the constants it uses. The planner has the formulas. It reads these facts, the
plan, and the questions that the method asks in a rehearsal.
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
    """A group stands out when its size is `times` the noise of a step."""

    step: str
    times: float
    in_sums: bool = True  # whether the step releases sizes together with sums, and not counts alone

    def least_rows(self, questions: Questions) -> float:
        """Rows of the smallest group that stands out."""
        noise = questions.noise_of_sizes if self.in_sums else questions.noise_std
        return self.times * noise(self.step)


@dataclass(frozen=True)
class SplitTree:
    """A tree of splits whose leaves are parts of clusters."""

    sizes: tuple[str, ...]  # steps that count the two sides of the splits, one per level
    above: float  # a leaf is kept when its size is this many times the noise in it
    least: Callable[[Questions, float], float]  # size of a leaf, from the noise and the number of rows


@dataclass(frozen=True)
class Refinement:
    """Rounds that move centres to the noisy means of the rows around them."""

    last: str  # step of the last round, whose noise decides the error of a centre
    distances: str  # step that measures how far rows are from their centres, before the last round
    splits: str | None  # step that splits a cell in two
    n_part_rounds: int  # rounds that move the parts of a cluster before they are merged
    within: float  # share of the rows that these rounds do not clip
    edges: Callable[[Domain], FloatArray]  # bins of the distances
    last_radius: Callable[[Reach, float], float]  # of clipping, from the noise in a mean per unit of radius


@dataclass(frozen=True)
class Moments:
    """Rounds of noisy moments around centres."""

    step: str
    within_first: float  # share of the rows that the first round does not clip
    radius: float  # of clipping in later rounds, in root mean squared distances from the mean


@dataclass(frozen=True)
class Denoising:
    """A model that reads all cells of a grid together; and how cells are read where it is too slow."""

    n_sweeps: Callable[[Grid, int], int]  # of the model's chains, for a number of clusters
    misfit: float  # relative deviation of a cell from the model
    clear: float  # without the model: a clear cell is this many times the noise
    nearly_all: float  # ... and clear cells hold this share of the rows, if the others count as empty
    rows: str | None  # step that counts all rows


class Promise(NamedTuple):
    """What dense places will satisfy."""

    guarantee: Guarantee
    report: int  # a place is reported if it has this noisy number of rows around it
    n_cells: int  # number of cells whose counts add up to it


@dataclass(frozen=True)
class Cells:
    """Noisy counts of the cells of a grid, from which a method computes everything else."""

    bytes_per_cell: int  # if all cells are released
    bytes_listed: int = 0  # in total, if only cells that stand out from the noise are released
    are_spans: bool = False  # whether clusters are sets of cells, and not centres
    denoising: Denoising | None = None
    promise: Callable[[NoisyHistogram], Promise] | None = None  # of a method with a radius and `min_samples`


@dataclass(frozen=True)
class Traits:
    """What a forecast needs to know about a method. The defaults suit a method that states nothing."""

    visible: tuple[Visible, ...] = ()  # conditions that a cluster must meet to be found
    size_step: str | None = None  # step of sums whose noise is the error of a size
    n_integers: int = 0  # in the largest summary of the rows
    tree: SplitTree | None = None
    refinement: Refinement | None = None
    moments: Moments | None = None
    cells: Cells | None = None
    are_joined: bool = False  # whether clusters are parts joined into any shape, and have no errors
    metric: Metric = "euclidean"  # unit of lengths

    def then(self, later: Traits) -> Traits:
        """Traits of a method that continues from what it has found."""
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
