"""Tables whose profiles are known exactly, and a curator that answers with noise of a chosen size."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from sfumato.budget import Record, Sensitivity
from sfumato.cluster.shared.profiles import find_profiles
from sfumato.curator import Noisy, Questions
from sfumato.domain.columns import Described
from sfumato.domain.partitions import Partition
from sfumato.private.aggregates.profiles import ProfileCounts
from sfumato.public.profiles import Profiles


@dataclass(frozen=True, eq=False)
class Numbered:
    """Groups by number: the one clustered coordinate of a row is its group, -1 for none."""

    n_cells: int

    def index(self, rows: np.ndarray) -> np.ndarray:
        return rows[:, 0].astype(np.int64)


@dataclass(frozen=True, eq=False)
class World:
    """Rows with their clusters, and values of the described columns."""

    described: tuple[Described, ...]
    groups: np.ndarray
    values: np.ndarray
    n_clusters: int

    def profiles(
        self, std: float, seed: int = 0, mechanism: str = "discrete Gaussian", complete: bool = True
    ) -> Profiles:
        curator = NoisyCounts(self, std, seed, mechanism)
        return find_profiles(curator, Numbered(self.n_clusters), self.described, complete=complete)

    def column(self, name: str, cluster: int | None = None) -> np.ndarray:
        """Exact values of a column in a cluster, without missing ones."""
        place = [one.column for one in self.described].index(name)
        own = self.values[:, place] if cluster is None else self.values[self.groups == cluster, place]
        return own[np.isfinite(own)]


class NoisyCounts(Questions):
    """Counts with rounded noise of a standard deviation."""

    def __init__(self, world: World, std: float, seed: int, mechanism: str) -> None:
        self.world, self.std, self.mechanism = world, std, mechanism
        self.rng = np.random.default_rng(seed)

    def noise_std(self, step: str) -> float:
        return self.std

    def profiles(self, step: str, partition: Partition, edges: list[np.ndarray]) -> Noisy:
        rows = np.column_stack([self.world.groups, self.world.values]).astype(np.float64)
        aggregate = ProfileCounts(partition, 1, tuple(edges))
        raw = aggregate.add(aggregate.zero(), rows)
        is_laplace = self.mechanism == "discrete Laplace"
        draw = self.rng.laplace(size=raw.shape) / 2**0.5 if is_laplace else self.rng.normal(size=raw.shape)
        scale = Fraction(max(self.std, 0.01) / (2**0.5 if is_laplace else 1))
        record = Record(step, self.mechanism, Sensitivity(), scale)
        return Noisy(raw + np.rint(self.std * draw).astype(np.int64), record)


def make_world(n: int = 6000, k: int = 4, seed: int = 0) -> World:
    """Clusters that differ in age and ward, not in luck; hours tie at 40; some wards and ages are missing."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(k, n, p=np.arange(k, 0, -1) / (k * (k + 1) / 2))
    age = np.clip(np.rint(rng.normal(25 + 12 * groups, 8)), 0, 100)
    hours = np.where(rng.random(n) < 0.5, 40.0, np.clip(np.rint(rng.normal(38, 12, n)), 0, 100))
    income = np.exp(rng.normal(10 + 0.2 * groups, 0.8)).clip(0, 10_000_000)
    day = np.floor(rng.uniform(19_000, 19_365, n))
    ward = np.where(rng.random(n) < 0.6, groups % 3, rng.integers(0, 4, n)).astype(np.float64)
    luck = rng.integers(0, 3, n).astype(np.float64)
    hour = (8 + 2 * groups + rng.normal(0, 2, n)) % 24
    age[rng.random(n) < 0.05] = np.nan
    ward[rng.random(n) < 0.1] = np.nan
    described = (
        Described("age", low=0, high=100, unit="years"),
        Described("hours", low=0, high=100),
        Described("income", low=0, high=10_000_000),
        Described("day", "date", 18_993, 19_723),
        Described("ward", "level", levels=("Medicine", "Surgery", "Eyes")),
        Described("luck", "level", levels=("bad", "fair", "good")),
        Described("hour", "cycle", 0.0, 24.0),
    )
    values = np.column_stack([age, hours, income, day, ward, luck, hour])
    return World(described, groups, values, k)


@pytest.fixture(scope="session")
def world() -> World:
    return make_world()


@pytest.fixture(scope="session")
def worlds():
    """Makes worlds of other sizes."""
    return make_world
