"""Several holders get the release that one table of all rows would give, and a drop-out is noticed."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sfumato import (
    DPDBSCAN,
    DPM,
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
    SourceTargetClustering,
    Sparse,
    Sphere,
    estimate_bounds,
    holders,
)
from sfumato.datasets import separated_gaussians
from sfumato.errors import BudgetExceededError, LedgerError, NoiseWarning, ParameterError, ReleaseError

from .conftest import joint, parted, public

X, _ = separated_gaussians(1500, n_clusters=3, n_features=2, random_state=0)
HALVES = {"north": X[:400], "south": X[400:]}
FAST = {"epsilon": 2.0, "bounds": (-1, 1), "random_state": 5}
METHODS = [
    DPM(max_depth=3),
    PrivateKMeans(3),
    GridKMeans(3),
    LloydKMeans(3, n_iter=2),
    DensityTree(),
    DPMoG(3),
    DPMoG(3, n_iter=2),
    CoresetKMeans(3),
    MaxCoverKMeans(3),
    LocalSearchKMeans(3),
    DPDBSCAN(radius=0.2, min_samples=120),
    MorseClustering(DPMoG(3), n_clusters=2),
]
BUDGETS = [{"epsilon": 2.0}, {"epsilon": 1.0, "delta": 1e-6}, {"epsilon": None, "rho": 0.5}]

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.NoiseWarning")


def stays(n=900, n_people=200):
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "patient": rng.integers(0, n_people, n),
            "age": rng.normal(60, 20, n),
            "ward": rng.choice(["icu", "er", "other ward"], n),
            "day": np.datetime64("2026-01-01", "us") + rng.integers(0, 180, n) * np.timedelta64(1, "D"),
            "days": rng.integers(1, 30, n),
        }
    )


BOUNDS = {
    "age": (0, 120),
    "ward": ["icu", "er"],
    "day": (pd.Timestamp("2026-01-01").date(), pd.Timestamp("2026-07-01").date()),
}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_two_holders_give_the_pooled_release(method, same):
    same(method.set_params(**FAST), X, 2, columns=2)


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "delta", "rho"])
@pytest.mark.parametrize("method", [DPM(max_depth=2), GridKMeans(3)], ids=["dpm", "grid"])
def test_five_holders_and_every_kind_of_budget(method, budget, same):
    same(method.set_params(**FAST | {"delta": 0.0, "rho": None} | budget), X, 5, columns=2)


@pytest.mark.parametrize("bounds", ["private", Sphere(1.0), (np.array([-1, -1]), np.array([1, 1]))])
def test_bounds_of_every_kind(bounds, same):
    same(LloydKMeans(2, n_iter=1, **FAST | {"bounds": bounds}), X, 2, columns=2)


@pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")
@pytest.mark.slow
def test_cells_that_are_too_many_to_list(same):
    same(DPDBSCAN(radius=0.1, min_samples=150, **FAST), np.hstack([X] * 3), 2, columns=6)


def test_named_columns_with_profiles(same):
    same(GridKMeans(2, **FAST | {"bounds": BOUNDS, "describe": {"days": (0, 30)}}), stays(), 2)


def test_files_with_columns_of_one_kind(same, tmp_path):
    frame, names = pd.DataFrame(X, columns=["east", "north"]), ["north", "south"]
    frame.to_parquet(tmp_path / "all.parquet")
    for name, part in zip(names, parted(frame, 2).values(), strict=True):
        part.to_parquet(tmp_path / f"{name}.parquet")
    tables = {name: tmp_path / f"{name}.parquet" for name in names}
    method = GridKMeans(3, **FAST)
    found = holders.release(joint(method, tables, columns=["east", "north"]))
    assert public(found) == public(method.fit(tmp_path / "all.parquet").release_)


def test_people_at_one_holder_each(same):
    frame = stays().sort_values("patient", ignore_index=True)
    cut = int(frame.index[frame.patient == 60][0])
    tables = {"north": frame[:cut], "south": frame[cut:]}
    method = LloydKMeans(2, n_iter=1, unit="patient", max_rows_per_unit=3, **FAST | {"bounds": BOUNDS})
    found = holders.release(joint(method, tables, max_holders_per_unit=1))
    assert public(found) == public(method.fit(frame).release_)


def test_people_at_several_holders_share_their_cap():
    method = GridKMeans(2, unit="patient", **FAST | {"bounds": BOUNDS})
    with pytest.raises(ParameterError, match=r"at least 2.*max_holders_per_unit=1"):
        holders.declare(method, ["north", "south"])
    tables = dict(zip(["north", "south"], [stays()] * 2, strict=True))
    transcript = holders.declare(method.set_params(max_rows_per_unit=5), [*tables])
    (count,) = holders.fold(transcript, tables["north"], "north").values
    assert count == np.minimum(stays().patient.value_counts(), 2).sum()  # 5 // 2 rows at each
    assert "at most 5 rows" in str(holders.release(joint(method, tables)).privacy)


def test_without_a_seed_noise_is_fresh_and_the_release_may_be_published():
    made = [joint(GridKMeans(3, epsilon=1, bounds=(-1, 1)), HALVES, columns=2) for _ in range(2)]
    assert made[0].noise is None
    assert not np.array_equal(made[0].rounds[0][0], made[1].rounds[0][0]) or not np.array_equal(
        made[0].rounds[1][0], made[1].rounds[1][0]
    )
    assert not holders.release(made[0]).privacy.seeded
    assert holders.release(joint(GridKMeans(3, **FAST), HALVES, columns=2)).privacy.seeded


def test_everybody_computes_the_same_release_from_the_transcript():
    transcript = joint(GridKMeans(3, **FAST), HALVES, columns=2)
    assert public(holders.release(transcript)) == public(holders.release(transcript))


class TestDropOuts:
    """What is missing or does not fit is noticed before noise is drawn."""

    @pytest.fixture
    def transcript(self):
        return holders.declare(GridKMeans(3, **FAST), [*HALVES], columns=2)

    @pytest.fixture
    def states(self, transcript):
        return [holders.fold(transcript, table, name) for name, table in HALVES.items()]

    @pytest.fixture(autouse=True)
    def no_noise(self, monkeypatch):
        def drawn(*_):
            raise AssertionError("noise was drawn")

        monkeypatch.setattr("sfumato.private.mechanisms.entropy.Entropy.words", drawn)

    def refused(self, transcript, states, message):
        with pytest.raises(ParameterError, match=message):
            holders.combine(transcript, states)

    def test_a_holder_is_missing(self, transcript, states):
        self.refused(transcript, states[:1], r"state of 'south' is missing.*Nothing was released")
        self.refused(transcript, [], "state of 'north' is missing")

    def test_a_holder_is_there_twice(self, transcript, states):
        self.refused(transcript, [*states, states[0]], "'north' is there more than once")

    def test_a_stranger(self, transcript, states):
        self.refused(transcript, [*states, replace(states[0], holder="west")], "no holder of this fit")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"fit": "0" * 64}, "of another fit"),
            ({"round": 1}, "of round 1, and the transcript waits for round 0"),
            ({"transcript": "0" * 64}, "of another transcript"),
            ({"question": "0" * 64}, "of another question"),
            ({"values": np.zeros(2, dtype=np.int64)}, "must have the shape"),
        ],
    )
    def test_a_state_that_does_not_fit(self, transcript, states, change, message):
        self.refused(transcript, [states[0], replace(states[1], **change)], message)

    def test_the_question_of_the_transcript_was_altered(self, transcript, states):
        other = replace(transcript, question="0" * 64)
        states = [replace(state, question="0" * 64) for state in states]
        with pytest.raises(ReleaseError, match="another version"):
            holders.combine(other, states)
        with pytest.raises(ReleaseError, match="nothing was folded"):
            holders.fold(other, X, "north")


def test_a_list_of_cells_is_checked_before_it_is_merged():
    method = DPDBSCAN(radius=0.1, min_samples=150, **FAST)
    tables = {name: np.hstack([rows] * 3) for name, rows in HALVES.items()}
    transcript = holders.declare(method, [*tables], columns=6)
    north, south = (holders.fold(transcript, table, name) for name, table in tables.items())
    assert north.values.shape[1] == 2
    assert north.form == "cells"
    for bad in ([[3, 1], [3, 1]], [[-1, 1]], [[2**62, 1]], [[3, 0]], [[3, -1]], [1, 2], [[1, 2, 3]]):
        spoilt = replace(south, values=np.array(bad, dtype=np.int64))
        with pytest.raises(ParameterError):
            holders.combine(transcript, [north, spoilt])


def test_a_complete_fit_asks_nothing_more():
    transcript = joint(GridKMeans(3, **FAST), HALVES, columns=2)
    with pytest.raises(ParameterError, match="complete"):
        holders.fold(transcript, X, "north")
    with pytest.raises(ParameterError, match="complete"):
        holders.combine(transcript, [])
    with pytest.raises(ParameterError, match="waits for round 1"):
        holders.release(replace(transcript, rounds=transcript.rounds[:1], question="0" * 64))


def test_answers_that_were_altered_are_refused():
    transcript = joint(DPM(max_depth=2, **FAST), HALVES, columns=2)
    first, *rest = transcript.rounds
    for rounds in [(), (first, *rest, first), ((*first, *first), *rest), ((np.zeros(9, dtype=int),), *rest)]:
        with pytest.raises(ReleaseError):
            holders.release(replace(transcript, rounds=rounds))


class TestLedgers:
    """One entry at each, before the first row is read; and a curator that asks a round twice is refused."""

    @pytest.fixture
    def ledgers(self, tmp_path):
        return {
            name: Ledger.create(tmp_path / f"{name}.db", "stays", Budget(1))
            for name in ("curator", "north", "south")
        }

    @pytest.fixture
    def transcript(self, ledgers):
        method = DPM(max_depth=2, epsilon=1, bounds=(-1, 1), ledger=ledgers["curator"])
        return holders.declare(method, [*HALVES], columns=2)

    def test_one_entry_at_each(self, transcript, ledgers):
        states = {}
        while not transcript.is_complete:
            for name, table in HALVES.items():
                states[name] = holders.fold(
                    transcript, table, name, ledger=ledgers[name], last=states.get(name)
                )
            transcript = holders.combine(transcript, states.values(), ledger=ledgers["curator"])
        assert transcript.round > 3
        for name in HALVES:
            holders.settle(transcript, ledgers[name])
        for ledger in ledgers.values():
            (charge,) = ledger.history()
            assert (charge.spend, charge.method, charge.outcome) == (Budget(1), "DPM", "released")
            assert charge.plan["holders"] == ["north", "south"]

    def test_the_charge_comes_before_the_rows(self, transcript, ledgers, tmp_path):
        ledgers["north"].charge(Budget("1/2"), method="DPM", plan="before")
        with pytest.raises(BudgetExceededError):
            holders.fold(transcript, X, "north", ledger=ledgers["north"])

    def test_rows_of_files_are_not_read_before_the_charge(self, ledgers, tmp_path, monkeypatch):
        frame = stays()
        method = GridKMeans(2, epsilon=2, bounds=BOUNDS)
        transcript = holders.declare(method, ["north", "south"])

        def read(*_):
            raise AssertionError("a row was read")

        monkeypatch.setattr("sfumato.private.sources.frames.FrameSource.engine", read)
        with pytest.raises(BudgetExceededError):
            holders.fold(transcript, frame, "north", ledger=ledgers["north"])

    def test_two_versions_of_a_round(self, transcript, ledgers):
        def both(transcript, last):
            return {
                name: holders.fold(transcript, table, name, ledger=ledgers[name], last=last.get(name))
                for name, table in HALVES.items()
            }

        states = both(transcript, {})
        one, other = (holders.combine(transcript, states.values()) for _ in range(2))
        while one.digest() == other.digest():  # the same noise by chance
            other = holders.combine(transcript, states.values())
        after = both(one, states)
        both(one, after)  # the same round again shows nothing new
        with pytest.raises(ParameterError, match="two versions of a round"):
            both(other, after)
        with pytest.raises(ParameterError, match="two versions of a round"):
            both(transcript, after)
        with pytest.raises(ParameterError, match="`last` must be"):
            both(one, {})
        with pytest.raises(ParameterError, match="`last` must be a state of 'north'"):
            both(one, {"north": states["south"]})
        assert [len(ledgers[name].history()) for name in HALVES] == [1, 1]

    def test_the_last_round_twice(self, transcript, ledgers):
        states = {}
        while not transcript.is_complete:
            before = transcript
            for name, table in HALVES.items():
                states[name] = holders.fold(transcript, table, name, last=states.get(name))
            transcript = holders.combine(transcript, states.values(), ledger=ledgers["curator"])
        with pytest.raises(LedgerError, match="released before"):
            holders.combine(before, states.values(), ledger=ledgers["curator"])

    def test_a_ledger_that_was_not_charged(self, ledgers):
        transcript = joint(GridKMeans(3, **FAST), HALVES, columns=2)
        with pytest.raises(LedgerError, match="not charged"):
            holders.settle(transcript, ledgers["north"])

    def test_seeded_fits_are_refused(self, ledgers):
        method = GridKMeans(3, **FAST | {"epsilon": 1})
        with pytest.raises(LedgerError, match="seeded"):
            holders.declare(method.set_params(ledger=ledgers["curator"]), [*HALVES], columns=2)
        transcript = holders.declare(method.set_params(ledger=None), [*HALVES], columns=2)
        with pytest.raises(LedgerError, match="seeded"):
            holders.fold(transcript, X, "north", ledger=ledgers["north"])

    def test_what_is_not_supported_charges_nothing(self, ledgers):
        ledger = ledgers["curator"]
        frame = pd.DataFrame(X, columns=["east", "north"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoiseWarning)
            bought = estimate_bounds(frame, epsilon=1, random_state=0)
        levels = {"east": (0, 1), "ward": {"levels": "private"}}
        refused = {
            "find levels": GridKMeans(2, bounds=levels, delta=1e-6),
            "bought values": GridKMeans(2, bounds=bought),
            "dense rows": LloydKMeans(2, bounds=Sparse(max_active=4)),
            "clustering method": SourceTargetClustering(2, bounds=(-1, 1)),
        }
        for message, method in refused.items():
            with pytest.raises(ParameterError, match=message):
                holders.declare(method.set_params(ledger=ledger), [*HALVES], columns=2)
        with pytest.raises(ParameterError, match="`columns` must be"):
            holders.declare(GridKMeans(2, bounds=(-1, 1), ledger=ledger), [*HALVES])
        with pytest.raises(ParameterError, match="`n_clusters`"):
            holders.declare(GridKMeans(-2, bounds=(-1, 1), ledger=ledger), [*HALVES], columns=2)
        for names in (["north"], ["north", "north"], ["north", ""]):
            with pytest.raises(ParameterError, match="`holders` must be"):
                holders.declare(GridKMeans(2, bounds=(-1, 1), ledger=ledger), names, columns=2)
        assert ledger.history() == []


def test_who_is_no_holder():
    transcript = holders.declare(GridKMeans(3, **FAST), [*HALVES], columns=2)
    with pytest.raises(ParameterError, match="must be one of north, south, got 'west'"):
        holders.fold(transcript, X, "west")
