"""The exact privacy-loss meter: what is lost by every estimator, and what is found where something is wrong.

Each case is also run on broken copies of the library (tests/mutants): the meter alone must see them.
"""

import datetime
import math
import warnings
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import count, cycle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.base import clone
from tests.conftest import QUICK, all_estimators
from tests.holders.conftest import joint

from sfumato import (
    DPDBSCAN,
    DPM,
    Ball,
    Budget,
    CoresetKMeans,
    DensityTree,
    DPMoG,
    GridKMeans,
    Ledger,
    LloydKMeans,
    LocalSearchKMeans,
    MaxCoverKMeans,
    MorseClustering,
    PrivateKMeans,
    PrivatePCA,
    SourceTargetClustering,
    Unit,
    estimate_bounds,
    estimate_levels,
    holders,
    scan_csv,
)
from sfumato.audit import PAIRS, Pair, meter, meter_estimator, worst_neighbour
from sfumato.audit.step_losses import StepLoss, _p_value, step_loss, total_loss
from sfumato.audit.tape import Answer, same
from sfumato.budget import Plan, Record, Sensitivity, Step
from sfumato.curator.questions import sums_sensitivity
from sfumato.domain import Grid
from sfumato.domain.partitions import Tree
from sfumato.errors import DataError, ParameterError, PlanError, SfumatoError
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.aggregates.limbs import LimbSums, carried
from sfumato.private.aggregates.sums import GroupedSums
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.noise import discrete_gaussian, discrete_laplace
from sfumato.public.models import CentreModel

pytestmark = pytest.mark.usefixtures("quick")
slow = pytest.mark.slow

PURE, ZCDP, APPROXIMATE = {"epsilon": 1}, {"rho": 0.1}, {"epsilon": 1, "delta": 1e-6}
KINDS = {"pure": PURE, "zcdp": ZCDP, "approximate": APPROXIMATE}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def intact(found, least=0.0):
    assert not found.broken, str(found)
    assert least <= found.share <= 1, f"only {found.share:.0%} of the promise is lost on {found.pair!r}"


def fitting(make, *before, **parameters):
    return lambda table, seed: make(random_state=seed, **parameters).fit(*before, table)


class TestEveryEstimator:
    @every_kind
    @pytest.mark.parametrize("method", all_estimators(), ids=lambda method: method.__name__)
    def test_no_more_is_lost_than_promised(self, method, kind, defaults):
        for found in meter_estimator(defaults(method, **kind), [PAIRS["outlier"]], n_paths=1):
            intact(found, least=0.2)

    @slow
    @pytest.mark.parametrize("method", all_estimators(), ids=lambda method: method.__name__)
    def test_on_all_pairs(self, method, defaults):
        kinds = cycle(KINDS.values())
        for pair in PAIRS.values():
            if (method, pair.name) != (DPDBSCAN, "patient"):  # one radius for years and levels says nothing
                for found in meter_estimator(defaults(method, **next(kinds)), [pair], n_paths=1):
                    intact(found, least=0.2)

    @slow
    @pytest.mark.parametrize("method", all_estimators(), ids=lambda method: method.__name__)
    def test_the_worst_person_loses_nearly_what_is_promised(self, method, defaults):
        intact(worst_neighbour(defaults(method, **ZCDP), by_person=True, n_random=2, n_paths=1), least=0.7)


@pytest.fixture
def defaults():
    own = QUICK | {"max_cells": 64}  # a table with categories needs 32 of them

    def make(method, **kind):
        known = set(method().get_params()) - {"bounds"}
        return method(**{name: value for name, value in own.items() if name in known}, **kind)

    return make


def rows_of(n, d=2, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, size=(n, d))


def one_more(rows, unit, name="one more"):
    return Pair(name, np.concatenate([rows, np.atleast_2d(unit)]), rows, np.atleast_2d(unit))


class TestCases:
    """One for each thing that may go wrong. `METERED` in tests/mutants/mutants.py says which sees what."""

    @every_kind
    def test_counts(self, kind):
        for found in meter_estimator(DensityTree(**kind), [PAIRS["outlier"], PAIRS["person"]], n_paths=1):
            intact(found, least=0.99)

    def test_gaussian_noise(self):
        for found in meter_estimator(PrivateKMeans(2, **APPROXIMATE), [PAIRS["person"]], n_paths=2):
            intact(found, least=0.97)
            assert {step.record.mechanism for step in found.steps} == {"discrete Gaussian"}

    def test_a_count_that_one_row_moves_by_three(self):
        """Laplace noise in one entry, priced by its exact law: at this delta, Gaussian noise costs more."""
        run = fitting(Threefold, bounds=(-1, 1), epsilon=4, delta=1e-12)
        found = meter(run, one_more(rows_of(30), [1, 1]), Budget(4, 1e-12), n_paths=1)
        intact(found, least=0.99)
        assert {step.record.mechanism for step in found.steps} == {"discrete Laplace"}

    def test_products_of_many_columns(self):
        run = fitting(PrivatePCA, n_components=2, bounds=Ball(1.0), **PURE)
        found = meter(run, one_more(np.zeros((30, 64)), np.ones(64)), Budget(1), n_paths=1)
        intact(found, least=0.9)

    @every_kind
    def test_sums(self, kind):
        pairs = [PAIRS["outlier"], PAIRS["emptied cluster"], PAIRS["person"]]
        for found in meter_estimator(LloydKMeans(2, **kind), pairs, n_paths=1):
            intact(found, least=0.9 if found.pair == "outlier" else 0.7)

    @every_kind
    def test_splits(self, kind):
        pairs = [PAIRS["emptied cluster"], one_more(rows_of(60), [1e6, -1e6])]
        for found in meter_estimator(DPM(**kind), pairs, n_paths=2):
            intact(found, least=0.6)

    def test_splits_of_nobody(self):
        for found in meter_estimator(DPM(**PURE), [PAIRS["nobody"]], n_paths=1):
            intact(found, least=0.5)

    def test_splits_between_two_blobs(self):
        """On one of these paths a row between the blobs raises some scores and lowers others, by the most."""
        blobs = np.random.default_rng(1).normal(np.repeat([[-0.5], [0.5]], 100, axis=0), 0.05, size=(200, 2))
        run = fitting(DPM, bounds=(-1, 1), epsilon=200)
        intact(meter(run, one_more(blobs, [0.0, 0.5]), Budget(200), n_paths=3))

    @every_kind
    @pytest.mark.parametrize("method", [LocalSearchKMeans, MaxCoverKMeans, CoresetKMeans])
    def test_selections(self, method, kind):
        for found in meter_estimator(method(2, **kind), [PAIRS["emptied cluster"]], n_paths=1):
            intact(found, least=0.6)

    @pytest.mark.parametrize("d", [2, 9])
    @pytest.mark.parametrize("base", [DPMoG(2), DPMoG(2, assign="hard")], ids=["soft", "hard"])
    def test_moments(self, base, d):
        for kind in KINDS.values():
            method = MorseClustering(base, covariance="full", **kind)
            for found in meter_estimator(method, [one_more(np.zeros((30, d)), np.ones(d))], n_paths=1):
                intact(found, least=0.5)

    def test_profiles_and_categories(self):
        for found in meter_estimator(LloydKMeans(2, **PURE), [PAIRS["patient"]], n_paths=1):
            intact(found, least=0.7)

    @every_kind
    def test_bounds_that_are_found(self, kind):
        run = fitting(LloydKMeans, n_clusters=2, bounds="private", **kind)
        pair = one_more(np.zeros((200, 3)) + 0.1, [1e9, -1e9, 1e9])
        intact(meter(run, pair, Budget(**kind), n_paths=1), least=0.5)

    def test_bounds_that_were_bought(self):
        def run(rows, seed):
            bounds = estimate_bounds(rows, epsilon=1, random_state=seed)
            return LloydKMeans(2, epsilon=1, bounds=bounds, random_state=seed).fit(rows)

        found = meter(run, PAIRS["outlier"], Budget(2), n_paths=1)
        intact(found, least=0.5)

    def test_a_statement_that_leaves_out_what_was_bought_is_found(self):
        def run(rows, seed):
            estimate_bounds(rows, epsilon=1, random_state=seed)
            return LloydKMeans(2, epsilon=1, bounds=(-1, 1), random_state=seed).fit(rows)

        listed, lost = meter(run, PAIRS["outlier"], Budget(2), n_paths=1).complaints
        assert "does not list the steps" in listed
        assert "more is lost than the statement says" in lost

    @pytest.mark.parametrize(
        "sanitizer", [{}, {"sanitizer": "nna"}, {"sanitizer": "nas", "t": 5, "bound_share": 0.2}], ids=str
    )
    def test_nearest_rows(self, sanitizer):
        targets = rows_of(20)
        run = fitting(SourceTargetClustering, targets, n_clusters=3, bounds=(-1, 1), **sanitizer, **PURE)
        for unit in (targets[0], targets[1], [1.0, 1.0], [1e6, 1e6]):
            intact(meter(run, one_more(rows_of(12, seed=1), unit), Budget(1), n_paths=1))

    @pytest.mark.parametrize("unit", [None, "who"])
    def test_levels_that_are_found(self, unit):
        jobs, towns = ["usual", "common"] * 200, ["here"] * 400
        rows = pa.table({"who": np.arange(400), "x": np.zeros(400), "job": jobs, "town": towns})
        own = ["rare", "usual", "common"] if unit else ["rare"]
        more = pa.table({"who": [-1], "x": [0.9], "job": ["rare"], "town": ["nowhere"]})
        more = pa.concat_tables([more.set_column(2, "job", pa.array([job])) for job in own])
        pair = Pair("rare", pa.concat_tables([rows, more]), rows, np.zeros((1, 2)))
        bounds = {"x": (-1, 1), "job": {"levels": "private"}, "town": {"levels": "private"}}
        kind = {"epsilon": 8, "delta": 1e-2, "unit": unit}
        run = fitting(LloydKMeans, n_clusters=2, bounds=bounds, **kind)
        intact(meter(run, pair, Budget(8, 1e-2), n_paths=1), least=0.3)
        run = partial(levels_of, unit=unit)
        found = meter(run, pair, Budget(1, 1e-2), n_paths=2)
        intact(found)
        assert 0 < found.steps[0].delta <= 1e-2

    def test_levels_that_others_have(self):
        """Levels that are found cost their share, and the rest of the fit no more than the rest."""
        rows = pa.table({"x": np.zeros(400), "job": ["usual", "common"] * 200})
        more = pa.table({"x": [1.0], "job": ["usual"]})
        pair = Pair("usual", pa.concat_tables([rows, more]), rows, np.zeros((1, 2)))
        bounds = {"x": (-1, 1), "job": {"levels": "private"}}
        run = fitting(DensityTree, bounds=bounds, profiles=0, epsilon=1, delta=1e-6)
        intact(meter(run, pair, Budget(1, 1e-6), n_paths=1), least=0.99)

    def test_people_in_several_files(self, tmp_path):
        tables = []
        for name, n in (("with", 12), ("without", 0)):
            folder = tmp_path / name
            folder.mkdir()
            for part in range(3):
                who = [f"person {part} {i}" for i in range(20)] + ["newcomer"] * n
                x = np.append(np.full(20, -0.5), np.full(n, 0.9))
                pq.write_table(pa.table({"who": who, "x": x}), folder / f"{part}.parquet")
            tables.append(folder)
        pair = Pair("in files", *tables, np.zeros((1, 1)))
        own = {"bounds": {"x": (-1, 1)}, "unit": "who", "max_rows_per_unit": 4, "profiles": 0}
        run = fitting(DensityTree, **own, **PURE)
        intact(meter(run, pair, Budget(1), n_paths=1), least=0.9)

    def test_texts(self):
        others = [f"alpha beta gamma {word}" for word in ("one", "two", "three", "four")] * 100
        pair = Pair("texts", [*others, "alpha beta gamma one two three rare"], others, np.zeros((1, 2)))

        def run(texts, seed):
            rows = np.resize([[0.9, 0.0], [0.0, 0.9]], (len(texts), 2))
            model = LloydKMeans(2, bounds=(-1, 1), epsilon=1, random_state=seed).fit(rows)
            return model.describe_terms(texts, max_terms=2, epsilon=4, delta=1e-3, random_state=seed)

        intact(meter(run, pair, Budget(5, 1e-3), n_paths=1))

    def test_texts_of_many_words(self):
        """Each person counts for some of their words, whoever else there is; new words are seldom shown."""
        rng, words = np.random.default_rng(0), [f"word{i}" for i in range(60)]
        others = [" ".join(rng.choice(words, 50, replace=False)) for _ in range(60)]
        newcomer = " ".join([*words[:2], *(f"a{i}" for i in range(15)), *(f"z{i}" for i in range(15))])
        run = partial(terms_of, max_terms=64, epsilon=0.2, delta=1e-3)
        intact(
            meter(
                run,
                Pair("texts", [*others, newcomer], others, np.zeros((1, 2))),
                Budget(0.2, 1e-3),
                n_paths=1,
            )
        )

    def test_texts_of_words_that_others_use(self):
        words = " ".join(f"word{i}" for i in range(32))
        others = [words] * 2000
        run = partial(terms_of, max_terms=32, epsilon=0.2, delta=0.1)
        found = meter(
            run, Pair("texts", [*others, words], others, np.zeros((1, 2))), Budget(0.2, 0.1), n_paths=1
        )
        intact(found, least=0.5)

    def test_texts_of_people_in_several_clusters(self):
        who, texts, places = ["a", "b", "c"] * 100, ["alpha", "beta", "gamma"] * 100, [-0.9, 0.9, 0.9] * 100
        rows = pa.table({"who": who, "x": places, "text": texts})
        more = pa.table({"who": ["z"] * 4, "x": [-0.9, 0.9] * 2, "text": ["alpha", "alpha", "beta", "beta"]})
        pair = Pair("in two clusters", pa.concat_tables([rows, more]), rows, np.zeros((1, 1)))
        own = {"bounds": {"x": (-1, 1)}, "unit": "who", "max_rows_per_unit": 1, "profiles": 0}

        def run(table, seed):
            model = LloydKMeans(2, epsilon=1000, random_state=seed, **own).fit(table)
            vocabulary = ["alpha", "beta", "gamma"]
            return model.describe_terms(
                table["text"].to_pylist(), vocabulary, max_terms=1, epsilon=1, random_state=seed
            )

        intact(meter(run, pair, Budget(1001), n_paths=1))

    def test_rows_of_another_width(self, tmp_path):
        """The first row of a file must not tell how the others are read."""
        paths = [tmp_path / "with.csv", tmp_path / "without.csv"]
        for path, first in zip(paths, ("0.9,0.9,0.9\n", ""), strict=True):
            path.write_text(first + "0.1,0.2\n" * 50)
        pair = Pair("a wide row", *(scan_csv(path, names=["x", "y"]) for path in paths), np.zeros((1, 2)))
        run = fitting(DensityTree, bounds={"x": (0, 1), "y": (0, 1)}, missing="drop", **PURE)
        intact(meter(run, pair, Budget(1), n_paths=1))

    def test_objects_of_another_type(self):
        """A date among times must not turn them all into dates."""
        noon = datetime.datetime(2026, 1, 1, 12)
        frames = [
            pd.DataFrame({"day": pd.Series(days, dtype=object)})
            for days in ([noon.date(), *[noon] * 50], [noon] * 50)
        ]
        run = fitting(
            DensityTree,
            bounds={"day": (datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 2))},
            **PURE,
        )
        intact(meter(run, Pair("a date", *frames, np.zeros((1, 1))), Budget(1), n_paths=1))

    @pytest.mark.parametrize("probe", ["Astray", "Minute"])
    def test_methods_that_sum_around_wrong_places(self, probe):
        """Sums refuse. If they did not, one row would move them further than is paid for."""
        rows = pa.table({"job": ["a"] * 30})
        pair = Pair("one more", pa.concat_tables([rows, rows[:1]]), rows, np.zeros((1, 2)))
        run = fitting(PROBES[probe], bounds={"job": ["a", *(f"level {i}" for i in range(999))]}, **PURE)
        intact(meter(run, pair, Budget(1), n_paths=1))

    def test_sums_that_outgrow_a_limb(self):
        """Noise carries half of these sums into the high limb, which must not tell the exact sum."""
        run = fitting(Brimming, bounds=(-1, 1), **PURE)
        found = meter(run, one_more(rows_of(1023), [1, 1]), Budget(1), n_paths=4)
        intact(found, least=0.99)

    def test_a_ledger_of_months(self, tmp_path):
        """A person with rows in two months: what the ledger lets through costs no more than its total."""
        rows = pa.table({"who": [f"person {i}" for i in range(40)], "x": np.full(40, -0.5)})
        more = pa.table({"who": ["newcomer"], "x": [0.9]})
        pair = Pair("in both months", pa.concat_tables([rows, more]), rows, np.zeros((1, 1)))
        ledgers = (tmp_path / f"{n}.db" for n in count())

        def run(month, seed):
            path, parts = next(ledgers), ("January", "February")
            declared = {"unit": Unit("who"), "parts_by": "month", "parts": parts, "max_parts_per_unit": 2}
            Ledger.create(path, "stays", Budget(1), **declared)
            months = [Ledger(path, "stays", part=part, allow_seeded=True) for part in parts]
            return [allowed(of_month, month, seed, unit="who") for of_month in months]

        intact(meter(run, pair, Budget(1), n_paths=1), least=0.99)

    def test_a_ledger_of_rows_and_persons(self, tmp_path):
        """Runs that protect rows do not count for persons."""
        pair = PAIRS["person"]
        ledgers = (tmp_path / f"{n}.db" for n in count())

        def run(table, seed):
            ledger = Ledger.create(next(ledgers), "stays", Budget(2), allow_seeded=True)
            units = ({"unit": "person", "max_rows_per_unit": 4}, {})
            return [allowed(ledger, table, seed, bounds=pair.parameters["bounds"], **unit) for unit in units]

        intact(meter(run, pair, Budget(2), n_paths=1), least=0.49)

    def test_errors(self):
        """What both tables are refused for says nothing about their values."""
        pair = Pair("words", np.array([["secret"]]), np.array([["other"]]), np.zeros((1, 1)))
        with pytest.raises(DataError, match="numbers"):
            meter(fitting(LloydKMeans, bounds=(-1, 1), **PURE), pair, Budget(1), n_paths=1)

    def test_people_at_several_holders(self):
        """The cap holds for the rows of a person at all holders together."""
        bounds, own = PAIRS["person"].parameters["bounds"], {"unit": "person", "max_rows_per_unit": 4}
        method = DensityTree(bounds=bounds, profiles=0, **own, **PURE)

        def run(table, seed):
            halves = dict(zip(("north", "south"), (table, table), strict=True))
            return holders.release(joint(clone(method).set_params(random_state=seed), halves)).model

        found = meter(run, PAIRS["person"], Budget(1), n_paths=1)
        intact(found, least=0.99)

    def test_two_versions_of_a_round(self):
        """A curator who shows holders another answer of the first round gets no second one."""
        names = ("north", "south")

        def run(rows, seed):
            method = GridKMeans(2, bounds=(-1, 1), random_state=seed, **PURE)
            transcript = holders.declare(method, names, columns=2)
            halves = dict(zip(names, (rows[::2], rows[1::2]), strict=True))
            states = {name: holders.fold(transcript, rows, name) for name, rows in halves.items()}
            one = holders.combine(transcript, states.values())
            other = replace(one, rounds=(tuple(values + 1 for values in one.rounds[0]),))
            rounds = []
            for version in (one, other):
                try:
                    states |= {
                        name: holders.fold(version, rows, name, last=states[name])
                        for name, rows in halves.items()
                    }
                except ParameterError:
                    continue
                rounds += holders.combine(version, states.values()).rounds
            return rounds

        intact(meter(run, PAIRS["outlier"], Budget(1), n_paths=1), least=0.99)

    def test_the_seed(self):
        for found in meter_estimator(LloydKMeans(2, **PURE), [PAIRS["nobody"]], n_paths=1):
            intact(found)

    def test_many_rows_in_blocks_and_threads(self):
        rows = rows_of(70_000)
        intact(
            meter(
                fitting(DensityTree, bounds=(-1, 1), **PURE), one_more(rows, [0.5, 0.5]), Budget(1), n_paths=1
            )
        )

    @every_kind
    @pytest.mark.parametrize("probe", ["Greedy", "Wide"])
    def test_methods_that_ask_for_more_than_was_declared(self, probe, kind):
        """The curator refuses. If it did not, more would be lost than promised."""
        run = fitting(PROBES[probe], bounds=(-1, 1), **kind)
        intact(meter(run, one_more(rows_of(30), [1, 1]), Budget(**kind), n_paths=1))


def levels_of(table, seed, unit):
    return estimate_levels(table, ["job", "town"], unit=unit, epsilon=1, delta=1e-2, random_state=seed)


def terms_of(texts, seed, **asked):
    rows = np.resize([[0.9, 0.0], [0.0, 0.9]], (1000, 2))
    model = LloydKMeans(2, bounds=(-1, 1), epsilon=1000, random_state=seed).fit(rows)
    places = np.resize(rows, (len(texts), 2))
    return model.describe_terms(texts, X=places, random_state=seed, **asked)


def allowed(ledger, table, seed, bounds=None, **own):
    """Number of clusters of a fit, or nothing if the ledger refuses."""
    model = DensityTree(
        bounds=bounds or {"x": (-1, 1)}, epsilon=1, profiles=0, random_state=seed, ledger=ledger, **own
    )
    try:
        return model.fit(table).n_clusters_
    except SfumatoError:
        return None


class Greedy(GridKMeans):
    """Asks until it is refused."""

    def _cluster(self, curator):
        for step in ("rows", "grid"):
            for _ in range(5):
                try:
                    found = curator.count(step)
                except PlanError:
                    break
        return CentreModel(np.zeros((1, 2)), found.values[:1].astype(float))


class Wide(GridKMeans):
    """Asks for more than it declared."""

    def _cluster(self, curator):
        sizes = np.ones(1)
        for step in ("rows", "grid"):
            try:
                sizes = curator.histograms(step, np.array([[-1.0, 0.0, 1.0]] * 2)).values
            except PlanError:
                continue
        return CentreModel(np.zeros((1, 2)), sizes.ravel()[:1].astype(float))


class Thrice(RowCount):
    """Counts every row three times."""

    @property
    def sensitivity(self):
        return Sensitivity(l1=3, l2_squared=9, spread=3, coordinates=1)

    def add(self, state, rows):
        state[0] += 3 * len(rows)
        return state


class Threefold(GridKMeans):
    """Asks for three times the number of rows."""

    def _plan(self, domain):
        return Plan(Step("rows", 1, sensitivity=Thrice().sensitivity))

    def _cluster(self, curator):
        return CentreModel(np.zeros((1, 2)), curator._release("rows", Thrice()).values.astype(float))


class Astray(GridKMeans):
    """Sums levels around a place where no row can be, at which all levels are far away."""

    def _plan(self, domain):
        return Plan(Step("sums", 1, sensitivity=sums_sensitivity(domain)))

    def place(self, domain):
        return np.array(domain.high) / 2, 1.0

    def _cluster(self, curator):
        origin, radius = self.place(curator.domain)
        try:
            sums = GroupedSums(Tree.root(), origin[None], np.array([radius]), curator.domain)
        except ParameterError:
            return CentreModel(origin[None], np.zeros(1))
        return CentreModel(origin[None], curator._release_sums("sums", sums)[0][:, 0])


class Minute(Astray):
    """Sums levels around the rows themselves, but for rounding, within a radius as small as that."""

    def place(self, domain):
        corner, n_others, off = domain.high[0], domain.n_features - 1, 2.0**-41
        origin = np.append(corner, np.full(n_others, off * corner / n_others))
        return origin, off * corner / math.sqrt(n_others)


class Brimful(LimbSums):
    """Counts every row so often that 1,024 rows fill a limb."""

    @property
    def sensitivity(self):
        return Sensitivity(l1=2**51, l2_squared=2**102, spread=2**51, coordinates=1)

    def zero(self):
        return np.zeros((2, 1), dtype=np.int64)

    def add(self, state, rows):
        state[0] += len(rows) << 51
        return carried(state)

    def unpack(self, values):
        return (values,)


class Brimming(GridKMeans):
    """Asks for a sum at the border of a limb."""

    def _plan(self, domain):
        return Plan(Step("rows", 1, sensitivity=Brimful().sensitivity))

    def _cluster(self, curator):
        return CentreModel(np.zeros((1, 2)), curator._release_sums("rows", Brimful())[0])


PROBES = {"Greedy": Greedy, "Wide": Wide, "Astray": Astray, "Minute": Minute}


def answer(exact, mechanism="discrete Laplace", scale=2, threshold=None, delta=0):
    record = Record("a", mechanism, Sensitivity(), Fraction(scale), Fraction(delta))
    return Answer(record, exact, None, threshold)


class TestArithmetic:
    def test_how_far_vectors_are_apart(self):
        found = step_loss(answer(np.array([5, 0, -3])), answer(np.array([3, 0, -2])))
        assert found.moved == Sensitivity(l1=3, l2_squared=5, spread=3, coordinates=2)
        assert found.epsilon == Fraction(3, 2)
        assert not found.is_covered

    @pytest.mark.parametrize(
        ("mechanism", "rho"),
        [
            ("discrete Laplace", Fraction(9, 8)),
            ("discrete Gaussian", Fraction(5, 8)),
            ("exponential", Fraction(9, 32)),
            ("permute-and-flip", Fraction(9, 8)),
        ],
    )
    def test_costs(self, mechanism, rho):
        pair = answer(np.array([5, 0, -3]), mechanism), answer(np.array([3, 0, -2]), mechanism)
        assert step_loss(*pair).rho == rho

    def test_scores_that_all_move_alike_cost_nothing_and_others_their_spread(self):
        alike = step_loss(*(answer(np.array([1, 2]) + c, "exponential") for c in (0, 7)))
        assert alike.moved.spread == 0
        one = step_loss(answer(np.array([1, 2]), "exponential"), answer(np.array([1, 9]), "exponential"))
        assert one.moved.spread == 7

    def test_cells_that_only_one_table_has_count_from_zero(self):
        found = step_loss(answer({4: 2, 9: 1}), answer({4: 2}))
        assert found.moved.l1 == 1

    @pytest.mark.parametrize("mechanism", ["discrete Laplace", "discrete Gaussian"])
    def test_hidden_values_show_with_their_probability(self, mechanism):
        sample = discrete_gaussian if mechanism == "discrete Gaussian" else discrete_laplace
        draws = sample(Fraction(2), 2_000_000, Entropy(0)).reshape(-1, 2)
        expected = ((draws + np.array([1, 2])) >= 5).any(axis=1).mean()
        with_values = answer({"a": 90, "b": 1, "c": 2}, mechanism, threshold=5)
        found = step_loss(with_values, answer({"a": 89}, mechanism, threshold=5))
        assert found.moved.l1 == 1
        assert found.delta == pytest.approx(expected, rel=0.01)

    def test_pure_losses_add_up_exactly(self):
        steps = [
            step_loss(answer(np.array([1]), scale=Fraction(3)), answer(np.array([0]), scale=Fraction(3)))
        ] * 3
        assert total_loss(steps, Budget(1)) == 1
        above = [step_loss(*(answer(np.array([c]), scale=Fraction(10**9 - 1, 10**9)) for c in (1, 0)))]
        assert total_loss(above, Budget(1)) > 1
        gaussian = step_loss(*(answer(np.array([c]), "discrete Gaussian") for c in (1, 0)))
        assert total_loss([gaussian], Budget(1)) == math.inf

    def test_with_a_delta_losses_compose(self):
        """Against the closed form of the Gaussian mechanism (Balle and Wang 2018)."""
        step = step_loss(*(answer(np.array([c]), "discrete Gaussian", 1000) for c in (500, 0)))
        mu = math.sqrt(3) * 0.5
        exact = brentq(
            lambda e: norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu) - 1e-5, 0, 20
        )
        found = total_loss([step] * 3, Budget(1, 1e-5))
        assert exact * 0.99 < found <= exact

    def test_equal_values_lose_nothing(self):
        step = step_loss(answer(np.array([3, 4])), answer(np.array([3, 4])))
        for budget in (Budget(1), Budget(rho=1), Budget(1, 1e-6)):
            assert total_loss([step], budget) == 0

    @pytest.mark.parametrize("scale", [0.3, 1.0, 7.0, 30.0])
    @pytest.mark.parametrize("mechanism", ["discrete Laplace", "discrete Gaussian"])
    def test_laws(self, mechanism, scale):
        exact = Fraction(scale).limit_denominator(1000)
        sample = discrete_gaussian if mechanism == "discrete Gaussian" else discrete_laplace
        assert _p_value(sample(exact, 2**17, Entropy(1)), mechanism, float(exact)) > 1e-4
        assert _p_value(sample(exact * Fraction(9, 10), 2**17, Entropy(1)), mechanism, float(exact)) < 1e-9


class TestTape:
    def test_an_answer_without_noise_is_found(self):
        class Leaking(LloydKMeans):
            def _cluster(self, curator):
                model = super()._cluster(curator)
                return CentreModel(
                    model.cluster_centers, model.cluster_sizes + curator._engine.fold(RowCount())[0]
                )

        found = meter(
            fitting(Leaking, n_clusters=2, bounds=(-1, 1), **PURE), PAIRS["outlier"], Budget(1), n_paths=1
        )
        assert found.complaints == ("with the same answers, the result differs",)

    def test_other_questions_are_found(self):
        class Nosy(GridKMeans):
            def _cluster(self, curator):
                step = "rows" if curator._engine.fold(RowCount())[0] % 2 else "grid"
                return CentreModel(np.zeros((1, 2)), curator.count(step).values[:1].astype(float))

        found = meter(fitting(Nosy, bounds=(-1, 1), **PURE), PAIRS["outlier"], Budget(1), n_paths=1)
        assert "other questions" in found.complaints[0]
        assert found.to_dict()["broken"]
        assert "BROKEN" in str(found)

    def test_a_warning_is_found(self):
        class Talkative(GridKMeans):
            def _cluster(self, curator):
                if curator._engine.fold(RowCount())[0] > 24:
                    warnings.warn("many rows", stacklevel=1)
                return CentreModel(np.zeros((1, 2)), curator.count("rows").values.astype(float))

        found = meter(fitting(Talkative, bounds=(-1, 1), **PURE), PAIRS["outlier"], Budget(1), n_paths=1)
        assert found.complaints == ("with the same answers, a warning differs",)

    def test_sameness(self):
        grid = Grid((0.0,), (1.0,), (2,))
        assert same([np.array([1, 2]), {"a": (1.0, grid)}], [np.array([1, 2]), {"a": (1.0, grid)}])
        assert same(math.nan, math.nan)
        assert same(np.array([math.nan]), np.array([math.nan]))
        for one, other in [(1, 1.0), (np.array([1]), np.array([1.0])), ([1], [1, 2]), ({"a": 1}, {"b": 1})]:
            assert not same(one, other)


def test_a_step_beyond_its_sensitivity_is_not_covered():
    record = Record("a", "discrete Gaussian", Sensitivity(l2_squared=4), Fraction(1))
    assert StepLoss(record, Sensitivity(l2_squared=4), np.array([2])).is_covered
    assert not StepLoss(record, Sensitivity(l2_squared=5), np.array([2, 1])).is_covered
