"""Numbers, categories, ranks, cycles and described columns in one table: what every estimator promises.

Spends are computed by the accountant of `test_spend`. Neighbours are compared at the waist: a fit on the
second table gets the answers of the first, so it asks the same questions, and what it folds may differ by no
more than the sensitivity that was recorded.
"""

import inspect
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from tests.conftest import QUICK
from tests.contract.test_control_flow import Tape, recorded
from tests.contract.test_spend import check_spend, size

from sfumato import DPM, GridKMeans, LloydKMeans
from sfumato.curator import Curator
from sfumato.errors import ParameterError

pytestmark = pytest.mark.usefixtures("quick")
slow = pytest.mark.slow
BOUNDS = {
    "age": (0, 100),
    "job": ["clerk", "cook"],
    "hour": {"cycle": (0, 24)},
    "degree": {"levels": ["low", "middle", "high"], "ordered": True},
}
SMALL = {"job": ["clerk", "cook"], "hour": {"cycle": (0, 24)}}  # of methods for few columns
DESCRIBED = {"ward": ["x", "y"], "stay": (0, 30), "when": {"cycle": (0, 7)}}
PEOPLE = {"unit": "who", "max_rows_per_unit": 3}
BUDGETS = {"pure": {"epsilon": "2"}, "delta": {"epsilon": "2", "delta": "1e-5"}, "rho": {"rho": "0.1"}}


def draw_table(n, seed=0):
    """Rows of people with four each, more than are used; some values of described columns are missing."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "who": [f"person {i // 4}" for i in range(n)],
            "age": rng.choice([25.0, 60.0, 130.0], n) + rng.normal(0, 5, n),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
            "hour": rng.uniform(-3, 40, n),
            "degree": rng.choice(["low", "middle", "high"], n),
            "ward": rng.choice(["x", "y", "z", None], n),
            "stay": rng.choice([1.0, 5.0, 100.0, np.nan], n),
            "when": rng.choice([0.0, 3.5, np.nan], n),
        }
    )


def parameters_of(estimator_class):
    """Few clusters, columns that the estimator can take, and lengths in measured units."""
    known = inspect.signature(estimator_class).parameters
    own = {name: value for name, value in QUICK.items() if name in known}
    few = estimator_class._most_columns < 10
    own |= {"max_cells": 40} if "max_cells" in known else {}
    return own | {"bounds": SMALL if few else BOUNDS, "scale": "bounds"}


@pytest.fixture
def mixed(estimator_class):
    def build(**parameters):
        return estimator_class(**parameters_of(estimator_class) | parameters)

    return build


def centers_of(model):
    return getattr(model, "cluster_centers_", getattr(model, "means_", None))


@pytest.mark.parametrize("epsilon", [0.1, *(pytest.param(e, marks=slow) for e in (2.0, 50.0))])
def test_centres_are_distributions(mixed, epsilon):
    """At any budget, and also in a table without rows."""
    for n, seed in ((200, 0), (0, 1)):
        model = mixed(epsilon=epsilon, delta=1e-6, random_state=seed, profiles=0).fit(draw_table(n))
        centers = centers_of(model)
        if centers is None:
            return  # has spans
        names = model.feature_names_in_.tolist()
        shares = centers[:, names.index("job=clerk") : names.index("job=other") + 1]
        assert (shares >= 0).all()
        assert shares.sum(axis=1) == pytest.approx(1, rel=1e-9)
        turns = centers[:, names.index("hour (cos)") : names.index("hour (sin)") + 1]
        assert (np.linalg.norm(turns, axis=1) <= 1 + 1e-9).all()
        low, high = model.release_.domain.low, model.release_.domain.high
        assert (centers >= np.array(low) - 1e-9).all()
        assert (centers <= np.array(high) + 1e-9).all()


@pytest.mark.parametrize("n_levels", [1, 2, 10, 50])
@pytest.mark.parametrize("method", [LloydKMeans, DPM])
def test_centres_are_distributions_over_any_number_of_levels(method, n_levels):
    rng = np.random.default_rng(n_levels)
    levels = [f"level {i}" for i in range(n_levels)]
    table = pd.DataFrame({"x": rng.uniform(size=300), "kind": rng.choice([*levels, "new"], 300)})
    for seed in range(3):
        model = method(n_clusters=3, bounds={"x": (0, 5), "kind": levels}, random_state=seed).fit(table)
        shares = model.cluster_centers_[:, 1:]
        assert shares.shape[1] == n_levels + 1
        assert (shares >= 0).all()
        assert shares.sum(axis=1) == pytest.approx(1, rel=1e-9)


def check_all(model, budget):
    """The spend of a fit, also with levels that it found: those are added, and share the delta."""
    steps = model.privacy_.steps
    found = [record for record in steps if record.delta]
    rest = [record for record in steps if not record.delta]
    if found:
        budget = {
            "epsilon": float(Fraction(budget["epsilon"]) - sum(map(size, found))),
            "delta": float(Fraction(budget["delta"]) - sum(record.delta for record in found)),
        }
    check_spend(rest, **budget)
    assert model.privacy_.spent <= model.privacy_.budget


@pytest.mark.parametrize("unit", [{}, PEOPLE], ids=["rows", "people"])
@pytest.mark.parametrize(
    "budget",
    [BUDGETS["pure"], BUDGETS["rho"], pytest.param(BUDGETS["delta"], marks=slow)],
    ids=["pure", "rho", "delta"],
)
def test_the_spend_of_every_estimator(mixed, budget, unit):
    model = mixed(**budget, **unit, describe=DESCRIBED, profiles=0.25).fit(draw_table(60))
    assert [record.step for record in model.privacy_.steps][-2:] == ["table", "profiles"]
    check_all(model, budget)


@pytest.mark.parametrize("n_levels", [2, 7, 50])
@pytest.mark.parametrize("k", [1, 5, 64])
@pytest.mark.parametrize("budget", [BUDGETS["pure"], pytest.param(BUDGETS["delta"], marks=slow)], ids=str)
def test_the_spend_for_many_clusters_and_levels(n_levels, k, budget):
    bounds = {"age": (0, 100), "job": [f"job {i}" for i in range(n_levels)], "kind": ["a"]}
    table = draw_table(40).assign(kind="a")
    for options in ({}, {"profiles": 0}, {"describe": DESCRIBED, **PEOPLE}):
        check_all(LloydKMeans(k, bounds=bounds, **budget, **options).fit(table), budget)


@pytest.mark.parametrize("unit", [{}, PEOPLE], ids=["rows", "people"])
def test_the_spend_with_levels_that_are_found(unit):
    budget = BUDGETS["delta"]
    private = {"levels": "private"}
    for options in (
        {"bounds": BOUNDS | {"job": private}},
        {"bounds": BOUNDS, "describe": ["ward"]},
        {"bounds": BOUNDS | {"job": private}, "describe": {"ward": private, "stay": (0, 30)}},
    ):
        model = LloydKMeans(3, **options, **budget, **unit).fit(draw_table(4000))
        assert model.privacy_.steps[0].step == "levels"
        check_all(model, budget)


def test_a_described_column_in_which_no_level_is_found():
    """All its values are other, or missing. It is paid for, and no error comes after the charge."""
    model = LloydKMeans(3, bounds=BOUNDS, describe=["ward"], epsilon=1, delta=1e-6, random_state=0)
    profiles = model.fit(draw_table(20)).profiles_
    assert profiles.columns[-1].levels == ()


@pytest.mark.parametrize("budget", [BUDGETS["delta"], BUDGETS["rho"]], ids=["delta", "rho"])
def test_levels_do_not_change_the_noise(budget):
    """With Gaussian noise: the same scale in every step, from 3 levels to 50."""
    scales = [
        [record.scale for record in noise_plan(LloydKMeans, n_levels, budget).records()]
        for n_levels in (3, 10, 50)
    ]
    assert scales[0] == scales[1] == scales[2]


def test_levels_change_pure_noise_by_the_proved_factor_at_most():
    """The L1 norm of a category is that of four columns at most; of one level and other values, of two."""
    scales = {
        n: {
            record.step: float(record.scale)
            for record in noise_plan(LloydKMeans, n, BUDGETS["pure"]).records()
        }
        for n in (1, 2, 3, 10, 50)
    }
    for name, least in scales[1].items():
        assert scales[3][name] == pytest.approx(scales[10][name])
        assert scales[10][name] == pytest.approx(scales[50][name])
        assert scales[50][name] <= least * np.sqrt(5 / 3) * (1 + 1e-6)


def noise_plan(method, n_levels, budget):
    bounds = {"age": (0, 100), "kind": [f"level {i}" for i in range(n_levels)]}
    return method(5, bounds=bounds, **budget, profiles=0).plan(2 + n_levels)


class Waist:
    """Folds of a fit: what was recorded about each, and the raw integers."""

    def __init__(self):
        self.folds = []

    def watch(self, patch):
        noisy, choose = Curator._noisy, Curator._choose

        def vector(curator, record, raw):
            self.folds.append((record, raw.copy(), False))
            return noisy(curator, record, raw)

        def choice(curator, record, raw_scores):
            self.folds.append((record, raw_scores.copy(), True))
            return choose(curator, record, raw_scores)

        patch.setattr(Curator, "_noisy", vector)
        patch.setattr(Curator, "_choose", choice)


def folds_of(model, tables):
    """What fits on two tables fold, both with the answers of the first."""
    tape, found = Tape(), []
    for i, table in enumerate(tables):
        if i:
            tape.rewind()
        waist = Waist()
        with pytest.MonkeyPatch.context() as patch:
            recorded(patch, tape, [])
            waist.watch(patch)
            model().fit(table)
        found.append(waist.folds)
    return found


def check_folds(one, other, *, changed=False):
    """Each answer differs by at most its recorded sensitivity, or twice that if a unit was exchanged."""
    assert len(one) == len(other) > 0
    factor, moved = 2 if changed else 1, 0
    for (record, raw, is_choice), (same, others, _) in zip(one, other, strict=True):
        assert record == same
        difference = (raw.astype(object) - others.astype(object)).ravel()
        moved += bool((difference != 0).any())
        if is_choice:
            assert max(difference) - min(difference) <= factor * record.sensitivity.spread, record.step
            continue
        assert sum(map(abs, difference)) <= factor * record.sensitivity.l1, record.step
        assert sum(v * v for v in difference) <= factor**2 * record.sensitivity.l2_squared, record.step
        n_changed = sum(v != 0 for v in difference)
        assert n_changed <= factor * record.sensitivity.coordinates, record.step
    assert moved > 0


EXTREME = {"who": "newcomer", "age": 1e9, "job": "nurse", "hour": 23.999, "degree": "high"}
EXTREME |= {"ward": "z", "stay": -5.0, "when": 6.999}


def neighbours(kind, seed):
    """A table and its neighbour: by one row, or by one person with more rows than are used."""
    table, rng = draw_table(40, seed), np.random.default_rng(seed)
    one = int(rng.integers(len(table)))
    if kind == "one row more":
        return table, pd.concat([table, pd.DataFrame([EXTREME])], ignore_index=True)
    if kind == "one row less":
        return table, table.drop(index=one)
    if kind == "one row changed":
        return table, table.assign(**{c: table[c].where(table.index != one, v) for c, v in EXTREME.items()})
    if kind == "one person less":
        return table, table[table["who"] != table["who"][one]]
    return table, pd.concat([table, pd.DataFrame([EXTREME] * 5)], ignore_index=True)


KINDS = ["one row more", "one person more"]
KINDS += [pytest.param(k, marks=slow) for k in ("one row less", "one row changed", "one person less")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "budget", [BUDGETS["pure"], pytest.param(BUDGETS["rho"], marks=slow)], ids=["pure", "rho"]
)
def test_neighbours_at_the_waist(mixed, kind, budget):
    unit = PEOPLE if "person" in kind else {}
    options = unit | budget | {"describe": DESCRIBED, "profiles": 0.3, "random_state": 0}
    check_folds(*folds_of(lambda: mixed(**options), neighbours(kind, 0)), changed=kind == "one row changed")


def test_the_waist_would_show_a_row_that_counts_twice():
    """The check has power: two rows more, where one was promised."""
    table, more = neighbours("one row more", 0)
    twice = pd.concat([more, pd.DataFrame([EXTREME])], ignore_index=True)
    folds = folds_of(lambda: LloydKMeans(2, bounds=BOUNDS, random_state=0), (table, twice))
    with pytest.raises(AssertionError):
        check_folds(*folds)


def test_missing_described_values_leave_no_row_out():
    """Rows count as missing in the profile, and stay in their clusters."""
    table = draw_table(2000)
    table.loc[:999, "ward"] = None
    model = GridKMeans(
        2, bounds=SMALL, describe={"ward": ["x", "y"]}, epsilon=100, random_state=0, max_cells=500
    )
    profiles = model.fit(table).profiles_
    assert sum(profiles.table_counts[-1]) == pytest.approx(2000, abs=5)
    assert profiles.table_counts[-1][-1] == pytest.approx(table["ward"].isna().sum(), abs=5)
    assert model.cluster_sizes_.sum() == pytest.approx(2000, abs=20)
    assert (model.labels_ >= 0).all()


def test_profiles_have_noise():
    table = draw_table(300)
    found = [
        LloydKMeans(2, bounds=BOUNDS, describe=DESCRIBED, random_state=seed).fit(table).profiles_
        for seed in range(2)
    ]
    for name in ("table_counts", "counts"):
        one, other = (np.concatenate([part.ravel() for part in getattr(p, name)]) for p in found)
        assert (one < 0).any()
        assert len(one) != len(other) or (one != other).mean() > 0.5


@pytest.mark.parametrize("describe", [["who"], {"who": ["person 1"]}])
def test_people_are_not_described(describe):
    with pytest.raises(ParameterError, match="`describe` must not include the `unit` column"):
        LloydKMeans(2, bounds=BOUNDS, describe=describe, delta=1e-6, **PEOPLE).fit(draw_table(20))


def test_columns_are_declared_once():
    with pytest.raises(ParameterError, match="`describe` must name other columns than `bounds`"):
        LloydKMeans(2, bounds=BOUNDS, describe={"age": (0, 50)}).fit(draw_table(20))
    listed = LloydKMeans(2, bounds=BOUNDS, describe=["age"], random_state=0).fit(draw_table(20))
    assert [column.column for column in listed.profiles_.columns] == list(BOUNDS)
