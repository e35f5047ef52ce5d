"""Values written as text become numbers and dates, each by its own characters and public declarations."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.domain import FloatArray, IntArray
from sfumato.domain.columns import days
from sfumato.domain.text import TextFormat

Bytes = NDArray[np.uint8]

# What a value turned out to be.
_NONE, _EXACT, _LONG = 0, 1, 2
_MOST_EXACT = 2**53  # integers up to this are floats
# Powers of ten that are floats: one operation with them and an exact integer rounds correctly.
_TENS: FloatArray = np.array([10.0**power for power in range(23)])
_FAR = 300  # decimal exponents from which on Arrow may refuse a number
_NUMBERS = (int, float, Decimal, Fraction, np.integer, np.floating)
_NAN_KINDS = (float, Decimal, np.floating, datetime.date, np.datetime64)  # with values that mean "missing"


def parse_numbers(values: pa.Array, text: TextFormat) -> FloatArray:
    """Numbers from text, correctly rounded, with NaN for whatever else a value is.

    ``true`` and ``false``, however capitalised, are 1 and 0.

    Examples
    --------
    >>> german = TextFormat(delimiter=";", decimal=",", thousands=".")
    >>> parse_numbers(pa.array(["1.234,5", " -3e2 ", "12 Mio", None, "True"]), german).tolist()
    [1234.5, -300.0, nan, nan, 1.0]
    """
    values = values.cast(pa.large_string())
    offsets, data = _buffers(values)
    out = np.full(len(values), np.nan)
    kinds = np.empty(len(values), dtype=np.int8)
    known = values.is_valid().to_numpy(zero_copy_only=False)
    marks = ord(text.decimal), ord(text.thousands) if text.thousands else -1
    _parse(offsets, data, known, *marks, _TENS, out, kinds)
    if len(long := np.flatnonzero(kinds == _LONG)):
        out[long] = _parse_long(offsets, data, long, *marks)
    return out


def _buffers(values: pa.Array) -> tuple[IntArray, Bytes]:
    """Offsets and characters of an Arrow array of large strings."""
    if not len(values):
        return np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    _, places, characters = values.buffers()
    offsets = np.frombuffer(places, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    return offsets, np.frombuffer(characters or b"", dtype=np.uint8)


def _parse_long(offsets: IntArray, data: Bytes, long: IntArray, decimal: int, thousands: int) -> FloatArray:
    """Numbers with many digits or large exponents, known to be well formed. Arrow rounds correctly."""
    places = np.zeros(len(long) + 1, dtype=np.int64)
    sizes = offsets[long + 1] - offsets[long]
    plain = np.empty(int(sizes.sum()), dtype=np.uint8)
    is_far = np.empty(len(long), dtype=np.bool_)
    _rewrite(offsets, data, long, decimal, thousands, plain, places, is_far)
    texts = pa.LargeStringArray.from_buffers(len(long), pa.py_buffer(places), pa.py_buffer(plain))
    out = np.empty(len(long))
    out[~is_far] = texts.filter(pa.array(~is_far)).cast(pa.float64()).to_numpy(zero_copy_only=False)
    out[is_far] = [float(one) for one in texts.filter(pa.array(is_far)).to_pylist()]
    return out


def parse_dates(values: pa.Array, text: TextFormat) -> FloatArray:
    """Days since the start of 1970 from text, with NaN for what is no date.

    Examples
    --------
    >>> parse_dates(pa.array(["1970-01-03", "1970-01-03T12:00", "soon"]), TextFormat())
    array([2. , 2.5, nan])
    >>> parse_dates(pa.array(["3.1.1970", "1970-01-03"]), TextFormat(dates=("%d.%m.%Y",)))
    array([ 2., nan])
    """
    distinct = values.dictionary_encode()
    parse = _dates_reader(text.dates)
    known = np.array([parse(value) for value in distinct.dictionary.to_pylist()] + [np.nan])
    out: FloatArray = known[distinct.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)]
    return out


def _dates_reader(formats: tuple[str, ...]) -> Callable[[str | None], float]:
    def parse(value: str | None) -> float:
        value = (value or "").strip(" \t")
        with suppress(ValueError, OverflowError):
            if not formats:
                return days(datetime.datetime.fromisoformat(value))
        for one in formats:
            with suppress(ValueError, OverflowError):
                return days(datetime.datetime.strptime(value, one))
        return float("nan")

    return parse


def parse_booleans(values: pa.Array) -> pa.Array:
    """Booleans from text: ``true`` and ``false``, however capitalised. Null for whatever else a value is."""
    lower = pc.ascii_lower(values)
    known = pc.is_in(lower, pa.array(["true", "false"], lower.type))
    return pc.if_else(known, pc.equal(lower, "true"), pa.scalar(None, pa.bool_()))


def spell(values: Iterable[object]) -> pa.Array:
    """Objects as text, each for itself. Null for NaN, and for what is no text, number, date or boolean.

    A float is spelled so that it parses to the same float.

    Examples
    --------
    >>> spell(["a", 7, 0.1, True, None, [1], datetime.date(1970, 1, 3)]).to_pylist()
    ['a', '7', '0.1', 'True', None, None, '1970-01-03']
    """
    return pa.array([_spelled(value) for value in values], pa.large_string())


def spell_people(values: Iterable[object]) -> pa.Array:
    """Names of people as text, each for itself. Null for those that are neither text nor an integer.

    Examples
    --------
    >>> spell_people(["ada", 7, 7.0, Decimal(7), None]).to_pylist()
    ['ada', '7', None, None, None]
    """
    kinds, no_kinds = (str, int, np.integer), (bool, np.bool_)
    named = (v if isinstance(v, kinds) and not isinstance(v, no_kinds) else None for v in values)
    return spell(named)


def _spelled(value: object) -> str | None:
    with suppress(ValueError, OverflowError, ArithmeticError, TypeError):
        if isinstance(value, str):
            value.encode()  # not all strings can be written
            return str(value)
        if isinstance(value, _NAN_KINDS) and value != value:
            return None
        if isinstance(value, bool | np.bool_ | int | np.integer):
            return str(value)
        if isinstance(value, _NUMBERS):
            return repr(float(value))
        if isinstance(value, datetime.date):  # datetimes are dates
            return value.isoformat()
        if isinstance(value, np.datetime64):
            return str(value.astype("datetime64[us]"))
    return None


@numba.njit(cache=True, nogil=True)
def _trimmed(data: Bytes, start: int, stop: int) -> tuple[int, int]:
    while start < stop and (data[start] == 32 or data[start] == 9):
        start += 1
    while stop > start and (data[stop - 1] == 32 or data[stop - 1] == 9):
        stop -= 1
    return start, stop


@numba.njit(cache=True, nogil=True)
def _is_digit(byte: int) -> bool:
    return 48 <= byte <= 57


@numba.njit(cache=True, nogil=True)
def _read_number(
    data: Bytes, start: int, stop: int, decimal: int, thousands: int
) -> tuple[bool, bool, int, int, int]:
    """Whether characters are a number, its sign, its digits as an integer, their number, its exponent.

    The number of digits leaves out leading zeros. Beyond 18 digits the integer is not meant to be used.
    """
    place, negative = start, False
    if place < stop and (data[place] == 43 or data[place] == 45):
        negative = data[place] == 45
        place += 1
    mantissa, n_digits, n_seen, exponent, in_fraction = 0, 0, 0, 0, False
    while place < stop:
        byte = data[place]
        if _is_digit(byte):
            n_seen += 1
            exponent -= in_fraction
            if n_digits or byte != 48:
                n_digits += 1
                if n_digits <= 18:
                    mantissa = 10 * mantissa + (byte - 48)
        elif byte == decimal and not in_fraction:
            in_fraction = True
        elif not (
            byte == thousands
            and not in_fraction
            and n_seen
            and place + 1 < stop
            and _is_digit(data[place + 1])
        ):
            break
        place += 1
    if place < stop and n_seen and (data[place] == 101 or data[place] == 69):
        place += 1
        lower = place < stop and data[place] == 45
        if place < stop and (data[place] == 43 or data[place] == 45):
            place += 1
        power, n_power = 0, 0
        while place < stop and _is_digit(data[place]):
            power, n_power = min(10 * power + (data[place] - 48), 100_000), n_power + 1
            place += 1
        if not n_power:
            return False, negative, 0, 0, 0
        exponent += -power if lower else power
    return place == stop and n_seen > 0, negative, mantissa, n_digits, exponent


@numba.njit(cache=True, nogil=True)
def _read_boolean(data: Bytes, start: int, stop: int) -> float:
    """1 for true, 0 for false, however capitalised; otherwise NaN."""
    true, false = (116, 114, 117, 101), (102, 97, 108, 115, 101)
    if stop - start == 4:
        for i in range(4):
            if data[start + i] | 32 != true[i]:
                return np.nan
        return 1.0
    if stop - start == 5:
        for i in range(5):
            if data[start + i] | 32 != false[i]:
                return np.nan
        return 0.0
    return np.nan


@numba.njit(cache=True, nogil=True)
def _parse(
    offsets: IntArray,
    data: Bytes,
    known: NDArray[np.bool_],
    decimal: int,
    thousands: int,
    tens: FloatArray,
    out: FloatArray,
    kinds: NDArray[np.int8],
) -> None:
    """Numbers that one operation on exact floats gives. Others are marked for later."""
    for i in range(out.shape[0]):
        kinds[i] = _NONE
        if not known[i]:
            continue
        start, stop = _trimmed(data, offsets[i], offsets[i + 1])
        ok, negative, mantissa, n_digits, exponent = _read_number(data, start, stop, decimal, thousands)
        if not ok:
            out[i] = _read_boolean(data, start, stop)
            continue
        if n_digits == 0:
            mantissa = exponent = 0
        if n_digits > 18 or mantissa > _MOST_EXACT or abs(exponent) > 22:
            kinds[i] = _LONG
            continue
        kinds[i] = _EXACT
        value = float(mantissa)
        value = value / tens[-exponent] if exponent < 0 else value * tens[exponent]
        out[i] = -value if negative else value


@numba.njit(cache=True, nogil=True)
def _rewrite(
    offsets: IntArray,
    data: Bytes,
    long: IntArray,
    decimal: int,
    thousands: int,
    plain: Bytes,
    places: IntArray,
    is_far: NDArray[np.bool_],
) -> None:
    """Write numbers without marks of thousands, plus signs and spaces, and with a point."""
    end = 0
    for k in range(long.shape[0]):
        start, stop = _trimmed(data, offsets[long[k]], offsets[long[k] + 1])
        _, _, _, n_digits, exponent = _read_number(data, start, stop, decimal, thousands)
        is_far[k] = abs(exponent) + n_digits > _FAR
        for place in range(start, stop):
            byte = data[place]
            if byte == decimal:
                byte = np.uint8(46)
            elif byte == thousands or byte == 43:
                continue
            plain[end] = byte
            end += 1
        places[k + 1] = end
