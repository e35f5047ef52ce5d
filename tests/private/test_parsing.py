"""Values written as text, against Python's own readers and plain references."""

import datetime
import math
import os
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato.domain.columns import days
from sfumato.domain.text import TextFormat
from sfumato.private import parsing
from sfumato.private.parsing import parse_booleans, parse_dates, parse_numbers, spell, spell_people

N_CASES = int(os.environ.get("SFUMATO_FUZZ_CASES", "20000"))
MARKS = [(".", ""), (",", ""), (",", "."), (".", ","), (".", "'"), (",", " ")]


def numbers(values, **options):
    return parse_numbers(pa.array(values, pa.large_string()), TextFormat(delimiter="|", **options))


def same(found, wanted) -> bool:
    return bool(
        np.array_equal(np.asarray(found).view(np.uint64), np.asarray(wanted, dtype=float).view(np.uint64))
    )


def plain_number(value: str, decimal: str, thousands: str) -> float:
    """The obvious twin: Python's float of the value with a point and without marks of thousands."""
    value = value.strip(" \t")
    if value.lower() in ("true", "false"):
        return float(value.lower() == "true")
    whole, mark, rest = value.partition(decimal)
    if not mark:
        whole, rest = value, ""
    if thousands:
        if thousands in rest + value.lower().partition("e")[2] or any(
            not (before[-1:].isdigit() and after[:1].isdigit())
            for before, after in zip(whole.split(thousands), whole.split(thousands)[1:], strict=False)
        ):
            return math.nan
        whole = whole.replace(thousands, "")
    if set(whole + rest) - set("+-eE0123456789"):
        return math.nan
    try:
        return float(whole + ("." if mark else "") + rest)
    except ValueError:
        return math.nan


def random_floats(rng, n):
    """Floats of all sizes, by their bits."""
    bits = rng.integers(0, 2**64, n, dtype=np.uint64)
    floats = bits.view(np.float64)
    return floats[np.isfinite(floats)]


def test_every_float_reads_back_as_it_was():
    floats = random_floats(np.random.default_rng(0), N_CASES)
    spelled = [repr(float(x)) for x in floats]
    assert same(numbers(spelled), floats)
    assert same(numbers([s.replace(".", ",") for s in spelled], decimal=","), floats)


@pytest.mark.parametrize("n_digits", [1, 5, 15, 16, 17, 18, 19, 20, 25, 60])
def test_numbers_are_rounded_as_by_python(n_digits):
    rng = np.random.default_rng(n_digits)
    n = N_CASES // 10
    digits = ["".join(map(str, rng.integers(0, 10, n_digits))) for _ in range(n)]
    points, powers = rng.integers(0, n_digits + 1, n), rng.integers(-330, 320, n)
    spelled = [
        d[:p] + "." + d[p:] + (f"e{e}" if e % 3 else "")
        for d, p, e in zip(digits, points, powers, strict=True)
    ]
    assert same(numbers(spelled), [float(s) for s in spelled])


def test_halves_between_two_floats_go_to_the_even_one():
    rng = np.random.default_rng(1)
    floats = rng.uniform(1, 2, N_CASES // 20) * 2.0 ** rng.integers(-30, 60, N_CASES // 20)
    middles = [(Fraction(x) + Fraction(np.nextafter(x, np.inf))) / 2 for x in floats.tolist()]
    spelled = [format(Decimal(m.numerator) / Decimal(m.denominator), "f") for m in middles]
    spelled += [str(2**53 + k) for k in range(1, 200)] + [str(2**54 + 2 * k) for k in range(200)]
    assert same(numbers(spelled), [float(s) for s in spelled])


@pytest.mark.parametrize(
    "value",
    [
        "0",
        "-0",
        "0.0e5",
        "-.0",
        "1e400",
        "-1e400",
        "1e-400",
        "4.9e-324",
        "2.4703282292062327e-324",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "2.2250738585072011e-308",
        "1e23",
        "8.5e22",
        "9007199254740993",
        "18446744073709551615",
        "9999999999999999999",
        "1e-300",
        "1e280",
        "00012.50",
        "1" + 400 * "0",
        "0." + 400 * "0" + "1",
        "1e" + 30 * "9",
        "+5",
        "5.",
        ".5",
        "5E+03",
    ],
)
def test_extreme_numbers(value):
    assert same(numbers([value]), [float(value)])


@pytest.mark.parametrize(("decimal", "thousands"), MARKS)
def test_spellings_of_any_kind_against_a_plain_reference(decimal, thousands):
    rng = np.random.default_rng(2)
    characters = [
        "0",
        "1",
        "9",
        "12",
        "+",
        "-",
        "e",
        "E",
        decimal,
        thousands or "5",
        " ",
        "x",
        "true",
        ".",
        ",",
    ]
    spelled = ["".join(rng.choice(characters, rng.integers(0, 8))) for _ in range(N_CASES // 4)]
    found = numbers(spelled, decimal=decimal, thousands=thousands)
    wanted = np.array([plain_number(s, decimal, thousands) for s in spelled])
    assert np.isfinite(wanted).sum() > len(spelled) // 20
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    assert same(found[~np.isnan(found)], wanted[~np.isnan(wanted)])


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "nan",
        "NaN",
        "inf",
        "-Infinity",
        "1_000",
        "0x10",
        "1e",
        "1e+",
        "e5",
        ".",
        "--1",
        "1 2",
        "１",
        "1.2.3",
        "1,5",
        "yes",
        "truee",
        "TRU",
        "1\n",
        "½",
    ],
)
def test_what_is_no_number_is_missing(value):
    assert np.isnan(numbers([value])).all()


def test_a_value_reads_the_same_beside_any_others():
    values = ["1", "2.50", " -3e2 ", None, "x", "TRUE", "12345678901234567890", "1e400"]
    whole = numbers(values)
    assert same([numbers([value])[0] for value in values], whole)
    sliced = pa.array(["?", *values, "?"], pa.string())[1:-1]
    assert same(parse_numbers(sliced, TextFormat()), whole)


def test_no_values():
    assert len(numbers([])) == len(parse_dates(pa.array([], pa.string()), TextFormat())) == 0


def test_iso_dates_are_those_of_python():
    rng = np.random.default_rng(3)
    seconds = rng.integers(-30_000_000_000, 253_402_300_800, N_CASES // 10)
    micros = rng.integers(0, 10**6, len(seconds))
    epoch = datetime.datetime(1970, 1, 1)
    times = [
        epoch + datetime.timedelta(seconds=int(s), microseconds=int(u))
        for s, u in zip(seconds, micros, strict=True)
    ]
    kinds = [
        lambda t: t.isoformat(),
        lambda t: str(t),
        lambda t: t.date().isoformat(),
        lambda t: t.isoformat(" ", "minutes"),
        lambda t: t.isoformat("T", "seconds"),
        lambda t: t.isoformat("T", "milliseconds"),
        lambda t: t.isoformat() + "+02:00",
        lambda t: "{}-W{:02}-{}".format(*t.isocalendar()),
        lambda t: t.isoformat()[:-4],
    ]
    spelled = [kinds[i % len(kinds)](t) for i, t in enumerate(times[5:-5])]
    wanted = [days(datetime.datetime.fromisoformat(s)) for s in spelled]
    assert same(parse_dates(pa.array(spelled), TextFormat()), wanted)


def test_dates_that_do_not_exist_are_missing():
    wrong = [
        "2023-02-29",
        "1900-02-29",
        "2023-00-01",
        "2023-13-01",
        "2023-01-00",
        "2023-04-31",
        "0000-01-01",
        "2023-1-1",
        "2023-01-01T24:30",
        "2023-01-01T12:60",
        "2023-01-01T12:00:60",
        "2023-01-01x12:0",
        "2023-01-01T1:00",
        "23-01-01",
        "2023-01-01T12:00:",
        "2023-01-01T12:00:00.",
        "2023-01-01T",
        "",
        "soon",
        "2023/01/01",
        "-023-01-01",
    ]
    assert np.isnan(parse_dates(pa.array([*wrong, None]), TextFormat())).all()
    assert same(parse_dates(pa.array(["2024-02-29", " 2000-02-29\t"]), TextFormat()), [19782.0, 11016.0])


def test_formats_of_dates_are_tried_in_order():
    text = TextFormat(dates=("%d.%m.%Y", "%m/%d/%Y %H:%M"))
    found = parse_dates(pa.array(["3.1.1970", "01/03/1970 12:00", "1970-01-03", None]), text)
    assert same(found[:2], [2.0, 2.5])
    assert np.isnan(found[2:]).all()


def test_booleans():
    assert parse_booleans(pa.array(["true", "FALSE", "True", "1", "", None])).to_pylist() == [
        True,
        False,
        True,
        None,
        None,
        None,
    ]


def test_objects_are_spelled_each_for_itself():
    values = [
        "a",
        7,
        np.int8(7),
        0.1,
        np.float32(0.1),
        True,
        np.bool_(False),
        Decimal("1.50"),
        Fraction(1, 4),
        None,
        [1],
        float("nan"),
        Decimal("NaN"),
        pd.NaT,
        pd.NA,
        "\ud800",
        1j,
        datetime.date(1970, 1, 3),
        pd.Timestamp("1970-01-03 12:00"),
        np.datetime64("1970-01-03"),
        np.datetime64("NaT"),
    ]
    spelled = spell(values).to_pylist()
    assert spelled == [
        "a",
        "7",
        "7",
        "0.1",
        repr(float(np.float32(0.1))),
        "True",
        "False",
        "1.5",
        "0.25",
        *8 * [None],
        "1970-01-03",
        "1970-01-03T12:00:00",
        "1970-01-03T00:00:00.000000",
        None,
    ]
    assert spelled == [spell([value])[0].as_py() for value in values]


def test_floats_are_spelled_to_read_back():
    floats = random_floats(np.random.default_rng(4), 1000)
    assert same(parse_numbers(spell(floats.tolist()), TextFormat()), floats)


def test_people_are_text_or_integers():
    values = [
        "ada",
        " 7",
        7,
        np.int64(7),
        10**30,
        7.0,
        Decimal(7),
        True,
        np.bool_(True),
        None,
        datetime.date(1970, 1, 1),
    ]
    assert spell_people(values).to_pylist() == ["ada", " 7", "7", "7", str(10**30), *6 * [None]]


def test_kernels_without_compilation(monkeypatch):
    names = [
        "_read_digits",
        "_read_number",
        "_multiply",
        "_n_leading_zeros",
        "_nearest",
        "_parse",
        "_rewrite",
        "_parse_iso",
        "_read_time",
        "_read_integer",
        "_day_number",
        "_trimmed",
        "_is_digit",
        "_read_boolean",
    ]
    for name in names:
        monkeypatch.setattr(parsing, name, getattr(parsing, name).py_func)
    spelled = ["0.2739233746429086", "-12.5e3", "x", "true", "123456789012345678901"]
    with np.errstate(over="ignore"):
        assert same(numbers(spelled)[[0, 1, 3, 4]], [float(spelled[0]), -12500.0, 1.0, float(spelled[4])])
    assert same(parse_dates(pa.array(["1970-01-03T12:00:00.5"]), TextFormat()), [2.5 + 0.5 / 86400])
