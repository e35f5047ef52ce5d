"""Profiles: exact without noise, honest with it, and the same after a round through JSON."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from sfumato.domain.columns import Described
from sfumato.errors import ParameterError
from sfumato.public.models.codec import decode, encode
from sfumato.public.profiles import Profiles
from sfumato.public.profiles.quantiles import Shape, quantile
from sfumato.public.profiles.views import View

LEVELS = {"ward": ("Medicine", "Surgery", "Eyes", "other", "missing")}


@pytest.fixture(scope="module")
def exact(world):
    """Profiles without noise."""
    return world.profiles(0.0)


@pytest.fixture(scope="module")
def noisy(world):
    return world.profiles(10.0, seed=1)


def test_without_noise_sizes_and_shares_are_exact(world, exact):
    for c in range(world.n_clusters):
        own = world.groups == c
        assert exact.size(c) == pytest.approx((own.sum(),) * 3, abs=1e-3)
        codes = world.values[own, 4]
        truth = [*((codes == level).mean() for level in range(4)), np.isnan(codes).mean()]
        found = exact.share(c, "ward")
        assert tuple(found) == LEVELS["ward"]
        assert [three.value for three in found.values()] == pytest.approx(truth, abs=1e-4)
        assert exact.missing(c, "age").value == pytest.approx(np.isnan(world.values[own, 0]).mean(), abs=1e-4)
    assert exact.size() == pytest.approx((len(world.groups),) * 3, abs=1e-3)


@pytest.mark.parametrize("name", ["age", "hours", "income", "day"])
@pytest.mark.parametrize("q", [0.1, 0.25, 0.5, 0.75, 0.9])
def test_without_noise_quantiles_are_as_near_as_bins_allow(world, exact, name, q):
    column = exact.column(name)
    for cluster in (None, *range(world.n_clusters)):
        truth = float(np.quantile(world.column(name, cluster), q, method="inverted_cdf"))
        value, low, high = exact.quantile(cluster, name, q)
        assert low <= value <= high
        assert low - 1e-9 <= truth <= high + 1e-9
        assert abs(value - truth) <= 0.03 * (column.high - column.low)


def test_ties_are_whole_numbers(world, exact, noisy):
    for found in (exact, noisy):
        assert found.is_whole("hours")
        assert not found.is_whole("day")
        assert found.quantile(0, "hours", 0.5) == (40, 40, 40)


def test_columns_of_parts_are_not_whole(worlds):
    world = worlds(3000)
    values = world.values.copy()
    values[:, 1] = np.random.default_rng(9).uniform(0, 100, 3000)
    assert not replace(world, values=values).profiles(5.0).is_whole("hours")


@pytest.mark.parametrize("high", [0.7, 0.9, 1.1, 30.3, 99.9])
def test_many_rows_at_a_bound_that_is_no_whole_number(worlds, high):
    """The bin of the bound alone is so narrow that its middle is one of its ends."""
    world = worlds(3000)
    values = world.values.copy()
    values[:, 0] = np.where(np.random.default_rng(4).random(3000) < 0.4, high, values[:, 0] / 100 * high)
    world = replace(
        world, described=(Described("age", low=0, high=high), *world.described[1:]), values=values
    )
    found = world.profiles(3.0)
    for cluster in (None, *range(world.n_clusters)):
        value, low, up = found.quantile(cluster, "age", 0.9)
        assert low == value == pytest.approx(high)
        assert value == up


# Values of columns with bounds (0, high), most of them at one whole number or a few.
def flags(rng, n):
    return (rng.random(n) < 0.3).astype(float)


def counts(rng, n):
    return np.where(rng.random(n) < 0.9, 0, rng.geometric(0.5, n)).clip(0, 50)


def rain(rng, n):
    return np.where(rng.random(n) < 0.95, 0, rng.exponential(0.1, n).round(2).clip(0, 2))


def hours(rng, n):
    return np.where(rng.random(n) < 0.8, 40, rng.normal(40, 10, n)).clip(0, 100)


@pytest.mark.parametrize("std", [5.0, 20.0])
@pytest.mark.parametrize(
    ("draw", "high", "is_whole"),
    [(flags, 1, True), (counts, 50, True), (rain, 2, False), (hours, 100, False)],
)
def test_a_frequent_number_does_not_make_the_others_whole(worlds, draw, high, is_whole, std):
    world = worlds(6000)
    values = world.values.copy()
    values[:, 0] = draw(np.random.default_rng(5), 6000)
    described = (Described("age", low=0, high=high), *world.described[1:])
    world = replace(world, described=described, values=values)
    found = world.profiles(std)
    assert found.is_whole("age") == is_whole
    if draw in (rain, hours):
        usual = 0 if draw is rain else 40
        value, low, up = found.quantile(None, "age", 0.5)
        assert low <= value == usual <= up <= low + 0.5
    if draw is rain:
        value, low, up = found.quantile(None, "age", 0.98)
        assert low <= np.quantile(world.column("age"), 0.98) <= up < 1
        assert 0 < value < 1


def sight(rng, n):
    return np.where(rng.random(n) < 0.7, 10, np.round(2 * rng.uniform(0, 10, n)) / 2)


def small(rng, n):
    return rng.exponential(0.1, n).clip(0, 100)


@pytest.mark.parametrize("std", [5.0, 25.0])
@pytest.mark.parametrize(("draw", "high"), [(rain, 2), (sight, 10), (small, 100), (hours, 100)])
def test_intervals_hold_beside_a_frequent_number(worlds, draw, high, std):
    held = []
    for seed in range(6):
        world = worlds(4000, seed=seed)
        values = world.values.copy()
        values[:, 0] = draw(np.random.default_rng(seed), 4000)
        described = (Described("age", low=0, high=high), *world.described[1:])
        world = replace(world, described=described, values=values)
        found = world.profiles(std, seed)
        for cluster in (None, *range(world.n_clusters)):
            for q in (0.1, 0.25, 0.5, 0.75, 0.9, 0.95):
                truth = np.quantile(world.column("age", cluster), q, method="inverted_cdf")
                _, low, up = found.quantile(cluster, "age", q)
                held.append(low - 1e-9 <= truth <= up + 1e-9)
    assert np.mean(held) > 0.93


@pytest.mark.parametrize("mechanism", ["discrete Gaussian", "discrete Laplace"])
@pytest.mark.parametrize("std", [3.0, 30.0])
def test_intervals_hold_what_they_promise(world, std, mechanism):
    """Over all clusters, columns and numbers: 95 %, more where ties leave no choice."""
    shares, quantiles, sizes = [], [], []
    for seed in range(12):
        found = world.profiles(std, seed, mechanism)
        for c in range(world.n_clusters):
            own = world.groups == c
            sizes.append(found.size(c).low <= own.sum() <= found.size(c).high)
            for place, name in ((4, "ward"), (5, "luck")):
                codes = world.values[own, place]
                truth = [*((codes == level).mean() for level in range(4)), np.isnan(codes).mean()]
                for exact, (_, low, high) in zip(truth, found.share(c, name).values(), strict=True):
                    shares.append(low - 1e-9 <= exact <= high + 1e-9)
            for name in ("age", "income", "day"):
                for q in (0.25, 0.5, 0.75):
                    exact = np.quantile(world.column(name, c), q, method="inverted_cdf")
                    _, low, high = found.quantile(c, name, q)
                    quantiles.append(low - 1e-9 <= exact <= high + 1e-9)
    assert 0.92 < np.mean(shares) < 0.98
    assert 0.93 < np.mean(quantiles) <= 1
    assert np.mean(sizes) > 0.85


@pytest.mark.parametrize("seed", range(3))
def test_numbers_fit_together(world, seed):
    found = world.profiles(60.0, seed)
    sizes = found.sizes.estimates
    assert sizes.sum() == pytest.approx(found.size().value)
    for name in found.names:
        bars = [found.bars(c, name) for c in range(4)]
        table = found.bars(None, name)
        for one in (*bars, table):
            assert one.shares.sum() == pytest.approx(1)
            assert (one.shares >= 0).all()
            assert (one.lows <= one.shares + 1e-12).all()
            assert (one.highs >= one.shares - 1e-12).all()
            assert (one.lows >= 0).all()
            assert (one.highs <= 1).all()
        mixed = sum(size * one.shares for size, one in zip(sizes, bars, strict=True)) / sizes.sum()
        assert table.shares == pytest.approx(mixed)
        elsewhere = found.elsewhere(0, name).shares
        assert (sizes[0] * bars[0].shares + sizes[1:].sum() * elsewhere) / sizes.sum() == pytest.approx(mixed)


def test_quantiles_increase(noisy):
    for name in ("age", "hours", "income", "day"):
        found = [noisy.quantile(1, name, q).value for q in np.linspace(0, 1, 21)]
        assert found == sorted(found)
        column = noisy.column(name)
        assert column.low <= found[0] <= found[-1] <= column.high + 1


def test_more_noise_makes_wider_intervals(world):
    widths = []
    for std in (1.0, 20.0, 200.0):
        found = world.profiles(std, 3)
        three = found.quantile(3, "age", 0.5)
        share = found.share(3, "ward")["Surgery"]
        widths.append((three.high - three.low, share.high - share.low))
    assert widths[0][0] < widths[1][0] <= widths[2][0]
    assert widths[0][1] < widths[1][1] < widths[2][1]


def test_what_noise_hides_is_unknown(world):
    found = world.profiles(20_000.0, 0)
    for c in range(4):
        share = found.share(c, "ward")["Eyes"]
        assert share.high - share.low > 0.5
        three = found.quantile(c, "age", 0.5)
        assert three.high - three.low > 50
        assert not any(one.is_clear for one in found.distinct(c))
        text = found.sentence(c)
        assert text.startswith("Too few rows to describe: at most") or "noise" in text


def test_an_empty_cluster(world):
    empty = replace(world, n_clusters=5).profiles(5.0, 2)
    assert empty.size(4).low < 5
    assert empty.size(4).high < 40
    assert "Too few" in empty.sentence(4)
    median = empty.quantile(4, "age", 0.5)
    assert median.high - median.low > 30


def test_one_cluster_is_described_without_the_others(world):
    alone = replace(world, n_clusters=1, groups=np.zeros_like(world.groups)).profiles(5.0)
    assert [one.is_clear for one in alone.distinct(0)] == [False] * 7
    assert "elsewhere" not in alone.sentence(0)
    assert alone.size(0).value == pytest.approx(6000, rel=0.02)


def test_no_cluster_at_all(world):
    none = replace(world, n_clusters=0, groups=np.full_like(world.groups, -1)).profiles(5.0, complete=False)
    assert none.n_clusters == 0
    assert none.sizes.estimates.tolist() == []
    assert none.size().value == pytest.approx(6000, rel=0.02)
    assert none.quantile(None, "age", 0.5).value == pytest.approx(np.median(world.column("age")), abs=2)
    assert str(none) == ""
    assert {row["cluster"] for row in none.rows()} == {None}


def test_rows_in_no_cluster_count_in_the_table_only(world):
    groups = np.where(world.groups == 3, -1, world.groups)
    found = replace(world, groups=groups, n_clusters=3).profiles(3.0, 1, complete=False)
    assert found.size().value == pytest.approx(6000, rel=0.03)
    assert found.sizes.estimates.sum() == pytest.approx((groups >= 0).sum(), rel=0.03)
    assert found.share(None, "luck")["bad"].value == pytest.approx(1 / 3, abs=0.03)
    exact = np.median(world.column("age"))
    _, low, high = found.quantile(None, "age", 0.5)
    assert low <= exact <= high


def test_directions(world, exact, noisy):
    for found in (exact, noisy):
        for c in range(4):
            hours = world.column("hour", c)
            mean = np.angle(np.exp(2j * np.pi * hours / 24).mean()) / (2 * np.pi) * 24 % 24
            told = found.direction(c, "hour")
            assert told.is_clear
            assert not told.is_flat
            assert told.value == pytest.approx(mean, abs=0.6)
            assert told.low <= mean <= told.high
            assert 0.5 < told.strength <= 1
            assert told.half[0] <= mean <= told.half[1]


def test_a_flat_cycle_is_told_as_such(worlds):
    world = worlds(20_000)
    values = world.values.copy()
    values[:, 6] = np.random.default_rng(9).uniform(0, 24, len(values))
    found = replace(world, values=values).profiles(3.0)
    assert found.direction(0, "hour").is_flat
    assert not found.direction(0, "hour").is_clear or found.direction(0, "hour").strength < 0.1
    assert "hour all through the day" in found.sentence(0, most=9)


def test_a_direction_across_midnight(worlds):
    world = worlds(4000)
    values = world.values.copy()
    values[:, 6] = np.random.default_rng(9).normal(0, 1.5, len(values)) % 24
    told = replace(world, values=values).profiles(3.0).direction(0, "hour")
    assert min(told.value, 24 - told.value) < 0.5
    assert told.half[1] - told.half[0] <= 4
    assert told.half[0] < 24 < told.half[1]


def test_columns_that_set_clusters_apart(noisy):
    for c in range(4):
        found = {one.column: one for one in noisy.distinct(c)}
        assert found["age"].is_clear
        assert found["ward"].is_clear
        assert found["luck"].score < 0.1
        scores = [(one.is_clear, one.score) for one in noisy.distinct(c)]
        assert scores == sorted(scores, reverse=True)
    assert 0.5 < {one.column: one.score for one in noisy.distinct(3)}["age"] <= 1


@pytest.mark.parametrize("mechanism", ["discrete Gaussian", "discrete Laplace"])
def test_noise_rarely_sets_a_cluster_apart(worlds, mechanism):
    """Clusters drawn at random do not differ."""
    alarms = []
    for seed in range(8):
        world = worlds(4000, seed=seed)
        groups = np.random.default_rng(100 + seed).integers(0, 4, 4000)
        found = replace(world, groups=groups).profiles(40.0, seed, mechanism)
        alarms += [one.is_clear for c in range(4) for one in found.distinct(c)]
    assert np.mean(alarms) < 0.03


def test_json_gives_the_same_profiles(noisy):
    again = decode(json.loads(json.dumps(encode(noisy))))
    assert isinstance(again, Profiles)
    assert again.rows() == noisy.rows()
    assert [again.sentence(c) for c in range(4)] == [noisy.sentence(c) for c in range(4)]


@pytest.mark.parametrize(
    "damage",
    [
        {"columns": ()},
        {"edges": ()},
        {"mechanism": "none"},
        {"std": math.inf},
        {"std": -1.0},
        {"table_counts": "short"},
        {"counts": "short"},
        {"edges": "falling"},
        {"edges": "elsewhere"},
    ],
)
def test_damaged_profiles_are_refused(noisy, damage):
    (name, value), parts = *damage.items(), noisy.edges
    if value == "short":
        value = tuple(array[..., :-1] for array in getattr(noisy, name))
    elif value == "falling":
        value = tuple(line[::-1].copy() for line in parts)
    elif value == "elsewhere":
        value = tuple(line + 1 for line in parts)
    with pytest.raises(ParameterError):
        replace(noisy, **{name: value}).check()
    noisy.check()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.quantile(0, "ward", 0.5), "numbers or dates"),
        (lambda p: p.quantile(0, "age", 1.5), "from 0 to 1"),
        (lambda p: p.direction(0, "age"), "must be a cycle"),
        (lambda p: p.share(9, "ward"), "`cluster` must be from 0 to 3"),
        (lambda p: p.share("0", "ward"), "`cluster` must be from 0 to 3"),
        (lambda p: p.bars(0, "wards"), "`column` must be one of age, hours"),
    ],
)
def test_questions_without_an_answer(noisy, call, message):
    with pytest.raises(ParameterError, match=message):
        call(noisy)


def test_levels_named_other_and_missing_stay_apart(noisy):
    ward = Described("ward", "level", levels=("other", "missing", "Eyes"))
    columns = tuple(ward if one.column == "ward" else one for one in noisy.columns)
    assert list(replace(noisy, columns=columns).share(0, "ward")) == [
        "other",
        "missing",
        "Eyes",
        "(other)",
        "(missing)",
    ]


def test_rows_list_every_number_beside_that_of_the_table(noisy):
    rows = noisy.rows()
    assert set(rows[0]) == {
        "cluster",
        "column",
        "kind",
        "statistic",
        "value",
        "low",
        "high",
        "table",
        "readable",
    }
    ward = [r for r in rows if (r["cluster"], r["column"], r["statistic"]) == (1, "ward", "Surgery")]
    assert ward[0]["value"] == noisy.share(1, "ward")["Surgery"].value
    assert ward[0]["table"] == noisy.share(None, "ward")["Surgery"].value
    day = [r for r in rows if (r["cluster"], r["column"], r["statistic"]) == (1, "day", "median")]
    assert day[0]["low"] <= day[0]["value"] <= day[0]["high"]
    assert len(day[0]["value"]) == len("2024-03-02")  # no time of day in a column of years
    assert day[0]["value"].startswith("202")
    frame = noisy.to_frame()
    assert len(frame) == len(rows)
    assert list(frame.columns) == list(rows[0])


def test_without_pandas_a_message_says_what_to_do(noisy, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install pandas.*rows\(\)"):
        noisy.to_frame()


def test_printing_is_short(noisy):
    assert repr(noisy) == "<Profiles of 4 clusters and 7 columns>"
    assert str(noisy).count("\n") == 3


def test_a_quantile_at_the_edge_of_a_bin_and_of_two_points():
    """Half of the rows at 2, half at 7: the median is 2, and the interval may hold both."""
    column = Described("x", low=0, high=10)
    edges = np.arange(11.0)
    counts = np.zeros(10, dtype=np.int64)
    counts[[2, 7]] = 500
    shape = Shape.of(column, edges, counts, 1.0, 1000.0, edges)
    numbers = np.append(counts, 0).astype(float)
    found = quantile(View(numbers, numbers, 4 * np.eye(11), 0.0, 4.0), shape, column, 0.5)
    assert (found.low, found.high) == (2, 8)
    surely = quantile(View(numbers, numbers, 4 * np.eye(11), 0.0, 4.0), shape, column, 0.25)
    assert (surely.low, surely.high) == (2, 3)
