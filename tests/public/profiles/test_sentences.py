"""Sentences say nothing that the numbers of the profile do not."""

import re
from dataclasses import replace

import numpy as np
import pytest

from sfumato.domain.columns import Described
from sfumato.public.profiles.sentences import _in_order
from sfumato.public.profiles.wording import (
    date_in_words,
    iso_date,
    number,
    on_cycle,
    percent,
    quantity,
    unit_for,
)

NOUN, LABELS = "stays", {"age": "aged", "ward": "", "day": "admitted"}


def numbers_in(text):
    return [float(found.replace(",", "")) for found in re.findall(r"-?\d[\d,]*(?:\.\d+)?", text)]


@pytest.mark.parametrize("std", [1.0, 12.0, 40.0])
@pytest.mark.parametrize("seed", range(3))
def test_every_number_comes_from_the_profile(world, std, seed):
    """Each number is within half of its last digit of a number that a method returns."""
    found = world.profiles(std, seed)
    for c in range(world.n_clusters):
        text = found.sentence(c, noun=NOUN, labels=LABELS, most=9)
        known = list(found.size(c))
        for name in found.names:
            kind = found.column(name).kind
            if kind == "number":
                known += [found.quantile(c, name, q).value for q in (0.1, 0.25, 0.5, 0.75, 0.9)]
            if kind == "level":
                for bars in (found.bars(c, name), found.elsewhere(c, name)):
                    known += [100 * x for part in (bars.shares, bars.lows, bars.highs) for x in part]
        without_times = re.sub(
            r"\d\d:\d\d|\d+ [A-Z][a-z]+ \d{4}|[A-Z][a-z]+ \d{4}|half of them 20\d\d", "", text
        )
        for told in numbers_in(without_times):
            digits = f"{told:g}"
            unit = 10 ** (len(digits) - len(digits.rstrip("0"))) if told and "." not in digits else 1.0
            assert min(abs(told - exact) for exact in known) <= max(unit, 1.0), (told, text)


def test_a_clear_cluster_in_words(world):
    found = world.profiles(1.0)
    text = found.sentence(3, noun=NOUN, labels=LABELS, most=9)
    assert re.match(r"About \d+ stays \(\d+ to \d+\): ", text)
    assert re.search(r"aged around 6\d years \(half of them 5\d to 6\d years\)", text)
    assert re.search(r"mostly Medicine \(\d+ %, elsewhere \d+ %\)", text)
    assert re.search(r"hour around 1[34]:\d\d \(half of them from 1\d:00 to 1\d:00\)", text)
    assert "luck" not in text
    assert text.endswith(".")


def test_at_most_so_many_columns_are_named(world):
    found = world.profiles(1.0)
    for most in (1, 2, 3):
        assert found.sentence(3, most=most).count("around") + found.sentence(3, most=most).count("%,") <= most


def test_clusters_that_do_not_differ_are_not_said_to(worlds):
    world = worlds(8000)
    groups = np.random.default_rng(9).integers(0, 4, 8000)
    found = replace(world, groups=groups).profiles(60.0)
    assert "No column sets them apart from the others beyond the noise." in found.sentence(1)


def test_a_level_is_told_only_if_its_interval_leaves_out_the_share_elsewhere(world):
    for seed in range(5):
        found = world.profiles(40.0, seed)
        for c in range(4):
            text = found.sentence(c, labels={"ward": "WARD"}, most=9)
            for how, level in re.findall(r"WARD (more often|less often|mostly) ([A-Z]\w+)", text):
                own, rest = found.share(c, "ward")[level], found.elsewhere(c, "ward")
                other = rest.shares[rest.labels.index(level)]
                assert own.high < other if how == "less often" else own.low > other


def test_missing_values_are_told_as_such(worlds):
    world = worlds(6000)
    values = world.values.copy()
    values[world.groups == 1, 4] = np.nan
    text = replace(world, values=values).profiles(2.0).sentence(1, labels={"ward": "ward:"}, most=9)
    assert re.search(r"ward: mostly no value \(over 9\d %, elsewhere \d+ %\)", text)


@pytest.mark.parametrize("std", [1.0, 12.0])
def test_orders_are_told_by_their_middle(worlds, std):
    world, bands = worlds(6000), tuple(f"[{low}-{low + 10})" for low in range(0, 100, 10))
    described = (Described("band", "level", levels=bands, ordered=True), *world.described[1:])
    values = world.values.copy()
    values[:, 0] = values[:, 0] // 10
    world = replace(world, described=described, values=values)
    text = world.profiles(std).sentence(2, most=9)
    low, middle, high = (bands[int(np.quantile(world.column("band", 2), q))] for q in (0.25, 0.5, 0.75))
    assert f"band around {middle} (half of them {low} to {high})" in text
    values[world.groups == 2, 0] = 3
    text = replace(world, values=values).profiles(std).sentence(2, most=9)
    assert re.search(r"band mostly \[30-40\) \(over 9\d %, elsewhere \d+ %\)", text)


@pytest.mark.parametrize("most", [1, 5])
@pytest.mark.parametrize("std", [1.0, 25.0, 40.0])
def test_one_value_is_not_told_as_a_range(worlds, std, most):
    """Of whole numbers, "around 1.00 (half of them 1.0 to 1.0)" could be told."""
    world = worlds(1500)
    values = world.values.copy()
    values[:, 0] = np.minimum(world.groups, most)
    world = replace(
        world, described=(Described("age", low=0, high=most), *world.described[1:]), values=values
    )
    for seed in range(4):
        found = world.profiles(std, seed)
        texts = [found.sentence(c, most=9) for c in range(found.n_clusters)]
        assert not any(re.search(r"half of them (\S+) to \1\)", text) for text in texts), texts
        if std == 1.0:
            assert [f"age mostly {min(c, most)}" in text for c, text in enumerate(texts)] == [True] * 4
            assert not any(re.search(r"mostly \d+\.0", text) for text in texts)


@pytest.mark.parametrize("std", [1.0, 12.0])
def test_a_usual_value_is_told_with_the_tenth_that_sets_apart(worlds, std):
    """Rain is mostly 0 everywhere. A fifth of the rows have some in one cluster, and low marks in another."""
    world, rng = worlds(6000), np.random.default_rng(3)
    values = world.values.copy()
    is_odd = rng.random(6000) < 0.2
    values[:, 0] = np.where(is_odd & (world.groups == 1), rng.uniform(0.2, 1.4, 6000), 0)
    values[:, 1] = np.where(is_odd & (world.groups == 2), rng.integers(1, 4, 6000), 10)
    described = (
        Described("rain", low=0, high=2, unit="inches"),
        Described("marks", low=0, high=10),
        *world.described[2:],
    )
    found = replace(world, described=described, values=values).profiles(std)
    wet, low = (found.sentence(c, most=9) for c in (1, 2))
    assert (told := re.search(r"rain mostly 0 inches \(a tenth of them (\S+) inches or more\)", wet))
    assert 0.5 < float(told[1]) < 1.1
    assert re.search(r"marks mostly 10 \(a tenth of them [123] or less\)", low)
    assert "tenth" not in found.sentence(0, most=9)


def test_of_a_yes_and_a_no_the_share_of_the_yes_is_told(worlds):
    world, rng = worlds(6000), np.random.default_rng(3)
    described = (*world.described[:5], Described("smokes", "level", levels=(False, True)), world.described[6])
    values = world.values.copy()
    values[:, 5] = rng.random(6000) < np.array([0.1, 0.3, 0.5, 0.9])[world.groups]
    found = replace(world, described=described, values=values).profiles(2.0)
    for c, share in enumerate([10, 30, 50, 90]):
        told = re.search(r"smokes (\d+) % \(elsewhere (\d+) %\)", found.sentence(c, most=9))
        if c != 1:  # nearly as all others
            assert abs(int(told[1]) - share) <= 3
    alone = replace(world, described=described, values=values, groups=0 * world.groups, n_clusters=1)
    assert re.search(r"smokes \d+ %[,.]", alone.profiles(2.0).sentence(0, most=9))


def test_a_median_far_from_that_of_all_is_told(worlds):
    """Its interval may be wide beside the middle half of the cluster's own rows."""
    world, rng = worlds(6000), np.random.default_rng(3)
    values = world.values.copy()
    values[:, 0] = np.where(world.groups == 3, rng.normal(2.6, 0.3, 6000).clip(0, 10), 10)
    world = replace(
        world, described=(Described("sight", low=0, high=10), *world.described[1:]), values=values
    )
    for seed in range(4):
        text = world.profiles(20.0, seed).sentence(3, most=9)
        assert re.search(r"sight around [23](\.\d)?", text), text


def test_numbers_are_not_told_finer_than_a_person_reads(worlds):
    world = worlds(6000)
    described = (Described("age", low=-0.3, high=97.1), *world.described[1:])  # bounds that were bought
    text = replace(world, described=described).profiles(1.0).sentence(3, most=9)
    assert re.search(r"age around \d+(\.\d)? \(half of them \d+(\.\d)? to \d+(\.\d)?\)", text)


@pytest.mark.parametrize(
    ("half_width", "text"), [(460, "5,000"), (46, "5,010"), (9.5, "5,012"), (0.3, "5,012.3"), (6000, "5,000")]
)
def test_numbers_are_rounded_to_what_the_noise_allows(half_width, text):
    assert number(5012.3, unit_for(half_width)) == text


def test_dates_units_and_times():
    assert date_in_words(19_784.3, 1) == "2 March 2024"
    assert iso_date(19_784) == "2024-03-02"
    assert iso_date(19_784.5) == "2024-03-02T12:00:00"
    assert iso_date(1e9) == "9999-12-31"
    assert quantity(Described("x", low=0, high=40, unit="km"), 12.34, 0.2) == "12.3 km"
    assert quantity(Described("x", low=0, high=40), 12.34, 0.2, is_whole=True) == "12"
    assert quantity(Described("x", low=0, high=40), 12.25, 0.0) == "12.25"
    assert quantity(Described("x", low=0, high=40), 12.0, 0.0) == "12"
    assert on_cycle(Described("x", "cycle", 0, 24), 8.52, 0.1) == "08:30"
    assert on_cycle(Described("x", "cycle", 0, 24), 23.99, 0.5) == "00:00"
    assert on_cycle(Described("x", "cycle", 0, 360, unit="°"), 365, 2) == "5 °"
    assert on_cycle(Described("x", "cycle", 0, 365.2425, unit="year"), 200, 20) == "July"


def test_shares_near_the_ends_are_bounds():
    assert percent(0.0, 0.0, 0.031) == "under 4 %"
    assert percent(1.0, 0.985, 1.0) == "over 98 %"
    assert percent(0.995, 0.99, 0.999) == "over 99 %"
    assert percent(0.5, 0.3, 0.7) == "50 %"


@pytest.mark.parametrize("seed", range(6))
def test_a_median_lies_within_the_half_that_is_told(worlds, seed):
    """Rounded apart, "around 800 (half of them 1,000 to 2,000)" could be told."""
    found = worlds(1500).profiles(25.0, seed)
    for c in range(found.n_clusters):
        for told in re.findall(
            r"around ([\d.,]+)[^(]*\(half of them ([\d.,]+) to ([\d.,]+)", found.sentence(c, most=9)
        ):
            median, low, high = (float(number.rstrip(",").replace(",", "")) for number in told)
            assert low <= median <= high


def test_values_that_would_change_their_order_are_rounded_alike():
    assert _in_order([780.0, 820.0, 1700.0], [500.0, 90.0, 500.0]) == [500.0, 90.0, 500.0]
    assert _in_order([680.0, 820.0, 1700.0], [1000.0, 90.0, 1000.0]) == [1000.0, 1000.0, 1000.0]
    assert _in_order([0.1, 0.4, 0.6], [0.1, 0.01, 0.1]) == [0.1, 0.01, 0.1]
