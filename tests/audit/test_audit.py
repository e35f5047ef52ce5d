"""The audit has power, and its bounds hold: against exact formulas, and over repeated audits."""

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import stats
from tests.worlds import curate

from sfumato import DensityTree, LloydKMeans
from sfumato.audit import PAIRS, Pair, audit, audit_estimator, compare, features, lower_bound
from sfumato.audit.attack import _fit
from sfumato.audit.events import Combination, choose_event
from sfumato.audit.limits import least_loss, limits
from sfumato.budget import Budget, Plan, Step, calibrate
from sfumato.domain import Domain, Grid, Unit
from sfumato.domain.columns import read_bounds
from sfumato.errors import DataError, ParameterError
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.noise import discrete_gaussian, discrete_laplace
from sfumato.private.sources import open_source
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.regions import Regions
from sfumato.public.models import CentreModel

ONE_MORE = Pair("one more", np.zeros((6, 1)), np.zeros((5, 1)), np.zeros((1, 1)))
KINDS = [Budget(1), Budget(1, 1e-3), Budget(rho=0.5)]
IDS = ["pure", "approximate", "zcdp"]


def noisy_count(plan, rows, seed):
    return curate(rows, Domain.from_bounds((-1, 1), rows.shape[1]), plan, seed).count("rows").values[0]


def counting(budget):
    return partial(noisy_count, calibrate(Plan(Step("rows", 1)), budget))


def times(budget, factor):
    amounts = {name: Fraction(value) * factor for name, value in budget.to_dict().items() if name != "delta"}
    return Budget(**amounts, delta=budget.delta)


@pytest.mark.parametrize("budget", KINDS, ids=IDS)
def test_the_right_noise_passes_and_more_than_half_of_the_promise_is_found(budget):
    found = audit(counting(budget), ONE_MORE, budget, n_runs=2000)
    power = 0.4 if budget.kind == "zcdp" else 0.6
    assert power * found.promise < found.lower <= found.promise
    assert not found.broken
    assert found.pair == "one more"
    assert found.n_runs == 1000


@pytest.mark.parametrize("budget", KINDS, ids=IDS)
def test_half_of_the_noise_is_caught(budget):
    factor = 4 if budget.kind == "zcdp" else 2  # rho grows with the square
    found = audit(counting(times(budget, factor)), ONE_MORE, budget, n_runs=800)
    assert found.broken
    assert "BROKEN" in str(found)


@pytest.mark.parametrize("budget", KINDS, ids=IDS)
def test_bounds_hold_as_often_as_stated(budget):
    """Audits of noise that is just right contradict the promise no more often than the confidence allows."""
    rng = np.random.default_rng(1)
    (record,) = calibrate(Plan(Step("rows", 1)), budget).records()
    draw = partial(rng.normal if "Gaussian" in record.mechanism else rng.laplace, scale=float(record.scale))
    confidence, n_audits, size = 0.8, 150, (400, 1)
    audits = (
        compare(1 + draw(size=size), draw(size=size), budget, confidence=confidence) for _ in range(n_audits)
    )
    n_broken = sum(found.broken for found in audits)
    assert n_broken <= stats.binom.ppf(0.999, n_audits, 1 - confidence)


def test_randomised_response_to_the_last_digit():
    """Truth with probability e / (1 + e): the event that tells is the answer, and the limits are known."""
    p = np.e / (1 + np.e)
    assert least_loss(Budget(1), p, 1 - p) == pytest.approx(1)
    assert least_loss(Budget(1, 0.1), p, 1 - p) == pytest.approx(np.log((p - 0.1) / (1 - p)))
    n = 10_000
    n_likely, n_unlikely = round(n * p), round(n * (1 - p))
    low = stats.binomtest(n_likely, n, alternative="greater").proportion_ci(0.995, "exact").low
    high = stats.binomtest(n_unlikely, n, alternative="less").proportion_ci(0.995, "exact").high
    assert lower_bound(Budget(1), n_likely, n_unlikely, n) == pytest.approx(np.log(low / high))
    assert 0.9 < lower_bound(Budget(1), n_likely, n_unlikely, n) < 1


def test_events_of_laplace_noise_never_exceed_epsilon_and_reach_it():
    scale, thresholds = 2.0, np.linspace(-8, 8, 65)
    p, q = (stats.laplace.sf(thresholds, loc=loc, scale=scale) for loc in (1, 0))
    loss = least_loss(Budget(1), p, q)
    assert loss.max() == pytest.approx(1 / scale)
    assert (loss <= 1 / scale + 1e-12).all()


def test_events_of_gaussian_noise_never_exceed_rho_and_come_near():
    sigma, thresholds = 1.0, np.linspace(-12, 12, 97)
    p, q = (stats.norm.sf(thresholds, loc=loc, scale=sigma) for loc in (1, 0))
    loss = least_loss(Budget(rho=1), p, q)
    rho = 1 / (2 * sigma**2)
    assert (loss <= rho + 1e-12).all()
    assert loss.max() > 0.8 * rho


def test_events_of_gaussian_noise_and_the_exact_delta():
    """The best event at a given epsilon has the delta of Balle and Wang (2018), Theorem 8."""
    sigma, epsilon = 1.5, 0.5
    delta = stats.norm.cdf(1 / (2 * sigma) - epsilon * sigma) - np.exp(epsilon) * stats.norm.cdf(
        -1 / (2 * sigma) - epsilon * sigma
    )
    thresholds = np.linspace(-4, 6, 4001)
    p, q = (stats.norm.sf(thresholds, loc=loc, scale=sigma) for loc in (1, 0))
    assert least_loss(Budget(1, delta), p, q).max() == pytest.approx(epsilon, abs=1e-5)


def test_losses_grow_with_p_and_fall_with_q():
    p, q = np.meshgrid(np.linspace(0.01, 0.99, 99), np.linspace(0.01, 0.99, 99), indexing="ij")
    for budget in KINDS:
        loss = least_loss(budget, p, q)
        assert (loss >= 0).all()
        assert (np.diff(loss, axis=0) >= -1e-12).all()
        assert (np.diff(loss, axis=1) <= 1e-12).all()


def test_limits_are_those_of_clopper_and_pearson():
    low, high = limits(20, 0.02)
    for hits in (0, 1, 7, 19, 20):
        assert low[hits] == pytest.approx(stats.binomtest(hits, 20).proportion_ci(0.98, "exact").low)
        assert high[hits] == pytest.approx(stats.binomtest(hits, 20).proportion_ci(0.98, "exact").high)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_pairs_are_neighbours(pair):
    unit = pair.parameters.get("unit")
    rows_with, rows_without = (
        [tuple(row.values()) for row in table.to_pylist()] if unit else [tuple(row) for row in table.tolist()]
        for table in (pair.with_unit, pair.without_unit)
    )
    if unit:
        gone = {row[0] for row in rows_with} - {row[0] for row in rows_without}
        assert len(gone) == 1
        assert [row for row in rows_with if row[0] not in gone] == rows_without
    else:
        assert len(rows_with) == len(rows_without) + 1
        assert rows_with[:-1] == rows_without
    if pair.name == "patient":
        return
    bounds = pair.parameters["bounds"]
    low, high = next(iter(bounds.values())) if unit else bounds
    values = np.array([row[-2:] for row in rows_with])
    assert ((low <= values) & (values <= high)).all()
    assert (np.abs(pair.places[0] - values[-1]) < 1e-12).all()


@pytest.mark.parametrize("name", ["person", "patient"])
def test_the_person_has_more_rows_than_are_used(name):
    pair = PAIRS[name]
    unit = Unit(pair.parameters["unit"], pair.parameters["max_rows_per_unit"])
    columns, domain = read_bounds(pair.parameters["bounds"], pair.with_unit.column_names, unit)
    n_with, n_without = (
        int(open_source(table).engine(columns, domain).fold(RowCount())[0])
        for table in (pair.with_unit, pair.without_unit)
    )
    assert n_with - n_without == unit.max_rows
    assert len(pair.with_unit) - len(pair.without_unit) > unit.max_rows


def test_seeds_all_differ_and_none_are_passed_on():
    seen = []

    def run(rows, seed):
        seen.append(seed)
        return 0.0

    audit(run, ONE_MORE, Budget(1), n_runs=50)
    assert len(set(seen)) == 100
    seen.clear()
    audit(run, ONE_MORE, Budget(1), n_runs=50, random_state=None)
    assert seen == [None] * 100


def test_noise_of_the_operating_system_is_audited_too():
    found = audit(counting(Budget(1)), ONE_MORE, Budget(Fraction(1, 20)), n_runs=1000, random_state=None)
    assert found.broken  # overwhelmingly: the promise is twenty times too small


def test_the_same_seed_gives_the_same_result_in_any_number_of_processes():
    one, two = (audit(counting(Budget(1)), ONE_MORE, Budget(1), n_runs=100, n_jobs=n) for n in (1, 2))
    assert one == two


def test_an_error_on_one_table_is_an_outcome():
    def run(rows, seed):
        if len(rows) < 6:
            raise DataError("too few")
        return 0.0

    found = audit(run, ONE_MORE, Budget(1), n_runs=100)
    assert found.broken
    assert found.n_failed == 100


def test_an_error_on_both_tables_is_an_error():
    def run(rows, seed):
        raise DataError("never")

    with pytest.raises(DataError, match="never"):
        audit(run, ONE_MORE, Budget(1), n_runs=40)


def test_a_statistic_of_ones_own():
    count = counting(Budget(5))
    found = audit(count, ONE_MORE, Budget(1), n_runs=1000, statistic=lambda noisy: -noisy)
    assert found.broken
    assert found.event.startswith("statistic")


def test_a_learned_sum_sees_what_no_single_number_shows():
    rng = np.random.default_rng(0)
    one, other = rng.laplace(size=(2, 8000, 16))
    one = one + 0.4
    budget = Budget(0.4)
    assert compare(one, other, budget, names=[str(j) for j in range(16)]).event.startswith("learned sum")
    assert compare(one, other, budget).broken
    assert not compare(one[:, :1], other[:, :1], budget).broken


def test_the_event_may_be_likelier_on_either_table_and_on_either_side():
    low, high = np.zeros((100, 1)), np.ones((100, 1))
    event = choose_event(high, low, Budget(1), 0.01)
    assert event.count(high) + event.count(low) == 100
    rng = np.random.default_rng(0)
    rare = (rng.random((1000, 1)) < 0.1).astype(float)
    for one, other, likelier in ((rare, 0 * rare, "with"), (0 * rare, rare, "without")):
        found = compare(one, other, Budget(1))
        assert found.broken
        assert found.likelier == likelier
        assert (found.n_likely > 0) & (found.n_unlikely == 0)


def test_combination_of_constant_scores():
    one, other = np.ones((50, 3)), np.ones((50, 3))
    assert (Combination.learned(one, other).of(one) == 0).all()


def test_features_of_models():
    model = CentreModel(np.array([[0.0, 0.0], [0.5, 0.5]]), np.array([3.0, 9.0]))
    found = features(model, np.array([[0.5, 0.25]]))
    assert found["distance of the centre nearest to place 0"] == 0.25
    assert found["size of the cluster nearest to place 0"] == 9
    assert found["cluster_sizes sum"] == 12
    grid = Grid((0.0,), (4.0,), (4,))
    dense = NoisyHistogram(grid, np.array([4, 5, 6, 7]), "discrete Laplace", 1.0)
    assert features(dense, np.array([[2.5]]))[" counts at place 0"] == 6
    sparse = NoisyHistogram(grid, np.array([5]), "discrete Laplace", 1.0, np.array([1]), 3)
    assert features(sparse, np.array([[1.5], [3.5]]))[" counts at place 0"] == 5
    assert features(sparse, np.array([[1.5], [3.5]]))[" counts at place 1"] == 0
    assert features(7, np.empty((0, 1))) == {"value": 7.0}


def test_arrays_that_are_as_long_as_the_cells_by_chance():
    regions = Regions(Grid((0.0,), (4.0,), (4,)), np.array([1]), np.array([0]), np.ones((1, 3)), 0.9)
    assert features(regions, np.array([[1.5]]))[" labels at place 0"] == 0


def test_a_mistake_of_the_statistic_is_no_outcome():
    def statistic(value):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        audit(lambda rows, seed: 0.0, ONE_MORE, Budget(1), n_runs=40, statistic=statistic)


def test_an_estimator_on_several_pairs_shares_what_is_missing_to_one():
    pairs = [PAIRS["outlier"], PAIRS["person"]]
    model = DensityTree(1.0, epsilon=1)
    results = list(audit_estimator(model, pairs, n_runs=60, confidence=0.98))
    assert [found.pair for found in results] == ["outlier", "person"]
    assert all(found.confidence == pytest.approx(0.99) for found in results)
    assert not any(found.broken for found in results)
    assert model.bounds is None


def test_the_patient_has_levels_that_nobody_else_has():
    pair = PAIRS["patient"]
    for column in ("ward", "insured"):
        own, others = ({*table[column].to_pylist()} for table in (pair.with_unit, pair.without_unit))
        assert len(own - others) == 1
    columns, domain = read_bounds(pair.parameters["bounds"], None, Unit())
    assert pair.places.shape[1] == domain.n_features == len(columns.coordinates)


def test_profiles_are_attacked_too():
    """Exact counts in the bins of a column that is only described tell the patient for certain."""
    pair = PAIRS["patient"]
    fit = partial(_fit, LloydKMeans(2, epsilon=1).set_params(**pair.parameters))
    assert any(name.startswith("profiles") for name in features(fit(pair.with_unit, 0), pair.places))

    def leaky(table, seed):
        release = fit(table, seed)
        counts = release.profiles.table_counts
        exact = np.array([table["insured"].to_pylist().count("private")])
        return replace(release, profiles=replace(release.profiles, table_counts=(*counts[:-1], exact)))

    assert audit(leaky, pair, Budget(1), n_runs=60).broken


@pytest.mark.slow
@pytest.mark.parametrize("budget", [{"epsilon": 2}], ids=str)  # all kinds: python -m benchmarks audit
def test_whole_patients_with_categories_and_profiles(budget):
    (found,) = audit_estimator(LloydKMeans(2, **budget), [PAIRS["patient"]], n_runs=500)
    assert not found.broken
    assert found.n_failed == 0


def test_more_noise_gives_a_smaller_bound():
    """Laplace at scales that promise 3 and 1: the bounds keep the order, and stay below."""

    def run(scale, rows, seed):
        return len(rows) + discrete_laplace(scale, 1, Entropy(seed))

    losses = [
        audit(partial(run, Fraction(1, epsilon)), ONE_MORE, Budget(epsilon), n_runs=1500).lower
        for epsilon in (3, 1)
    ]
    assert 1 < losses[0] <= 3
    assert losses[1] <= 1
    gaussian = audit(
        lambda rows, seed: len(rows) + discrete_gaussian(Fraction(1), 1, Entropy(seed)),
        ONE_MORE,
        Budget(rho=0.5),
        n_runs=1500,
    )
    assert 0 < gaussian.lower <= 0.5


def test_refusals():
    for options in ({"n_runs": 10}, {"n_jobs": 0}, {"n_runs": 1e4}):
        with pytest.raises(ParameterError, match="must be an integer"):
            audit(lambda rows, seed: 0, ONE_MORE, Budget(1), **options)
    with pytest.raises(ParameterError, match="confidence"):
        lower_bound(Budget(1), 1, 1, 2, confidence=1.0)
    with pytest.raises(ParameterError, match="n_likely"):
        lower_bound(Budget(1), 3, 1, 2)
