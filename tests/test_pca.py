"""Private principal components: near to the exact ones, paid for, and a cost that nothing loses."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import Ball, Budget, GridKMeans, Ledger, LloydKMeans, PrivatePCA, PublicScaler, estimate_bounds
from sfumato.budget.bought import plain, purchases
from sfumato.curator import Curator, Table
from sfumato.domain.partitions import Voronoi
from sfumato.errors import BudgetExceededError, DataError, NoiseWarning, ParameterError
from sfumato.private.aggregates.limbs import LimbSums
from sfumato.private.aggregates.moments import WideMoments
from sfumato.private.mechanisms.entropy import Entropy

EXPECTED_FAILURES = {
    "check_estimators_empty_data_messages": "no rows are a neighbour of one row, and must work",
}
KINDS = [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.1}]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=["pure", "approximate", "zcdp"])
D = 8


def table(n=4000, seed=0, d=D):
    """Rows near a plane of two directions, in [-1, 1]^d."""
    rng = np.random.default_rng(seed)
    plane = np.linalg.qr(rng.normal(size=(d, 2)))[0].T
    rows = rng.normal(scale=[0.5, 0.25], size=(n, 2)) @ plane + 0.2 + rng.normal(scale=0.03, size=(n, d))
    return np.clip(rows, -1, 1)


def kept(rows, components):
    """Variance along the components, relative to that of the exact ones."""
    covariance = np.cov(rows.T)
    exact = np.linalg.eigvalsh(covariance)[::-1][: len(components)].sum()
    return np.trace(components @ covariance @ components.T) / exact


@parametrize_with_checks(
    [PrivatePCA(1, bounds=(-100, 100), epsilon=100)],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
@pytest.mark.filterwarnings("ignore::sfumato.errors.NoiseWarning")
def test_scikit_learn(estimator, check):
    check(estimator)


@every_kind
def test_components_are_near_to_the_exact_ones(kind):
    for seed in range(5):
        rows = table(seed=seed)
        pca = PrivatePCA(2, bounds=(-1, 1), random_state=seed, **kind).fit(rows)
        exact = PCA(2).fit(rows)
        assert np.allclose(pca.components_ @ pca.components_.T, np.eye(2), atol=1e-12)
        assert kept(rows, pca.components_) > 0.95
        assert np.allclose(pca.mean_, exact.mean_, atol=0.05)
        assert np.allclose(pca.explained_variance_, exact.explained_variance_, rtol=0.3)
        assert pca.explained_variance_ratio_.sum() == pytest.approx(1, abs=0.25)


def test_more_budget_is_nearer():
    rows = table(400)
    near = [
        np.mean(
            [
                kept(rows, PrivatePCA(2, bounds=(-1, 1), epsilon=e, random_state=s).fit(rows).components_)
                for s in range(8)
            ]
        )
        for e in (0.1, 1, 100)
    ]
    assert near[0] < near[1] < near[2]
    assert near[2] > 0.999


def test_columns_are_measured_in_units_of_their_bounds():
    """A column a million times as wide must not be the only component."""
    rows = table()
    wide = rows * np.array([1e6, *[1.0] * (D - 1)])
    bounds = ([-1e6, *[-1] * (D - 1)], [1e6, *[1] * (D - 1)])
    scaled = PrivatePCA(2, bounds=bounds, random_state=0).fit(wide)
    alike = PrivatePCA(2, bounds=(-1, 1), random_state=0).fit(rows)
    assert np.allclose(np.abs(scaled.components_), np.abs(alike.components_), atol=1e-6)
    assert np.allclose(scaled.mean_ / ([1e6] + [1] * (D - 1)), alike.mean_, atol=1e-6)
    raw = PrivatePCA(1, bounds=bounds, scale=None, random_state=0).fit(wide)
    assert abs(raw.components_[0, 0]) > 0.99


@pytest.mark.parametrize("bounds", [(-1, 1), ([-1] * D, [1, 2, 3, 4, 5, 6, 7, 8]), Ball(3.0)], ids=str)
def test_both_balls_hold_every_projected_row(bounds):
    rng = np.random.default_rng(0)
    pca = PrivatePCA(3, bounds=bounds, random_state=0)
    before = plain(pca.ball(D))
    pca.fit(table())
    after = plain(pca.bounds_)
    corners = rng.choice([-1e3, 1e3], size=(500, D))
    along = 1e3 * np.vstack([pca.components_, -pca.components_])
    projected = np.asarray(pca.transform(np.vstack([corners, along])))
    for ball in (before, after):
        assert np.allclose(ball.center, 0)
        assert (np.linalg.norm(projected, axis=1) <= ball.radius).all()
    assert after.radius <= before.radius


def test_back_and_forth():
    rows = table()
    pca = PrivatePCA(2, bounds=(-1, 1), epsilon=10, random_state=0).fit(rows)
    projected = pca.transform(rows)
    back = pca.inverse_transform(projected)
    assert np.abs(back - rows).mean() < 0.05
    inside = np.abs(back).max(axis=1) < 1
    assert np.allclose(pca.transform(back[inside]), projected[inside])
    complete = PrivatePCA(D, bounds=(-1, 1), random_state=0).fit(rows)
    assert np.allclose(complete.inverse_transform(complete.transform(rows)), rows)
    with pytest.raises(DataError, match="2 columns, got 3"):
        pca.inverse_transform(np.zeros((1, 3)))


def test_a_row_is_projected_alike_wherever_it_stands():
    rows = table(200)
    pca = PrivatePCA(2, bounds=(-1, 1), random_state=0).fit(rows)
    whole = np.asarray(pca.transform(rows))
    assert (whole == np.vstack([np.asarray(pca.transform(row[None])) for row in rows])).all()


def test_names_of_columns():
    frame = pd.DataFrame(table(300), columns=[f"c{j}" for j in range(D)])
    pca = PrivatePCA(2, bounds=(-1, 1), random_state=0).set_output(transform="pandas").fit(frame)
    assert list(pca.transform(frame).columns) == ["privatepca0", "privatepca1"]


@every_kind
def test_what_is_spent_is_what_was_promised(kind, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "rows", Budget(**kind))
    pca = PrivatePCA(2, bounds=(-1, 1), ledger=ledger, **kind)
    (promise,) = purchases(pca.ball(D))
    plan = pca.plan(D)
    assert not ledger.spent()
    pca.fit(table(300))
    assert pca.privacy_ == promise
    assert pca.privacy_.steps == plan.records()
    assert [step.step for step in pca.privacy_.steps] == ["mean", "distances", "moments"]
    assert pca.privacy_.spent <= Budget(**kind)
    assert ledger.spent() == Budget(**kind)
    assert ledger.history()[0].method == "PrivatePCA"
    with pytest.raises(BudgetExceededError):
        clone(pca).fit(table(300))


def test_the_moments_move_no_more_than_declared():
    """Whatever row comes or goes between neighbouring tables."""
    rng = np.random.default_rng(0)
    pca = PrivatePCA(2, bounds=(-1, 1))
    pca._domain = pca._measured(D)
    declared = pca.plan(D)["moments"].step.sensitivity
    radius = float(pca._domain.measured.reach)
    moments = WideMoments(Voronoi(np.zeros((1, D))), np.zeros((1, D)), np.array([radius / 3]), "full")
    assert declared == moments.sensitivity
    largest = 0.0
    for row in [
        *rng.choice([-1e9, -1, 0, 1, 1e9], size=(300, D)),
        *rng.normal(size=(300, D)),
        *np.eye(D) * 9,
    ]:
        moved = moments.add(moments.zero(), pca._moved(row[None])).ravel()
        assert np.abs(moved).sum() <= declared.l1
        assert int(moved.astype(object) @ moved.astype(object)) <= declared.l2_squared
        largest = max(largest, float(moved @ moved.astype(float)) / declared.l2_squared)
    assert largest > 0.95  # the bound is not loose


class Answers:
    """An engine that forgets its rows and answers with public numbers."""

    n_features = D

    def __init__(self):
        self.log = []

    def fold(self, aggregate):
        state = aggregate.zero()
        state += np.arange(state.size).reshape(state.shape) % 7
        if isinstance(aggregate, LimbSums):
            state[1] = 0
        self.log.append((type(aggregate).__name__, state.shape, pickle.dumps(aggregate)))
        return state


def test_rows_reach_the_components_through_the_curator_only(monkeypatch):
    results = []
    for rows in (np.empty((0, D)), np.full((1, D), 1e300)):
        engine = Answers()
        monkeypatch.setattr(
            Table, "curator", lambda t, plan, seed, e=engine: Curator(e, t.domain, plan, Entropy(seed))
        )
        with pytest.warns(NoiseWarning):
            pca = PrivatePCA(2, bounds=(-1, 1), random_state=3).fit(rows)
        results.append((engine.log, pca.components_.tolist(), pca.mean_.tolist(), sorted(vars(pca))))
    assert results[0] == results[1]
    assert len(results[0][0]) == 3


def test_noise_that_hides_components_is_said():
    with pytest.warns(NoiseWarning, match="noise hides 2 of 2 components"):
        PrivatePCA(2, bounds=(-1, 1), epsilon=0.01, random_state=0).fit(table(50))


@pytest.mark.usefixtures("quick")
class TestPipelines:
    def pipeline(self, **parameters):
        pca = PrivatePCA(2, epsilon=0.5, bounds=(-1, 1), random_state=0, **parameters)
        model = LloydKMeans(3, epsilon=1, bounds=pca.ball(D), random_state=0, **parameters)
        return make_pipeline(pca, model)

    def test_the_cost_of_both_steps_is_charged_and_stated(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db", "rows", Budget(2), allow_seeded=True)
        pipeline = self.pipeline(ledger=ledger).fit(table())
        model = pipeline[-1]
        assert model.privacy_.epsilon == model.release_.privacy.epsilon == 1.5
        assert ledger.spent() == Budget(1.5)
        assert [charge.method for charge in ledger.history()] == ["PrivatePCA", "LloydKMeans"]
        assert {"mean", "distances", "moments"} < {step.step for step in model.privacy_.steps}
        assert set(pipeline.predict(table())) <= {0, 1, 2}

    def test_copies_of_a_pipeline_count_the_cost_once(self):
        pipeline = self.pipeline()
        for copied in (clone(pipeline), copy.deepcopy(pipeline), pickle.loads(pickle.dumps(pipeline))):
            assert copied.fit(table(500))[-1].privacy_.epsilon == 1.5

    def test_after_the_fit_the_ball_carries_the_cost_too(self):
        rows = table()
        pca = PrivatePCA(2, epsilon=0.5, bounds=(-1, 1), random_state=0).fit(rows)
        model = GridKMeans(3, epsilon=1, bounds=pca.bounds_, random_state=0, max_cells=100)
        assert model.fit(pca.transform(rows)).privacy_.epsilon == 1.5

    def test_bounds_that_do_not_carry_the_cost_are_refused(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db", "rows", Budget(2), allow_seeded=True)
        for bounds in ((-3, 3), Ball(3)):
            pipeline = self.pipeline().set_params(lloydkmeans__bounds=bounds, lloydkmeans__ledger=ledger)
            with pytest.raises(ParameterError, match=r"cost epsilon=0\.5\. `bounds` must carry this"):
                pipeline.fit(table(500))
        assert not ledger.spent()

    def test_a_promise_of_other_parameters_is_refused(self):
        with pytest.raises(ParameterError, match=r"cost epsilon=0\.7\."):
            self.pipeline().set_params(privatepca__epsilon=0.7).fit(table(500))

    def test_bought_bounds_are_stated_too(self):
        rows = table()
        found = estimate_bounds(rows, epsilon=0.25, random_state=0)
        pca = PrivatePCA(2, epsilon=0.5, bounds=found, random_state=0)
        model = LloydKMeans(3, epsilon=1, bounds=pca.ball(D), random_state=0)
        fitted = make_pipeline(pca, model).fit(rows)
        assert fitted[0].privacy_.epsilon == 0.75
        assert fitted[-1].privacy_.epsilon == 1.75

    def test_named_columns_by_way_of_a_scaler(self):
        rows = table()
        frame = pd.DataFrame(rows * 50 + 50, columns=[f"c{j}" for j in range(D)]).assign(name="n")
        pca = PrivatePCA(2, epsilon=0.5, bounds=(0, 1), random_state=0)
        model = LloydKMeans(3, epsilon=1, bounds=pca.ball(D), random_state=0)
        scaler = PublicScaler({f"c{j}": (0, 100) for j in range(D)})
        fitted = make_pipeline(scaler, pca, model).fit(frame)
        assert fitted[-1].privacy_.epsilon == 1.5
        centres = scaler.inverse_transform(pca.inverse_transform(model.cluster_centers_))
        assert ((centres >= 0) & (centres <= 100)).all()

    def test_each_fold_pays_for_its_components(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db", "rows", Budget(9), allow_seeded=True)
        cross_validate(self.pipeline(ledger=ledger), table(600), cv=3, error_score="raise")
        assert ledger.spent() == Budget(4.5)
        assert [charge.method for charge in ledger.history()] == ["PrivatePCA", "LloydKMeans"] * 3

    def test_clusters_are_found_behind_it(self):
        rng = np.random.default_rng(0)
        centers = table(3, seed=5, d=20)
        truth = rng.integers(3, size=6000)
        rows = np.clip(centers[truth] + rng.normal(scale=0.02, size=(6000, 20)), -1, 1)
        pca = PrivatePCA(2, epsilon=0.5, delta=1e-6, bounds=(-1, 1), random_state=0)
        model = LloydKMeans(3, epsilon=0.5, bounds=pca.ball(20), random_state=0)
        labels = make_pipeline(pca, model).fit(rows).predict(rows)
        assert max(len(set(truth[labels == k])) for k in range(3)) == 1


class TestPeople:
    """Somebody with several rows is protected as a whole, in both steps."""

    OF_PEOPLE = {"unit": "who", "max_rows_per_unit": 4}  # noqa: RUF012

    @pytest.fixture
    def stays(self):
        frame = pd.DataFrame(table(), columns=[f"c{j}" for j in range(D)])
        return frame.assign(who=[f"p{i // 4}" for i in range(len(frame))])

    def pca(self, **parameters):
        shared = {"epsilon": 1, "delta": 1e-6, "bounds": (-1, 1), "random_state": 0} | self.OF_PEOPLE
        return PrivatePCA(2, **shared | parameters)

    def test_the_cost_of_both_steps_is_stated_for_people(self, stays):
        pca = self.pca()
        model = LloydKMeans(3, bounds=pca.ball(D), random_state=0, **self.OF_PEOPLE)
        pipeline = make_pipeline(pca, model).fit(stays)
        privacy = pipeline[-1].privacy_
        assert str(privacy.budget) == "epsilon=2, delta=1e-06"
        assert privacy.unit == pca.privacy_.unit
        assert (privacy.unit.column, privacy.unit.max_rows) == ("who", 4)
        assert pca.privacy_.steps == pca.plan(D).records()
        assert set(pipeline.predict(stays)) <= {0, 1, 2}
        assert kept(stays.drop(columns="who").to_numpy(), pca.components_) > 0.9

    def test_the_noise_grows_with_the_cap(self):
        scales = [float(self.pca(max_rows_per_unit=m).plan(D).records()[-1].scale) for m in (1, 4)]
        # Not exactly: counts have coarser noise, whose rounding costs a little more.
        assert scales[1] == pytest.approx(4 * scales[0], rel=1e-3)

    def test_frames_of_all_kinds_give_the_same(self, stays):
        pandas = self.pca().fit(stays)
        shuffled = stays[["who", *stays.columns[:-1][::-1]]]
        for frame in (pl.from_pandas(stays), pa.Table.from_pandas(stays)):
            assert np.allclose(self.pca().fit(frame).components_, pandas.components_)
            assert pandas.transform(frame).to_pydict() == pandas.transform(stays).to_pydict()
        assert pandas.transform(shuffled).equals(pandas.transform(stays))
        assert pandas.transform(stays).column_names == ["privatepca0", "privatepca1", "who"]

    def test_a_person_beyond_the_cap_counts_no_more(self, stays):
        one = stays.assign(who="p")
        with pytest.warns(NoiseWarning):
            pca = self.pca(epsilon=0.1).fit(one)
        assert pca.noise_variance_ > pca.explained_variance_.max()

    def test_bounds_that_do_not_carry_the_cost_are_refused(self, stays, tmp_path):
        pca = self.pca().fit(stays)
        projected = pca.transform(stays)
        pq.write_table(projected, tmp_path / "rows.parquet")
        model = LloydKMeans(3, bounds=Ball(3), random_state=0, **self.OF_PEOPLE)
        for rows in (projected, pq.read_table(tmp_path / "rows.parquet")):
            with pytest.raises(ParameterError, match="`bounds` must carry this"):
                model.fit(rows)
        assert model.set_params(bounds=pca.bounds_).fit(projected).privacy_.budget.epsilon == 2

    def test_rows_as_the_unit_of_the_next_step_are_refused(self, stays):
        pca = self.pca().fit(stays)
        with pytest.raises(ParameterError, match="must protect one row"):
            LloydKMeans(3, bounds=pca.bounds_).fit(pca.transform(stays).drop_columns(["who"]))

    def test_tables_without_the_unit_are_refused(self, stays):
        with pytest.raises(DataError, match="named columns"):
            self.pca().fit(table())
        with pytest.raises(ParameterError, match="'who' must be in the table"):
            self.pca().fit(stays.drop(columns="who"))
        with pytest.raises(DataError):
            self.pca().fit(stays.assign(c0="Lovelace"))
        with pytest.raises(DataError, match="missing values"):
            self.pca().fit(stays.assign(c0=np.nan))
        mixed = stays.assign(who=[0] * (len(stays) - 1) + ["Lovelace"])
        with pytest.raises(DataError, match="values of one type") as error:
            self.pca().fit(mixed)
        assert error.value.__context__ is None


def test_an_epsilon_that_was_not_given_stays_so():
    pca = PrivatePCA(2, bounds=(-1, 1), rho=0.1)
    for copied in (clone(pca), copy.deepcopy(pca), pickle.loads(pickle.dumps(pca))):
        assert copied.plan(4).budget == Budget(rho=Fraction("0.1"))
        assert copied.get_params()["epsilon"] == 1.0


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": D + 1}, "n_components"),
        ({"n_components": 1.5}, "n_components"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 1, "rho": 1}, "rho"),
        ({"bounds": None}, "`bounds` must be given"),
        ({"bounds": (1, 0)}, "low < high"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_parameters(parameters, word, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "rows", Budget(9))
    pca = PrivatePCA(**{"bounds": (0, 1), "ledger": ledger, **parameters})
    with pytest.raises(ParameterError, match=word):
        pca.fit(table(50))
    assert not ledger.spent()


@pytest.mark.parametrize("rows", [[["Lovelace", 1, 2]], [[np.inf, -np.inf, 1]], [[np.nan, 1, 2]]])
def test_bad_tables_are_refused_without_a_value(rows):
    with pytest.raises(DataError) as error:
        PrivatePCA(bounds=(0, 1)).fit(rows)
    assert "Lovelace" not in str(error.value)
