"""SourceTargetClustering: what it asks, what it releases, and how good its choice is."""

import copy
import inspect
import json
import pickle
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone

from sfumato import Ball, Budget, Ledger, Release, SourceTargetClustering
from sfumato.cluster.source_target import SANITIZERS, Targets, ring_edges
from sfumato.curator import Curator, Table
from sfumato.domain import Domain
from sfumato.errors import DataError, ParameterError
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.public.places.coverings import cover
from sfumato.public.places.medoids import k_medoids

KINDS = [{"epsilon": 2}, {"epsilon": 2, "delta": 1e-6}, {"rho": 0.5}]
VARIANTS = [{"sanitizer": name} for name in SANITIZERS] + [{"sanitizer": "nas", "bound_share": 0.2}]
SECRET = 0.12345678901234567
every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "-".join(map(str, v.values())))
every_kind = pytest.mark.parametrize("kind", KINDS, ids=["pure", "approximate", "zcdp"])


def made(**parameters):
    return SourceTargetClustering(**{"n_clusters": 3, "t": 5, "bounds": (-1, 1), **parameters})


@pytest.fixture
def target():
    return np.random.default_rng(1).uniform(-0.9, 0.9, size=(120, 2))


def scaled(*tables):
    """Points scaled to norm 1/2, as in the paper's section 6."""
    joined = np.concatenate(tables)
    middle = (joined.min(axis=0) + joined.max(axis=0)) / 2
    radius = np.linalg.norm(joined - middle, axis=1).max()
    return [(table - middle) / (2 * radius) for table in tables]


def synthetic_2(rng, n):
    """Blobs in four quarters: the target has the lower ones, the source all but the lower left."""
    quarter = np.array([[x, y] for x in (0.1, 0.25, 0.4) for y in (0.1, 0.25, 0.4)])
    left, right = quarter, quarter + np.array([0.5, 0.0])
    top = np.concatenate([left, right]) + np.array([0.0, 0.5])

    def blobs(centers):
        return centers[rng.integers(len(centers), size=n)] + rng.normal(scale=0.01, size=(n, 2))

    return scaled(blobs(np.concatenate([left, right])), blobs(np.concatenate([right, top])))


def rho_of(record):
    return Fraction(record.sensitivity.l2_squared) / (2 * record.scale**2)


@every_variant
@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize("k", [1, 4])
def test_what_is_spent_is_what_was_promised(variant, d, k):
    target = np.random.default_rng(d).uniform(-1, 1, size=(40, d))
    source = np.random.default_rng(k).uniform(-1, 1, size=(60, d))
    for epsilon in ("0.01", "1", "10"):
        steps = made(n_clusters=k, epsilon=epsilon, **variant).fit(target, source).privacy_.steps
        total = sum(Fraction(record.sensitivity.l1) / record.scale for record in steps)
        assert Fraction(epsilon) * (1 - Fraction(1, 10**8)) <= total <= Fraction(epsilon)
    for rho in ("0.001", "1"):
        steps = made(n_clusters=k, rho=rho, **variant).fit(target, source).privacy_.steps
        assert Fraction(rho) * (1 - Fraction(1, 10**8)) <= sum(map(rho_of, steps)) <= Fraction(rho)
    model = made(n_clusters=k, epsilon=1, delta=1e-5, **variant).fit(target, source)
    assert 0.98 < model.privacy_.epsilon <= 1


@every_variant
@every_kind
def test_shapes_and_bounds_of_what_is_released(variant, kind, target, rows):
    for bounds in ((-1, 1), Ball(1.3)):
        model = made(**kind, **variant, bounds=bounds, random_state=0).fit(target, rows)
        assert sorted(set(model.center_indices_)) == sorted(model.center_indices_)
        assert (model.cluster_centers_ == target[model.center_indices_]).all()
        assert model.sanitized_source_.shape[1] == 2
        domain = model.release_.domain
        inside = np.abs(domain.clip(model.sanitized_source_) - model.sanitized_source_)
        assert (inside < 1e-8).all()
        assert (model.diff_bound_ is None) == ("bound_share" not in variant)
        assert 1 <= model.n_representatives_ <= len(target)
        if model.sanitizer == "rings":  # chosen by likely distances
            continue
        again = k_medoids(target, 3, free_centres=model.sanitized_source_)
        assert model.cost_ == again.cost / len(target)
        assert (model.predict(target) == again.labels).all()


@every_variant
@every_kind
@pytest.mark.parametrize("n", [0, 1, 4, 5])
def test_any_number_of_rows_will_do(variant, kind, target, n):
    """No row, one row, fewer rows than t and as many: all of them fit, none is told apart by an error."""
    model = made(**kind, **variant).fit(target, np.full((n, 2), 0.5))
    assert len(model.center_indices_) == 3


@every_variant
def test_a_seed_makes_it_reproducible(variant, target, rows):
    model = made(**variant, random_state=3).fit(target, rows)
    released = json.dumps(model.release_.to_dict()["model"])
    assert json.dumps(clone(model).fit(target, rows).release_.to_dict()["model"]) == released
    other = clone(model).set_params(random_state=4).fit(target, rows)
    assert json.dumps(other.release_.to_dict()["model"]) != released
    assert "seeded: do not publish" in str(model.privacy_)


@every_variant
def test_the_release_predicts_and_holds_no_row(variant, target, rows, tmp_path):
    rows[0] = SECRET
    model = made(**variant, random_state=3).fit(target, rows)
    path = model.release_.save(tmp_path / "release.json")
    loaded = Release.load(path)
    assert (loaded.predict(rows) == model.predict(rows)).all()
    assert loaded.model.attributes().keys() == model.release_.model.attributes().keys()
    assert loaded.model.diff_bound == model.diff_bound_
    text = path.read_text()
    assert "random_state" not in text
    for spelled in (repr(SECRET), *map(repr, map(float, rows[1]))):
        assert spelled not in text
    for dumped in (pickle.dumps(model), pickle.dumps(copy.deepcopy(model))):
        assert np.float64(SECRET).tobytes() not in dumped
        assert (pickle.loads(dumped).predict(rows) == model.predict(rows)).all()


def test_nothing_that_is_kept_has_an_entry_per_row(target, rows):
    model = made().fit(target, rows)
    assert not [name for name, value in vars(model).items() if np.shape(value)[:1] == (len(rows),)]
    assert not hasattr(model, "labels_")


def test_labels(target):
    model = made(n_clusters=2, random_state=0).fit(target, np.full((500, 2), 0.5))
    assert model.predict(model.cluster_centers_).tolist() == [0, 1]
    assert (model.predict(model.sanitized_source_) == -1).all()
    assert model.predict(np.empty((0, 2))).shape == (0,)


def test_the_ledger_is_charged_before_the_first_row(target, rows, tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    seen = []

    def crash(*_):
        seen.append(ledger.spent())
        raise RuntimeError("power cut")

    model = made(epsilon=0.25, ledger=ledger).fit(target, rows)
    monkeypatch.setattr(Table, "curator", crash)
    with pytest.raises(RuntimeError, match="power cut"):
        made(epsilon=0.5, ledger=ledger).fit(target, rows)
    assert seen == [Budget(0.75)]
    released, failed = ledger.history()
    assert (released.outcome, failed.outcome) == ("released", "failed")
    assert released.plan == str(model.plan(target))
    assert released.method == "SourceTargetClustering"


@dataclass(frozen=True)
class Public:
    """An engine that forgets its rows and answers with public numbers."""

    n_features: int
    log: list

    def fold(self, aggregate):
        state = aggregate.zero()
        state += np.arange(state.size).reshape(state.shape) % 7
        self.log.append((type(aggregate), pickle.dumps(aggregate), state.shape))
        return state


@every_variant
@every_kind
def test_rows_reach_the_result_through_the_curator_only(variant, kind, target, monkeypatch):
    results = []
    for table in (np.empty((0, 2)), np.zeros((1, 2)), np.array([[0.0, 0.0], [1e300, -1e300]])):
        log = []
        monkeypatch.setattr(
            Table,
            "curator",
            lambda table, plan, seed, log=log: Curator(Public(2, log), table.domain, plan, Entropy(seed)),
        )
        model = made(**kind, **variant, random_state=3).fit(target, table)
        published = {k: v for k, v in model.release_.to_dict().items() if k != "created"}
        results.append((log, published, set(vars(model))))
    assert results[0] == results[1] == results[2]
    assert results[0][0], "nothing was asked"


BAD_PARAMETERS = [
    ({"n_clusters": 0}, "n_clusters"),
    ({"n_clusters": 121}, "`n_clusters` must be an integer from 1 to 120, the number of targets"),
    ({"n_clusters": 2.0}, "n_clusters"),
    ({"sanitizer": "gan"}, "`sanitizer` must be one of rings, nna, nas"),
    ({"t": 0}, "`t`"),
    ({"t": 1.5}, "`t`"),
    ({"gamma": 0}, "`gamma` must be a number between 0 and 1"),
    ({"gamma": 1}, "gamma"),
    ({"gamma": np.nan}, "gamma"),
    ({"gamma": "0.1"}, "gamma"),
    ({"coreset": -0.1}, "`coreset` must be 'auto' or a number from 0 to 1"),
    ({"coreset": 1.1}, "coreset"),
    ({"coreset": 10**400}, "coreset"),
    ({"bound_share": 1.0, "sanitizer": "nas"}, "bound_share"),
    ({"bound_share": 0.5}, "no bound is known for sanitizer='rings'"),
    ({"sanitizer": "nas", "t": 10**6, "coreset": 0.05}, "`t` must be smaller"),
    ({"bounds": None}, "`bounds` must be given"),
    ({"bounds": (-0.5, 0.5)}, "`target` must lie within `bounds`"),
    ({"bounds": Ball(0.5)}, "`target` must lie within `bounds`"),
    ({"epsilon": 0}, "epsilon"),
    ({"rho": 1, "delta": 0.1}, "rho"),
    ({"unit": "person"}, "unit"),
    ({"random_state": -1}, "random_state"),
]


@pytest.mark.parametrize(("parameters", "words"), BAD_PARAMETERS, ids=lambda value: str(value)[:40])
def test_bad_parameters(parameters, words, target, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    with pytest.raises(ParameterError) as error:
        made(ledger=ledger, **parameters).fit(target, np.full((5, 2), SECRET))
    assert words in str(error.value)
    assert "0.1234" not in str(error.value)
    assert ledger.history() == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (np.full((17, 3), SECRET), "source has 3 features, but SourceTargetClustering is expecting 2"),
        (np.array([[SECRET, np.nan]]), "`source` must have finite values only"),
        (np.array([["Ada", "Lovelace"]]), "`source` must be a table of numbers"),
        (np.full(17, SECRET), "`source` must have two dimensions"),
    ],
)
def test_bad_sources(source, words, target, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    with pytest.raises(DataError) as error:
        made(ledger=ledger).fit(target, source)
    assert words in str(error.value)
    for secret in ("0.1234", "17", "Ada"):
        assert secret not in str(error.value)
    assert ledger.history() == []


@pytest.mark.parametrize("target", [np.empty((0, 2)), np.array([[0.0, np.nan]]), [["a", "b"]], np.zeros(3)])
def test_bad_targets(target, rows):
    with pytest.raises((DataError, ParameterError), match="target"):
        made().fit(target, rows)


def test_tables_with_names(target, rows):
    named = [pd.DataFrame(table, columns=["lon", "lat"]) for table in (target, rows)]
    model = made(random_state=0).fit(*named)
    assert model.release_.columns == ("lon", "lat")
    assert (model.center_indices_ == made(random_state=0).fit(target, rows).center_indices_).all()
    with pytest.raises(DataError, match="feature names should match"):
        made().fit(named[0], named[1][["lat", "lon"]])


@every_variant
def test_duplicate_targets(variant, rows):
    twice = np.repeat(np.random.default_rng(0).uniform(-1, 1, size=(4, 2)), 10, axis=0)
    model = made(n_clusters=4, coreset=0.0, **variant).fit(twice, rows)
    assert model.n_representatives_ == 4
    assert len(set(model.center_indices_)) == 4
    alone = made(n_clusters=1, **variant).fit(np.zeros((30, 2)), rows)
    assert (alone.n_representatives_, alone.cluster_centers_.tolist()) == (1, [[0.0, 0.0]])


def test_the_cost_for_the_holder(target, rows):
    model = made(random_state=0).fit(target, rows)
    centers = np.concatenate([rows, model.cluster_centers_])
    by_hand = np.mean([min(np.linalg.norm(centers - point, axis=1)) for point in target])
    assert model.cost(target, rows) == pytest.approx(by_hand, rel=1e-12)
    assert "not private" in inspect.getdoc(SourceTargetClustering.cost)
    assert model.cost(target, rows[:0]) >= model.cost(target, rows)


@pytest.mark.parametrize("kind", [{"epsilon": 3}, {"rho": 3}])
def test_most_of_the_gap_is_closed_where_source_and_target_overlap_in_part(kind):
    """Synthetic 2: between choosing by the target alone and knowing the source."""
    alone = known = private = plain = 0.0
    for seed in range(4):
        target, source = synthetic_2(np.random.default_rng(seed), 1000)
        for k in (5, 9):
            model = SourceTargetClustering(k, bounds=Ball(0.5), random_state=seed, **kind)
            private += model.fit(target, source).cost(target, source)
            plain += clone(model).set_params(sanitizer="nna").fit(target, source).cost(target, source)
            for_free = np.empty((0, 2)), source
            found = [k_medoids(target, k, free_centres=free).indices for free in for_free]
            alone, known = alone + cost(target, source, found[0]), known + cost(target, source, found[1])
    assert alone - private > 0.8 * (alone - known)
    assert alone - plain > 0.5 * (alone - known)


def cost(target, free, chosen):
    centers = np.concatenate([free, target[list(chosen)]])
    return np.linalg.norm(target[:, None] - centers, axis=2).min(axis=1).mean()


def diff(target, source, sanitized, k):
    """Largest difference of costs over all choices of k targets."""
    choices = combinations(range(len(target)), k)
    return max(abs(cost(target, source, chosen) - cost(target, sanitized, chosen)) for chosen in choices)


@pytest.mark.parametrize("kind", [{"epsilon": 2000}, {"epsilon": 2000, "delta": 1e-6}, {"rho": 2000}])
@pytest.mark.parametrize("n", [1, 3, 400])
def test_the_bound_holds(kind, n):
    target = np.random.default_rng(0).uniform(-1, 1, size=(12, 2))
    source = np.random.default_rng(1).uniform(-1, 1, size=(n, 2))
    for seed in range(10):
        model = made(
            n_clusters=2, sanitizer="nas", t=20, bound_share=0.5, coreset=0.1, random_state=seed, **kind
        )
        model.fit(target, source)
        assert diff(target, source, model.sanitized_source_, 2) <= model.diff_bound_
    assert n < 400 or model.diff_bound_ < 1, "the bound says nothing"


def test_the_bound_covers_its_noise():
    """With a small budget the bound is mostly noise, and still may fail only with probability gamma."""
    target = np.random.default_rng(0).uniform(-1, 1, size=(8, 2))
    source = np.full((2000, 2), 0.9)
    failures = 0
    for seed in range(40):
        model = made(
            n_clusters=1, sanitizer="nas", t=100, bound_share=0.3, epsilon=20, gamma=0.2, random_state=seed
        )
        model.fit(target, source)
        failures += diff(target, source, model.sanitized_source_, 1) > model.diff_bound_
    assert failures <= 16


def test_corollary_b1_needs_the_distances_of_the_representatives():
    """With Delta^t over all targets, as printed, adding C is not enough: 2 C are needed.

    Most targets sit on a row of the source, and are represented by one that is nearer to another row.
    """
    c, n = 0.1, 1000
    target = np.array([[0.0], [100 * c]] + [[c]] * n)
    source = np.array([[-0.999 * c], [c], [100 * c]])
    sanitized = source[[0, 2]]  # nearest rows of the representatives 0 and 100 c, with t = 1 and no noise
    error = cost(target, sanitized, [1]) - cost(target, source, [1])
    deltas = np.abs(target - source.T).min(axis=1)
    assert error > 1.9 * (deltas.mean() + c)
    assert error <= deltas[[0, 1]] @ [n + 1, 1] / (n + 2) + c


def test_the_noise_that_the_paper_adds_to_delta_t_is_too_small():
    """A Gaussian of standard deviation sensitivity / epsilon is far from (epsilon, delta)-DP."""
    epsilon = 1.0
    delta = norm.cdf(epsilon / 2 - 1) - np.exp(epsilon) * norm.cdf(-epsilon / 2 - 1)
    assert delta > 0.1


def test_line_6_of_nna_as_printed_misses_its_confidence():
    """Noise of scale (sqrt(d) + 1) / epsilon exceeds log((sqrt(d) + 1) / gamma) / epsilon too often."""
    d, gamma, epsilon = 2, 0.05, 3.0
    scale = (np.sqrt(d) + 1) / epsilon
    printed, corrected = np.log((np.sqrt(d) + 1) / gamma) / epsilon, scale * np.log(1 / gamma)
    assert np.exp(-printed / scale) > 3 * gamma  # P(|noise| > x) = exp(-x / scale)
    assert np.exp(-corrected / scale) == pytest.approx(gamma)


def test_an_empty_source_hardly_passes():
    """Hardly any group of an empty source is taken for occupied: for "nna", a share gamma at most."""
    target = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2))
    for sanitizer, most in (("nna", 0.06), ("rings", 0.01)):
        for kind in KINDS:
            model = made(sanitizer=sanitizer, coreset=0.02, random_state=0, **kind)
            model.fit(target, np.empty((0, 2)))
            assert len(model.sanitized_source_) <= most * model.n_representatives_


class TestCovering:
    @pytest.mark.parametrize("d", [1, 2, 8])
    @pytest.mark.parametrize("diameter", [0.0, 0.05, 0.4, 100.0])
    def test_every_point_is_near_its_representative(self, d, diameter):
        points = np.random.default_rng(d).normal(size=(300, d))
        indices, labels = cover(points, diameter)
        assert (np.linalg.norm(points - points[indices][labels], axis=1) <= diameter).all()
        assert (np.diff(indices) > 0).all()
        assert (labels[indices] == np.arange(len(indices))).all()
        assert len(indices) == {0.0: 300, 100.0: 1}.get(diameter, len(indices))

    def test_neighbouring_floats_are_parted(self):
        points = np.array([[1.0], [np.nextafter(1.0, 2)], [1.0]])
        assert cover(points, 0.0).labels.tolist() == [0, 1, 0]

    def test_targets_know_what_covering_costs(self):
        points = np.array([[0.0], [0.1], [5.0]])
        targets = Targets.covered(points, 1.0)
        assert targets.sizes.tolist() == [2, 1]
        assert targets.mean_distance == pytest.approx(0.1 / 3)

    def test_edges(self):
        domain = Domain.from_bounds((0, 10), 1)
        assert ring_edges(domain, 0.6).tolist() == pytest.approx([0.5, 1, 1.5])
        assert ring_edges(domain, 0.0).tolist() == pytest.approx(np.array([0.5, 1, 1.5]) * 1e-5 / 0.6)


def test_rings_give_the_expected_cost(target, rows):
    """With hardly any noise, the expected cost is about the one with the source itself."""
    model = made(epsilon=200, random_state=0).fit(target, rows)
    assert model.cost_ == pytest.approx(model.cost(target, rows), rel=0.3)


@every_kind
def test_an_empty_source_costs_little(kind, target):
    """Rows that only noise shows lead to a choice nearly as good as without a source."""
    empty = np.empty((0, 2))
    alone = cost(target, empty, k_medoids(target, 3).indices)
    models = [made(random_state=seed, **kind).fit(target, empty) for seed in range(10)]
    assert np.mean([model.cost(target, empty) for model in models]) < 1.1 * alone
