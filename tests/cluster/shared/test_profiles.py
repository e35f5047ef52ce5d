"""What profiles ask, what they spend, and that the answers of the curator lead to them."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from sfumato import LloydKMeans
from sfumato.budget import Budget, Plan, calibrate
from sfumato.cluster.shared.profiles import find_profiles, profile_steps
from sfumato.curator import Curator
from sfumato.domain import Domain
from sfumato.domain.columns import Described
from sfumato.domain.partitions import Voronoi
from sfumato.private.aggregates.profiles import ProfileCounts
from sfumato.private.mechanisms.entropy import Entropy

CENTRES = np.array([[0.2], [0.8]])
DESCRIBED = (
    Described("x", low=0, high=1_000_000),
    Described("kind", "level", levels=("a", "b")),
)


class WideEngine:
    """Rows with the clustered coordinate first, then described values."""

    n_features = 1

    def __init__(self, rows):
        self.rows = rows

    def fold(self, aggregate):
        return aggregate.add(aggregate.zero(), self.rows)


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    place = rng.choice(CENTRES[:, 0], n)
    x = np.rint(rng.gamma(4, 5 + 20 * place)) * 10
    kind = np.where(rng.random(n) < place, 0.0, 1.0)
    kind[rng.random(n) < 0.1] = np.nan
    return np.column_stack([place, x, kind])


def curator_over(rows, budget, seed=0):
    plan = calibrate(Plan(*profile_steps(2)), budget, 1)
    return Curator(WideEngine(rows), Domain.from_bounds((0.0, 1.0), 1), plan, Entropy(seed))


@pytest.mark.parametrize("n_columns", [1, 2, 20])
def test_steps_take_all_of_the_share_and_declare_one_entry_per_column(n_columns):
    steps = profile_steps(n_columns)
    assert sum(Fraction(step.share) for step in steps) == 1
    assert {step.sensitivity for step in steps} == {ProfileCounts.sensitivity_in(n_columns)}


@pytest.mark.parametrize("budget", [Budget(1), Budget(1, 1e-6), Budget(rho=0.1)])
def test_what_is_spent_is_what_was_planned(budget):
    curator = curator_over(table(500), budget)
    find_profiles(curator, Voronoi(CENTRES), DESCRIBED)
    assert [record.step for record in curator.records] == ["table", "profiles"]
    assert tuple(curator.records) == curator.plan.records()


@pytest.mark.parametrize("seed", range(3))
def test_profiles_are_near_the_rows(seed):
    rows = table(20_000)
    found = find_profiles(curator_over(rows, Budget(1), seed), Voronoi(CENTRES), DESCRIBED)
    for c, centre in enumerate(CENTRES[:, 0]):
        own = rows[rows[:, 0] == centre]
        assert found.size(c).value == pytest.approx(len(own), rel=0.02)
        assert found.share(c, "kind")["a"].value == pytest.approx((own[:, 2] == 0).mean(), abs=0.02)
        # Bounds are a thousand times as wide as the values: the bins follow the table.
        assert found.quantile(c, "x", 0.5).value == pytest.approx(np.median(own[:, 1]), abs=2000)
    assert found.distinct(0)[0].is_clear


def test_questions_do_not_depend_on_rows():
    """The first question is public; the second depends only on the first answer."""
    asked = []

    class Recorded(Curator):
        def profiles(self, step, partition, edges):
            asked.append((step, [line.tolist() for line in edges]))
            return super().profiles(step, partition, edges)

    fine = []
    for rows in (table(0), table(2000)):
        recorded = _as(Recorded, curator_over(rows, Budget(1)))
        asked.clear()
        find_profiles(recorded, Voronoi(CENTRES), DESCRIBED)
        fine.append(asked[0])
    assert fine[0] == fine[1]


def _as(cls, curator):
    curator.__class__ = cls
    return curator


def test_an_empty_table_has_profiles_too():
    found = find_profiles(curator_over(table(0), Budget(1)), Voronoi(CENTRES), DESCRIBED)
    assert found.size().high < 100
    assert len(found.rows()) > 10
    assert "Too few" in found.sentence(0) or "noise" in found.sentence(0)


def test_memory_of_hundreds_of_clusters_is_small():
    many = Voronoi(np.linspace(0, 1, 300)[:, None])
    found = find_profiles(curator_over(table(2000), Budget(1)), many, DESCRIBED)
    assert found.n_clusters == 300
    assert sum(counts.size for counts in found.counts) < 300 * 100
    assert len(found.sentence(299)) < 300


@pytest.mark.parametrize("seed", range(2))
def test_a_fit_tells_about_columns_that_it_did_not_cluster_by(seed):
    """Compared with exact shares and medians by the labels of the rows."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, 6000)
    age, stay = np.rint(rng.normal(30 + 15 * group, 5)).clip(0, 100), rng.gamma(2, 2 + group)
    ward = np.where(rng.random(6000) < 0.7, group, rng.integers(0, 3, 6000))
    rows = pa.table({"age": age, "stay": stay, "ward": np.array(["Medicine", "Surgery", "Eyes"])[ward]})
    model = LloydKMeans(
        3,
        epsilon=4,
        bounds={"age": (0, 100), "stay": (0, 60)},
        describe={"ward": ["Medicine", "Surgery"]},
        random_state=seed,
    ).fit(rows)
    found, held = model.profiles_, []
    assert found.names == ("age", "stay", "ward")
    assert found.distinct(0)[0].column == "age"
    for c in range(3):
        own = model.labels_ == c
        exact = [(ward[own] == level).mean() for level in range(3)] + [0.0]
        shares = found.share(c, "ward")
        assert list(shares) == ["Medicine", "Surgery", "other", "missing"]
        held += [low <= p <= high for p, (_, low, high) in zip(exact, shares.values(), strict=True)]
        median = found.quantile(c, "age", 0.5)
        held.append(median.low <= np.quantile(age[own], 0.5, method="inverted_cdf") <= median.high)
        assert found.size(c).value == pytest.approx(own.sum(), rel=0.05)
    assert sum(held) >= 12  # of 15
