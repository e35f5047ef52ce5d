"""The tuned constants of `cluster` and `public`, with two other values for each and the trials that depend on it."""

from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module
from typing import Any, NamedTuple

CENTRES = ("LloydKMeans", "CoresetKMeans", "MaxCoverKMeans", "LocalSearchKMeans")
CENTRE_FILES = ("lloyd_kmeans", "coreset_kmeans", "max_cover_kmeans", "local_search_kmeans")


class Tuned(NamedTuple):
    """A constant that was tuned.

    Parameters
    ----------
    module, name : str
        Where it is. A dot in the name is a field of a named tuple.
    others : tuple
        Other values; a dict also has those of constants that must follow.
    trials : tuple of str
    importers : tuple of str
        Modules that import it.
    balance : str
        Constant of the same module, or of an importer, that takes up what a share gives away.
    is_compiled : bool
        Whether compiled code holds its value.
    """

    module: str
    name: str
    others: tuple[Any, ...]
    trials: tuple[str, ...]
    importers: tuple[str, ...] = ()
    balance: str = ""
    is_compiled: bool = False

    @property
    def key(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def value(self) -> Any:
        return self._read(self.name)

    def values_with(self, other: Any) -> dict[str, Any]:
        """Values of the constants to change, by name."""
        if isinstance(other, dict):
            return other
        values = dict([self._written(self.name, other, {})])
        if self.balance:
            rest = self._read(self.balance) + self.value - other
            values |= dict([self._written(self.balance, rest, values)])
        return values

    def _read(self, name: str) -> Any:
        constant, _, field = name.partition(".")
        for module in map(import_module, (self.module, *self.importers)):
            if hasattr(module, constant):
                value = getattr(module, constant)
                return getattr(value, field) if field else value
        raise AttributeError(name)

    def _written(self, name: str, value: Any, others: dict[str, Any]) -> tuple[str, Any]:
        constant, _, field = name.partition(".")
        if not field:
            return constant, value
        return constant, (others.get(constant) or self._read(constant))._replace(**{field: value})


def halved(value: Any) -> tuple[Any, Any]:
    """Half and double."""
    if isinstance(value, int):
        return value // 2, 2 * value
    return value / 2, 2 * value


def group(
    module: str, trials: tuple[str, ...], names: dict[str, tuple[Any, ...]], **options: Any
) -> Iterator[Tuned]:
    """Constants of a module that share their trials; without other values, half and double are taken."""
    path = f"sfumato.{module}"
    for name, others in names.items():
        tuned = Tuned(path, name, others, trials, **options)
        yield tuned if others else tuned._replace(others=halved(tuned.value))


REFINE, CANDIDATES = "cluster.shared.refine", "cluster.shared.candidates"
CHOOSERS = tuple(f"sfumato.cluster.{name}" for name in ("max_cover_kmeans", "local_search_kmeans"))
METHODS = tuple(f"sfumato.cluster.{name}" for name in CENTRE_FILES)
HISTOGRAMS = ("CoresetKMeans", "LocalSearchKMeans", "DPMoG, centres")
THIRDS = (Fraction(3, 20), Fraction(9, 20))

TUNED: tuple[Tuned, ...] = (
    *group(
        "cluster.density_tree",
        ("DensityTree",),
        {
            "OUTLINE_SHARE": (),
            "_OUTLINE_CELLS_PER_ROW": (),
            "_MOST_OUTLINE_EPSILON": (),
            "_MOST_LEAST_EPSILON": (),
            "_ROWS_PER_LEAF": (),
            "_MOST_ELONGATED": (),
        },
    ),
    *group("public.density.joins", ("DensityTree",), {"_POWER": (2, 5)}),
    *group("public.density.joins", ("DensityTree",), {"_CHOSEN": (0.8, 1.4)}, is_compiled=True),
    *group(
        "public.density.levels",
        ("DensityTree",),
        {
            "_EDGE_PRECISION": (),
            "_PER_LARGEST": (1.25, 1.75),
            "_LESS": (2.7, 3.9),
            "_PER_LARGEST_GAP": (),
            "_LESS_GAP": (),
            "_FALSE_CHANCE": (0.002, 0.2),
            "_TAIL_SHARE": (),
            "_OUTSIDE_SHARE": (),
            "_OUTSIDE_ROWS": (),
            "_AWAY_SHARE": (),
            "_AWAY_ROWS": (),
            "_FALLS_OFF": (0.1, 0.4),
            "_STAYS": (0.3, 0.9),
            "_SURE": (),
        },
    ),
    *group(
        "public.density.dbscan",
        ("DPDBSCAN",),
        {
            "FALSE_SHARE": (0.5, 0.9),
            "VALLEY_DEPTH": (),
            "VALLEY_DEPTH_DEVIATIONS": (),
            "VALLEY_FLOOR": (),
            "VALLEY_FLOOR_DEVIATIONS": (),
        },
    ),
    *group(
        "cluster.dpm",
        ("DPM",),
        {
            "SPLIT_BINS": (),
            "LARGE": (1.6, 3.3),
            "EXTRA_LEVELS": (),
            "COUNT_SHARE": (),
            "TREE_SHARE": (),
            "LEAVES_SHARE": (),
            "LEAF_ABOVE": (),
            "MEANINGFUL": (),
        },
    ),
    *group("public.kmeans", ("DPM, k open",), {"NEARLY": (), "CLEAR_GAIN": ()}),
    *group("public.kmeans", ("DPM",), {"N_STARTS": ()}),
    *group("cluster.lloyd_kmeans", ("LloydKMeans",), {"MOVES_ABOVE": (), "RESEED_DISTANCE": ()}),
    *group("public.packing", ("LloydKMeans",), {"DRAWS_PER_CENTRE": (), "MOST_DRAWS": (), "HALVINGS": ()}),
    *group(REFINE, CENTRES, {"REFINE_SHARE": (Fraction(1, 4), Fraction(3, 4))}, importers=METHODS),
    *group(
        REFINE,
        ("LloydKMeans", "DPM"),
        {
            "N_ROUNDS": ({"N_ROUNDS": 3, "MEASURED": (1, 2)}, 8),
            "MEASURED": ((1,), (1, 2, 3)),
            "WITHIN_RADIUS": (0.5, 0.9),
            "LAST_SHARES": ((0.7,), (1.0,)),
            "ONE_SIDED": (),
            "BINS_PER_OCTAVE": (2, 6),
            "N_OCTAVES": (),
            "MOST": (0.45, 0.8),
            "SEEN_ABOVE": (),
        },
    ),
    *group(REFINE, ("LloydKMeans",), {"SPLIT_SHARE": ()}),
    *group(REFINE, ("stated errors",), {"UNDONE": ()}),
    *group(REFINE, ("DPM",), {"WIDTH_BONUS": ()}, importers=("sfumato.cluster.dpm",)),
    *group(
        REFINE,
        HISTOGRAMS,
        {"HISTOGRAM_SHARE": ()},
        importers=("sfumato.cluster.shared.candidates", "sfumato.cluster.shared.moments"),
    ),
    *group(
        "public.reach",
        HISTOGRAMS,
        {"MOST_ROWS": (0.8, 0.97)},
        importers=tuple(
            f"sfumato.cluster.{name}" for name in ("shared.candidates", "shared.moments", "coreset_kmeans")
        ),
    ),
    *group("public.reach", ("LloydKMeans",), {"CLEAR_COUNT": ()}),
    *group(
        "cluster.coreset_kmeans",
        ("CoresetKMeans",),
        {
            "MIDDLE_SHARE": (),
            "SKETCH_SHARE": (),
            "CUTS_SHARE": (),
            "MEANS_SHARE": (),
            "DISTANCES_SHARE": (),
            "SKETCH_ROUNDS": (),
            "SKETCH_DIRECTIONS": (3, 9),
            "EXTRA_CUTS": (2, 5),
            "CUT_BINS": (),
            "LEFT_OVER": (),
            "WINDOW": (),
            "LEAST_OF_CLUSTER": (),
            "LEAST_OF_NOISE": (),
            "LEAF_BINS_PER_OCTAVE": (),
            "LEAF_OCTAVES": (8, 20),
            "CORESET_STARTS": (10, 60),
        },
    ),
    *group(
        CANDIDATES,
        ("LocalSearchKMeans", "MaxCoverKMeans"),
        {
            "EXTRA_DIRECTIONS": (),
            "N_LEVELS": (),
            "BOX_REACH": (),
            "SPLIT_ABOVE": (),
            "KEEP_ABOVE": (),
            "PARTS_PER_CLUSTER": (),
            "LEAVES_PER_CANDIDATE": (),
            "MIDDLE_SHARE": (),
            "REACH_SHARE": (),
            "MEANS_SHARE": (),
            "RECOVERS_ABOVE": (),
            "BOX_BINS_PER_OCTAVE": (),
            "BOX_OCTAVES": (8, 30),
        },
    ),
    *group(CANDIDATES, ("LocalSearchKMeans", "MaxCoverKMeans"), {"RADIUS_FACTOR": ()}, importers=CHOOSERS),
    *group(
        CANDIDATES,
        ("MaxCoverKMeans",),
        {"RADIUS_SHARE": (), "RECOVERY_SHARE": ()},
        importers=CHOOSERS[:1],
        balance="CANDIDATE_SHARE",
    ),
    *group("cluster.max_cover_kmeans", ("MaxCoverKMeans",), {"COVER_SHARE": ()}, balance="CANDIDATE_SHARE"),
    *group(
        "cluster.max_cover_kmeans",
        ("MaxCoverKMeans",),
        {"CANDIDATE_SHARE": (Fraction(30, 100), Fraction(60, 100))},
        balance="RECOVERY_SHARE",
    ),
    *group(
        "cluster.local_search_kmeans", ("LocalSearchKMeans",), {"SWAP_SHARE": ()}, balance="CANDIDATE_SHARE"
    ),
    *group(
        "cluster.local_search_kmeans",
        ("LocalSearchKMeans",),
        {"CANDIDATE_SHARE": (Fraction(40, 100), Fraction(70, 100))},
        balance="RECOVERY_SHARE",
    ),
    *group("cluster.local_search_kmeans", ("LocalSearchKMeans",), {"N_SWAPS": ()}),
    *group(
        "cluster.shared.moments",
        ("DPMoG, centres",),
        {"RADIUS": (1.5, 3.0), "LEAST_SIZE": ()},
    ),
    *group("cluster.shared.moments", ("MorseClustering, centres",), {"COVARIANCE_SHARE": ()}),
    *group(
        "cluster.mog",
        ("DPMoG, centres",),
        {"MOMENTS_SHARE": (Fraction(1, 4), Fraction(3, 4)), "N_MOMENT_ROUNDS": (1, 6)},
    ),
    *group("cluster.mog", ("DPMoG, grid",), {"GRID_COLUMNS": (1,)}),
    *group("public.mixtures.em", ("DPMoG, grid",), {"_N_STARTS": (1, 10)}),
    *group("public.mixtures.em", ("DPMoG, grid",), {"N_ITER": ()}, importers=("sfumato.cluster.mog",)),
    *group("public.mixtures.doubt", ("MorseClustering",), {"_SURE": ()}),
    *group("public.models.mixture", ("MorseClustering", "DPMoG, centres"), {"_LEAST_WEIGHT": ()}),
    *group(
        "public.mixtures.saddles",
        ("MorseClustering",),
        {
            "_LEAST_MARGIN": (),
            "_MOST_MARGIN": (),
            "_MARGIN_SHARES": ((0.25, 0.05), (1.0, 0.2)),
            "_N_NODES": (),
            "_MOST_ROUNDS": (),
            "_N_NEIGHBOURS": (),
            "_N_SWEEPS": (),
        },
    ),
    *group("public.mixtures.peaks", ("MorseClustering",), {"_NEAR": ()}),
    *group(
        "cluster.source_target",
        ("SourceTargetClustering",),
        {
            "RING_EDGES": ((0.75, 1.5), (0.25, 0.5, 0.75, 1.0, 1.5)),
            "RING_SPACING": (),
            "SHARES": ((1.0,), (0.2,) * 5),
        },
    ),
    *group(
        "public.places.nearest_rows",
        ("SourceTargetClustering",),
        {"LIKE_NEIGHBOURS": ()},
    ),
    *group("cluster.shared.base", ("private bounds",), {"BOUNDS_SHARE": ()}),
    *group(
        "cluster.shared.bounds",
        ("private bounds",),
        {
            "LEAST_BINS": (),
            "MOST_BINS": (),
            "ENOUGH_BINS": (),
            "NARROW": (),
            "SPREAD": (),
            "OCTAVES": (),
            "CUT": (),
            "KEPT": (0.8, 0.95),
            "LOST": (),
            "LARGEST_CUT": (),
            "MAGNITUDES.false_alarm": (1e-4, 1e-2),
            "MAGNITUDES.margin": (),
            "COARSE.false_alarm": (1e-3, 1e-1),
            "COARSE.tails": (),
            "FINE.false_alarm": (1e-3, 1e-1),
            "FINE.tails": (),
        },
    ),
    *group(
        "cluster.shared.bounds",
        ("private bounds",),
        {"MAGNITUDES.share": THIRDS, "FINE.share": THIRDS},
        balance="COARSE.share",
    ),
    *group("cluster.shared.caps", ("suggest_max_rows",), {"FALSE_ALARM": (1e-3, 1e-1), "LONGEST": ()}),
    *group(
        "cluster.shared.grid_release",
        ("GridKMeans", "DensityTree"),
        {"ROWS_SHARE": ()},
        importers=("sfumato.cluster.density_tree",),
    ),
    *group("cluster.grid_kmeans", ("GridKMeans",), {"DENOISING_GAIN": (1.5, 6)}),
    *group(
        "public.grid.posterior",
        ("GridKMeans",),
        {
            "N_SWEEPS": (),
            "AGREEMENT": (),
            "MAX_WORK": (),
            "MIN_SWEEPS": (),
        },
    ),
    *group(
        "public.grid.posterior",
        ("GridKMeans",),
        {"N_CHAINS": (1, 6), "GLANCE_SWEEPS": (), "START_RUNS": ()},
        importers=("sfumato.public.grid.synopsis",),
    ),
    *group(
        "public.grid.synopsis",
        ("GridKMeans, fine",),
        {"COARSE_CELLS": (), "CLEAR_CELL": (), "NEARLY_ALL": (0.96, 0.995), "N_MOVES": ()},
    ),
    *group("public.grid.chains", ("GridKMeans",), {"CONCENTRATION": ()}),
    *group(
        "public.grid.chains",
        ("GridKMeans",),
        {"MISFIT": (), "SPREADS": ((0.005, 0.35), (0.01, 0.7))},
        importers=("sfumato.public.grid.posterior",),
    ),
)
