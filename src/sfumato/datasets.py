"""Data for trying out a clustering: simulated tables, and a folder of public ones.

`separated_gaussians`, `tagged_groups` and `city` come from a random number generator and describe nobody.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_array, vstack

from sfumato.errors import DataError, ParameterError

__all__ = ["CITY_BOUNDS", "CITY_COLUMNS", "CITY_PLACES", "city", "data_home", "load", "load_table"]
__all__ += ["separated_gaussians", "tagged_groups"]

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
RandomState: TypeAlias = int | np.random.Generator | None

_VARIABLE = "SFUMATO_DATA"
_MAX_DRAWS = 1_000
_MAX_RESTARTS = 100


def data_home() -> Path | None:
    """Folder of the data sets that `load` reads.

    Returns
    -------
    Path or None
        The value of the environment variable SFUMATO_DATA, or None when it is not set.
    """
    value = os.environ.get(_VARIABLE)
    return Path(value) if value else None


def load(name: str) -> tuple[FloatArray, IntArray | None]:
    """Read a data set from the folder named by the environment variable SFUMATO_DATA.

    The folder contains `MANIFEST.json`, a list of entries with `name`, `file`, `has_label` and
    `extra_columns`, and a Parquet file for each. All columns except `label` and the extra ones are features.

    Parameters
    ----------
    name : str
        The name of an entry.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The features.
    labels : ndarray of shape (n_samples,) or None
        The class of each row, or None if the data set has no classes. In some data sets -1 means noise.

    Raises
    ------
    DataError
        If SFUMATO_DATA is not set, its folder has no manifest, or the manifest does not list the name.
    """
    entry, path = _entry(name)
    parquet = pq.ParquetFile(path)
    not_features = {"label", *entry["extra_columns"]}
    columns = [column for column in parquet.schema_arrow.names if column not in not_features]
    X = np.empty((parquet.metadata.num_rows, len(columns)))
    features = parquet.read(columns=columns)
    for j, column in enumerate(columns):
        X[:, j] = features[column].to_numpy()
    if not entry["has_label"]:
        return X, None
    return X, parquet.read(columns=["label"])["label"].to_numpy().astype(np.int64)


def load_table(name: str) -> pa.Table:
    """Read a data set with all its columns as stored, including those that identify a person.

    Parameters
    ----------
    name : str
        The name of an entry of the manifest, see `load`.
    """
    return pq.read_table(_entry(name)[1])


def _entry(name: str) -> tuple[dict[str, Any], Path]:
    home = data_home()
    if home is None:
        raise DataError(f"{_VARIABLE} is not set. Set it to the folder with MANIFEST.json and Parquet files.")
    if not (home / "MANIFEST.json").is_file():
        raise DataError(f"{_VARIABLE} must name a folder with MANIFEST.json, got {str(home)!r}.")
    entries = {entry["name"]: entry for entry in json.loads((home / "MANIFEST.json").read_text("utf-8"))}
    if name not in entries:
        raise DataError(f"`name` must be one of {', '.join(sorted(entries))}, got {name!r}.")
    path = home / entries[name]["file"]
    if not path.is_file():
        raise DataError(f"The manifest in {_VARIABLE} lists {name!r}, but its file {path.name!r} is missing.")
    return entries[name], path


def separated_gaussians(
    n: int,
    n_clusters: int,
    n_features: int,
    random_state: RandomState = 0,
    *,
    separation: float = 5.4,
    margin: float = 3.0,
) -> tuple[FloatArray, IntArray]:
    """Well-separated Gaussian clusters in the box [-1, 1]^d, in the style of Su et al. (CODASPY 2016).

    The standard deviation of each coordinate is 0.16 / n_clusters^(1 / n_features). Centres are uniform in
    the box, given that they keep their distance from each other and from the border. Rows outside the box
    are clipped to it.

    Parameters
    ----------
    n : int
        The number of rows. Cluster sizes differ by at most one.
    n_clusters : int
        The number of clusters.
    n_features : int
        The number of columns.
    random_state : int, Generator or None, default=0
        Draws centres and rows.
    separation : float, default=5.4
        The least distance between two centres, in standard deviations.
    margin : float, default=3.0
        The least distance between a centre and the border, in standard deviations. At 3, one centre in the
        middle of the box costs as much as in Table II of Muthukrishnan and Tandon (2026); at 0, twice as
        much.

    Returns
    -------
    X : ndarray of shape (n, n_features)
        The rows.
    labels : ndarray of shape (n,)
        The cluster of each row.

    Raises
    ------
    ParameterError
        If no placement with that separation is found.

    Examples
    --------
    >>> X, labels = separated_gaussians(1_000, n_clusters=4, n_features=2)
    >>> X.shape, np.bincount(labels).tolist()
    ((1000, 2), [250, 250, 250, 250])
    """
    if min(n, n_clusters, n_features) < 1:
        raise ParameterError(
            f"`n`, `n_clusters` and `n_features` must be positive, got {n}, {n_clusters} and {n_features}."
        )
    rng = np.random.default_rng(random_state)
    sigma = 0.16 / n_clusters ** (1 / n_features)
    reach = 1.0 - margin * sigma
    centers = _separated_centers(n_clusters, n_features, separation * sigma, reach, rng)
    labels = rng.permutation(np.arange(n, dtype=np.int64) % n_clusters)
    X = centers[labels] + sigma * rng.standard_normal((n, n_features))
    return np.clip(X, -1.0, 1.0, out=X), labels


def _separated_centers(
    n_clusters: int, n_features: int, gap: float, reach: float, rng: np.random.Generator
) -> FloatArray:
    for _ in range(_MAX_RESTARTS):
        centers = np.empty((n_clusters, n_features))
        if all(_place_center(centers, placed, gap, reach, rng) for placed in range(n_clusters)):
            return centers
    raise ParameterError(
        f"`separation` and `margin` must leave room for {n_clusters} centres {gap:.3g} apart in "
        f"[-{reach:.3g}, {reach:.3g}]^{n_features}; "
        f"{_MAX_RESTARTS} attempts found none. Use a smaller separation."
    )


def _place_center(
    centers: FloatArray, placed: int, gap: float, reach: float, rng: np.random.Generator
) -> bool:
    """Draw `centers[placed]` at a distance from earlier ones; return False if there seems to be no room."""
    for _ in range(_MAX_DRAWS):
        centers[placed] = rng.uniform(-reach, reach, centers.shape[1])
        if (((centers[:placed] - centers[placed]) ** 2).sum(axis=1) >= gap**2).all():
            return True
    return False


N_TAGS = 75_688
_N_BACKGROUND, _DISPERSION = (
    64,
    0.35,
)  # other tags of a row: mean number, and dispersion
_COMMON_SHARE, _COMMON_TIMES = 3_000 / N_TAGS, 8  # of the tags are so many times as likely as the others
_N_CORE, _CORE_RANGE, _SHARED = 121, (0.16, 0.32), 0.15  # tags of a group, their probability, shared ones
_SIZE_POWER = 0.55
_ROWS_AT_A_TIME = 2**16


def tagged_groups(
    n: int = 50_000, n_columns: int = N_TAGS, n_clusters: int = 16, random_state: RandomState = 0
) -> tuple[Any, IntArray]:
    """Simulate sparse rows of tags: 0 or 1 in many columns, in groups that share some of their tags.

    Each group has 121 core tags, and a row has each of its group's with a probability of 0.16 to 0.32. 15 %
    of the core tags belong to several groups. A row also has about 64 other tags, of which 4 % are eight
    times as likely as the rest. The size of group i is proportional to ``i ** -0.55``.

    Parameters
    ----------
    n : int
        Number of rows.
    n_columns : int
        Number of tags. At least 121 for each group.
    n_clusters : int
        Number of groups.
    random_state : int, Generator or None
        Draws the groups and the rows.

    Returns
    -------
    X : scipy.sparse.csr_array of shape (n, n_columns)
    labels : ndarray of shape (n,)
        The group of each row.

    Examples
    --------
    >>> X, labels = tagged_groups(1000)
    >>> X.shape, 85 < X.nnz / 1000 < 100
    ((1000, 75688), True)
    """
    if n < 1 or n_clusters < 1:
        raise ParameterError(f"`n` and `n_clusters` must be positive, got {n} and {n_clusters}.")
    if n_columns < _N_CORE * n_clusters:
        raise ParameterError(f"`n_columns` must be at least {_N_CORE * n_clusters}, got {n_columns}.")
    rng = np.random.default_rng(random_state)
    likely = np.ones(n_columns)
    likely[rng.permutation(n_columns)[: round(_COMMON_SHARE * n_columns)]] = _COMMON_TIMES
    core = _core_tags(n_columns, n_clusters, rng)
    chances = rng.uniform(*_CORE_RANGE, core.shape)
    sizes = np.arange(1, n_clusters + 1) ** -_SIZE_POWER
    labels = rng.choice(n_clusters, n, p=sizes / sizes.sum()).astype(np.int64)
    parts = [
        _tagged_rows(labels[first : first + _ROWS_AT_A_TIME], np.cumsum(likely), core, chances, rng)
        for first in range(0, n, _ROWS_AT_A_TIME)
    ]
    return vstack(parts, format="csr"), labels


def _core_tags(n_columns: int, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """Core tags of each group, of shape (n_clusters, 121): own ones, and some of a pool for three groups."""
    n_shared = round(_SHARED * _N_CORE)
    n_own, n_pool = _N_CORE - n_shared, max(n_shared, n_shared * n_clusters // 3)
    tags = rng.permutation(n_columns)
    own = tags[: n_own * n_clusters].reshape(n_clusters, n_own)
    pool = tags[n_own * n_clusters : n_own * n_clusters + n_pool]
    shared = [rng.choice(pool, n_shared, replace=False) for _ in range(n_clusters)]
    return np.hstack([own, np.array(shared)])


def _tagged_rows(
    labels: IntArray, cumulated: FloatArray, core: IntArray, chances: FloatArray, rng: np.random.Generator
) -> Any:
    """Rows of groups, as a sparse array of zeros and ones."""
    n, n_columns = len(labels), len(cumulated)
    n_background = rng.poisson(_N_BACKGROUND * rng.gamma(1 / _DISPERSION, _DISPERSION, n))
    drawn = np.searchsorted(cumulated, rng.random(n_background.sum()) * cumulated[-1], side="right")
    hits, tags = np.nonzero(rng.random((n, _N_CORE)) < chances[labels])
    rows = np.concatenate([np.repeat(np.arange(n), n_background), hits])
    columns = np.concatenate([np.minimum(drawn, n_columns - 1), core[labels[hits], tags]])
    X = csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n_columns))
    X.sum_duplicates()
    X.data[:] = 1.0
    return X


class _Place(NamedTuple):
    """A built-up ellipse: share of the people, middle, half axes, and angle of the long one."""

    name: str
    share: float
    middle: tuple[float, float]
    half_axes: tuple[float, float]
    degrees: float


_PLACES = (
    _Place("old town", 0.17, (19.2, 13.2), (1.7, 1.4), 60.0),
    _Place("harbour", 0.09, (22.4, 7.6), (2.8, 1.3), 12.0),
    _Place("west end", 0.12, (13.4, 13.2), (2.4, 1.9), 20.0),
    _Place("north side", 0.11, (16.6, 18.8), (2.8, 1.7), 30.0),
    _Place("east bank", 0.13, (25.4, 14.0), (2.7, 2.0), -60.0),
    _Place("university hill", 0.06, (26.4, 20.6), (1.7, 1.5), 0.0),
    _Place("bayside", 0.07, (8.4, 7.6), (2.5, 1.2), -12.0),
    _Place("northfield", 0.06, (5.4, 24.4), (1.5, 1.2), 50.0),
    _Place("eastham", 0.05, (34.6, 19.0), (1.4, 1.1), 10.0),
)
_ROAD_EAST = (0.0, 5.4, 9.8, 13.2, 16.2, 19.2, 25.4, 30.0, 34.6, 40.0)
_ROAD_NORTH = (27.5, 24.4, 21.2, 17.2, 14.8, 14.0, 14.2, 16.8, 19.0, 19.8)
_ROAD_SHARE = 0.03

CITY_BOUNDS = ((0.0, 0.0), (40.0, 30.0))
"""South-western and north-eastern corner of `city`'s map, in kilometres: public, not read off data."""

CITY_COLUMNS = ("east_km", "north_km")
"""Names of the two columns of `city`."""

CITY_PLACES = (*(place.name for place in _PLACES), "main road", "countryside")
"""Places that the labels of `city` stand for. Label -1 is the last one, the countryside."""


def city(n: int = 300_000, random_state: RandomState = 0) -> tuple[FloatArray, IntArray]:
    """Simulate where the people of a city by the sea live, for demonstrations on a map.

    The city has a dense old town in the bend of a river, six districts, two satellite towns, a main road
    lined with houses, and a thinly populated countryside with hamlets. Nobody lives in the river or the sea.

    Parameters
    ----------
    n : int, default=300_000
        The number of people.
    random_state : int, Generator or None, default=0
        Draws the neighbourhoods and the people.

    Returns
    -------
    X : ndarray of shape (n, 2)
        Home positions in kilometres, inside `CITY_BOUNDS`, with the columns `CITY_COLUMNS`.
    labels : ndarray of shape (n,)
        The place of each home: an index into `CITY_PLACES`, -1 for the countryside.

    Examples
    --------
    >>> X, labels = city(1_000)
    >>> X.shape, CITY_PLACES[0], CITY_PLACES[-1]
    ((1000, 2), 'old town', 'countryside')
    """
    if n < 1:
        raise ParameterError(f"`n` must be positive, got {n}.")
    rng = np.random.default_rng(random_state)
    samplers = [_district(place, rng) for place in _PLACES] + [_along_road, _countryside(rng)]
    shares = [place.share for place in _PLACES] + [_ROAD_SHARE]
    sizes = rng.multinomial(n, [*shares, 1.0 - sum(shares)])
    X = np.concatenate([_on_land(sampler, size, rng) for sampler, size in zip(samplers, sizes, strict=True)])
    labels = np.repeat(np.array([*range(len(samplers) - 1), -1], dtype=np.int64), sizes)
    order = rng.permutation(n)
    return X[order], labels[order]


_Sampler: TypeAlias = Callable[[int, np.random.Generator], FloatArray]


def _on_land(sampler: _Sampler, size: int, rng: np.random.Generator) -> FloatArray:
    """Draw until `size` homes lie on land; most of every place is land."""
    homes = np.empty((0, 2))
    while len(homes) < size:
        drawn = sampler(size, rng)
        is_inside = ((drawn >= CITY_BOUNDS[0]) & (drawn <= CITY_BOUNDS[1])).all(axis=1)
        homes = np.concatenate([homes, drawn[is_inside & ~_is_water(drawn)]])
    return homes[:size]


def _is_water(homes: FloatArray) -> npt.NDArray[np.bool_]:
    """Sea in the south with a bay, and a river that winds from the north into the bay."""
    east, north = homes.T
    bay = 4.6 * np.exp(-(((east - 16.4) / 2.1) ** 2))
    coast = 6.0 - 0.05 * east + 1.5 * np.sin(east / 3.6 + 0.4) + 0.3 * np.sin(east * 1.7) + bay
    upstream = np.maximum(north - 8.5, 0.0)
    river = 16.6 + 0.62 * upstream + 2.4 * np.sin(upstream / 2.5)
    half_width = 0.35 + 0.6 * np.exp(-upstream / 2.0)
    is_water: npt.NDArray[np.bool_] = (north < coast) | (np.abs(east - river) < half_width)
    return is_water


def _district(place: _Place, rng: np.random.Generator) -> _Sampler:
    """Neighbourhoods of unequal size, more of them towards the middle of the ellipse."""
    n_neighbourhoods = 80
    radius, turn = rng.random(n_neighbourhoods) ** 0.8, rng.uniform(0.0, 2.0 * np.pi, n_neighbourhoods)
    along, across = np.array(place.half_axes)[:, None] * radius * (np.cos(turn), np.sin(turn))
    angle = np.radians(place.degrees)
    east = place.middle[0] + along * np.cos(angle) - across * np.sin(angle)
    north = place.middle[1] + along * np.sin(angle) + across * np.cos(angle)
    return _around(np.column_stack([east, north]), rng.dirichlet(np.full(n_neighbourhoods, 2.0)), 0.26)


def _around(middles: FloatArray, weights: FloatArray, spread: float) -> _Sampler:
    def draw(size: int, rng: np.random.Generator) -> FloatArray:
        chosen = rng.choice(len(middles), size, p=weights)
        return middles[chosen] + spread * rng.standard_normal((size, 2))

    return draw


def _along_road(size: int, rng: np.random.Generator) -> FloatArray:
    lengths = np.hypot(np.diff(_ROAD_EAST), np.diff(_ROAD_NORTH))
    milestones = np.concatenate(([0.0], np.cumsum(lengths)))
    at = rng.uniform(0.0, milestones[-1], size)
    middle = np.column_stack([np.interp(at, milestones, _ROAD_EAST), np.interp(at, milestones, _ROAD_NORTH)])
    return middle + 0.2 * rng.standard_normal((size, 2))


def _countryside(rng: np.random.Generator) -> _Sampler:
    """Homes in a belt around the city, in hamlets, and anywhere."""
    n_hamlets = 40
    hamlets = _around(rng.uniform(*CITY_BOUNDS, (n_hamlets, 2)), rng.dirichlet(np.full(n_hamlets, 3.0)), 0.2)

    def draw(size: int, rng: np.random.Generator) -> FloatArray:
        belt = rng.normal((18.5, 14.0), (6.0, 4.5), (size, 2))
        kind = rng.choice(3, (size, 1), p=(0.55, 0.15, 0.3))
        return np.choose(kind, (belt, hamlets(size, rng), rng.uniform(*CITY_BOUNDS, (size, 2))))

    return draw
