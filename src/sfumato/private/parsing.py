"""Values written as text become numbers and dates, each by its own characters and public declarations."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.domain import FloatArray, IntArray
from sfumato.domain.columns import TICKS_PER_DAY, days
from sfumato.domain.text import TextFormat

Bytes = NDArray[np.uint8]

_MOST_DIGITS = 19  # that an integer of 64 bits holds
_LEAST_POWER, _MOST_POWER = -300, 280  # of ten: with so many digits, numbers are neither tiny nor infinite
_FAR = 300  # decimal exponents from which on Arrow may refuse a number
_US_PER_SECOND, _US_PER_DAY = 10**6, TICKS_PER_DAY["us"]
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
    is_long = np.zeros(len(values), dtype=np.bool_)
    marks = ord(text.decimal), ord(text.thousands) if text.thousands else -1
    _parse(offsets, data, _known(values), *marks, _FIVES, out, out.view(np.uint64), is_long)
    if is_long.any():
        long = np.flatnonzero(is_long)
        out[long] = _parse_long(offsets, data, long, *marks)
    return out


def _powers_of_five() -> NDArray[np.uint64]:
    """The first 128 bits of 5^q, in two words, for all powers of ten: rounded up below 5^0, else cut off."""
    words = []
    for power in range(_LEAST_POWER, _MOST_POWER + 1):
        five = 5 ** abs(power)
        if power < 0:
            n_bits = (five - 1).bit_length()
            five = 2 ** (n_bits + 127) // five + 1 if power >= -27 else 2 ** (2 * n_bits + 128) // five + 1
        shift = five.bit_length() - 128
        five = five >> shift if shift > 0 else five << -shift
        words.append((five >> 64, five & (2**64 - 1)))
    return np.array(words, dtype=np.uint64)


_FIVES = _powers_of_five()


def _known(values: pa.Array) -> NDArray[np.bool_]:
    if not values.null_count:
        return np.ones(len(values), dtype=np.bool_)
    known: NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
    return known


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
    values = values.cast(pa.large_string())
    out = np.full(len(values), np.nan)
    if not text.dates:
        _parse_iso(*_buffers(values), _known(values), out)
    left = np.flatnonzero(np.isnan(out))
    if len(left):
        distinct = values.take(pa.array(left)).dictionary_encode()
        parse = _dates_reader(text.dates)
        found = np.array([parse(value) for value in distinct.dictionary.to_pylist()] + [np.nan])
        out[left] = found[distinct.indices.fill_null(len(found) - 1).to_numpy(zero_copy_only=False)]
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
def _read_digits(
    data: Bytes, place: int, stop: int, mantissa: np.uint64, n_digits: int
) -> tuple[int, np.uint64, int]:
    """Append digits to an integer. Returns the place after them, the integer and the number of its digits.

    Leading zeros are not counted. Beyond 19 digits the integer has wrapped around.
    """
    if not n_digits:
        while place < stop and data[place] == 48:
            place += 1
    here, end = np.uint64(place), np.uint64(stop)  # indices without a sign are twice as fast
    while here < end:
        digit = np.uint64(data[here]) - np.uint64(48)
        if digit > np.uint64(9):
            break
        mantissa = np.uint64(10) * mantissa + digit
        here += np.uint64(1)
    after: Any = np.int64(here)
    return after, mantissa, n_digits + after - place


@numba.njit(cache=True, nogil=True)
def _read_number(
    data: Bytes, start: int, stop: int, decimal: int, thousands: int
) -> tuple[bool, bool, np.uint64, int, int]:
    """Whether characters are a number, its sign, its digits as an integer, their number, its exponent."""
    negative = start < stop and data[start] == 45
    first = start + (start < stop and (data[start] == 43 or data[start] == 45))
    place, mantissa, n_digits = _read_digits(data, first, stop, np.uint64(0), 0)
    while place + 1 < stop and place > first and data[place] == thousands and _is_digit(data[place + 1]):
        place, mantissa, n_digits = _read_digits(data, place + 1, stop, mantissa, n_digits)
    has_digits, exponent = place > first, 0
    if place < stop and data[place] == decimal:
        point = place + 1
        place, mantissa, n_digits = _read_digits(data, point, stop, mantissa, n_digits)
        has_digits, exponent = has_digits or place > point, point - place
    if place < stop and (data[place] == 101 or data[place] == 69):
        lower = place + 1 < stop and data[place + 1] == 45
        first_power = place + 1 + (place + 1 < stop and (data[place + 1] == 43 or data[place + 1] == 45))
        power: Any = 0
        place = first_power
        while place < stop and _is_digit(data[place]):
            power = min(10 * power + np.int64(data[place] - 48), 100_000)
            place += 1
        has_digits = has_digits and place > first_power
        exponent += -power if lower else power
    return place == stop and has_digits, negative, mantissa, n_digits, exponent


@numba.njit(cache=True, nogil=True)
def _multiply(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Higher and lower 64 bits of a product."""
    half, ones = np.uint64(32), np.uint64(2**32 - 1)
    first, last = (a >> half) * (b & ones), (a & ones) * (b & ones)
    middle = (first & ones) + (a & ones) * (b >> half) + (last >> half)
    return (a >> half) * (b >> half) + (first >> half) + (middle >> half), a * b


@numba.njit(cache=True, nogil=True)
def _n_leading_zeros(word: np.uint64) -> int:
    n_zeros = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(64 - shift) == np.uint64(0):
            word, n_zeros = word << np.uint64(shift), n_zeros + shift
    return n_zeros


@numba.njit(cache=True, nogil=True)
def _nearest(mantissa: np.uint64, exponent: int, fives: NDArray[np.uint64]) -> np.uint64:
    """Bits of the float nearest to mantissa * 10^exponent, or 0 if 128 bits of the power do not tell.

    Lemire 2021, Number Parsing at a Gigabyte per Second, algorithm 1.
    """
    one, all_ones = np.uint64(1), np.uint64(2**64 - 1)
    n_zeros = _n_leading_zeros(mantissa)
    mantissa = mantissa << np.uint64(n_zeros)
    high, low = _multiply(mantissa, fives[exponent - _LEAST_POWER, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):  # the other word may carry into what is kept
        more, _ = _multiply(mantissa, fives[exponent - _LEAST_POWER, 1])
        low += more
        if low < more:
            high += one
    if low == all_ones and not -27 <= exponent <= 55:
        return np.uint64(0)
    upper = high >> np.uint64(63)
    shift = upper + np.uint64(9)
    digits = high >> shift
    power = ((217706 * exponent) >> 16) + 63 + np.int64(upper) - n_zeros + 1023
    if low <= one and -4 <= exponent <= 23 and digits & np.uint64(3) == one and digits << shift == high:
        digits -= one  # half way between two floats: the even one
    digits = (digits + (digits & one)) >> one
    if digits >> np.uint64(53):
        digits, power = digits >> one, power + 1
    return (np.uint64(power) << np.uint64(52)) | (digits & np.uint64(2**52 - 1))


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
    fives: NDArray[np.uint64],
    out: FloatArray,
    bits: NDArray[np.uint64],
    is_long: NDArray[np.bool_],
) -> None:
    """Numbers from text, as floats or by their bits. Those that take more than 128 bits are marked."""
    for i in range(out.shape[0]):
        if not known[i]:
            continue
        start, stop = _trimmed(data, offsets[i], offsets[i + 1])
        ok, negative, mantissa, n_digits, exponent = _read_number(data, start, stop, decimal, thousands)
        if not ok:
            out[i] = _read_boolean(data, start, stop)
            continue
        word = np.uint64(0)
        if n_digits:
            if n_digits <= _MOST_DIGITS and _LEAST_POWER <= exponent <= _MOST_POWER:
                word = _nearest(mantissa, exponent, fives)
            is_long[i] = word == np.uint64(0)
        bits[i] = word | (np.uint64(negative) << np.uint64(63))


@numba.njit(cache=True, nogil=True)
def _read_integer(data: Bytes, start: int, n_digits: int) -> int:
    """Integer of a fixed number of digits, or something negative."""
    number: Any = 0
    for place in range(start, start + n_digits):
        if not _is_digit(data[place]):
            return -(10**9)
        number = 10 * number + np.int64(data[place] - 48)
    found: int = number
    return found


@numba.njit(cache=True, nogil=True)
def _day_number(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar."""
    year -= month <= 2
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1  # years start in March
    return 365 * year + year // 4 - year // 100 + year // 400 + day_of_year - 719_468


@numba.njit(cache=True, nogil=True)
def _read_time(data: Bytes, start: int, stop: int) -> int:
    """Microseconds of HH:MM, HH:MM:SS or HH:MM:SS.ffffff, with one to six decimals; otherwise -1."""
    size = stop - start
    if not (size == 5 or size == 8 or 10 <= size <= 15) or data[start + 2] != 58:
        return -1
    hour, minute, second, fraction = _read_integer(data, start, 2), _read_integer(data, start + 3, 2), 0, 0
    if size > 5:
        second = _read_integer(data, start + 6, 2) if data[start + 5] == 58 else -1
    if size > 8:
        fraction = _read_integer(data, start + 9, size - 9) if data[start + 8] == 46 else -1
        fraction *= 10 ** (15 - size)
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and fraction >= 0):
        return -1
    return (3600 * hour + 60 * minute + second) * _US_PER_SECOND + fraction


@numba.njit(cache=True, nogil=True)
def _parse_iso(offsets: IntArray, data: Bytes, known: NDArray[np.bool_], out: FloatArray) -> None:
    """Days since the start of 1970 of YYYY-MM-DD, alone or with a time after a space or T."""
    for i in range(out.shape[0]):
        start, stop = _trimmed(data, offsets[i], offsets[i + 1])
        if not known[i] or stop - start < 10 or data[start + 4] != 45 or data[start + 7] != 45:
            continue
        year, month = _read_integer(data, start, 4), _read_integer(data, start + 5, 2)
        day = _read_integer(data, start + 8, 2)
        if year < 1 or not 1 <= month <= 12 or day < 1:
            continue
        number = _day_number(year, month, day)
        if number >= _day_number(year + month // 12, month % 12 + 1, 1):
            continue
        time = 0
        if stop - start > 10:
            is_time = data[start + 10] == 32 or data[start + 10] == 84
            time = _read_time(data, start + 11, stop) if is_time else -1
        if time >= 0:
            out[i] = float(number * _US_PER_DAY + time) / _US_PER_DAY


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
