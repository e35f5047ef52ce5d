"""How a table is written as text. Declarations only: nothing here reads a file."""

from __future__ import annotations

import codecs
import datetime
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from sfumato.errors import ParameterError

# The usual spellings of "no value". A declared level is never missing, even if spelled like one of these.
MISSING_VALUES = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "NaT", "<NA>")
TABS = (".tsv", ".tab")  # endings of files that have tabs between their values
# Encodings in which characters of one line can change how the next ones are read.
_STATEFUL = ("utf-7", "hz", "iso2022", "unicode", "raw-unicode", "punycode", "idna")


@dataclass(frozen=True)
class TextFormat:
    """How the rows and values of a text file are written.

    Spaces and tabs around a value do not count. What does not parse as declared is missing.

    Parameters
    ----------
    delimiter : str
        One character between values; a tab in files that end in .tsv or .tab.
    decimal : str
        Decimal mark of numbers.
    thousands : str
        Mark between the thousands of numbers, or none.
    encoding : str
        Any encoding of Python that reads each line for itself, for example "latin-1".
    quote : str
        Character around values that contain the delimiter, a line break or, doubled, itself; or none.
    header : bool
        Whether the first line has the names of the columns.
    names : tuple of str
        Names to use instead. Without a header and names, the columns are column1, column2, ... and `bounds`
        must choose some of them: no row may tell how many there are.
    dates : tuple of str
        Formats of dates and times, as for `datetime.strptime`, tried in this order. None means ISO 8601.
    missing_values : tuple of str
        Spellings that mean a missing value. Levels that are declared are never missing.
    """

    delimiter: str = ","
    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"
    quote: str = '"'
    header: bool = True
    names: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    missing_values: tuple[str, ...] = MISSING_VALUES

    def __post_init__(self) -> None:
        for name, least in (("delimiter", 1), ("decimal", 1), ("thousands", 0), ("quote", 0)):
            mark = getattr(self, name)
            if not isinstance(mark, str) or not least <= len(mark) <= 1 or not mark.isascii():
                raise ParameterError(f"`{name}` must be one ASCII character, got {mark!r}")
            if mark in ("\n", "\r") or (mark and mark in "+-eE0123456789" and name != "quote"):
                raise ParameterError(f"`{name}` must not be part of a number or a line break, got {mark!r}")
        if self.delimiter == self.quote or self.decimal == self.thousands:
            raise ParameterError("`delimiter` and `quote`, `decimal` and `thousands` must differ")
        _check_encoding(self.encoding)
        if not self.header and codecs.lookup(self.encoding).name in ("utf-16", "utf-32"):
            # Without a mark, which is optional, the first row could look like one and turn all bytes around.
            raise ParameterError(
                f"`encoding` must say the order of bytes if there is no header, got {self.encoding!r}. Try "
                f"{self.encoding + '-le'!r}"
            )
        for name in ("names", "dates", "missing_values"):
            if not all(isinstance(text, str) for text in getattr(self, name)):
                raise ParameterError(f"`{name}` must be a list of strings, got {getattr(self, name)!r}")
        if len(set(self.names)) < len(self.names):
            raise ParameterError(f"`names` must be distinct, got {self.names!r}")
        for one in self.dates:
            _check_date_format(one)

    @property
    def tells_names(self) -> bool:
        """Whether the names of the columns are known, from a header or as given."""
        return self.header or bool(self.names)


def _check_encoding(encoding: object) -> None:
    try:
        is_known = isinstance(encoding, str) and bool("a\n".encode(encoding))
    except (LookupError, ValueError):
        is_known = False
    if not is_known or codecs.lookup(str(encoding)).name.startswith(_STATEFUL):
        raise ParameterError(
            f"`encoding` must be one that Python knows and that reads each line for itself, got {encoding!r}"
        )


def _check_date_format(one: str) -> None:
    try:
        datetime.datetime.strptime(datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC).strftime(one), one)
    except (ValueError, re.error):
        raise ParameterError(
            f"`dates` must be formats that `datetime.strptime` knows, for example '%d.%m.%Y', got {one!r}"
        ) from None


@dataclass(frozen=True)
class TextTable:
    """A table in text files and how it is written, see `scan_csv`.

    Parameters
    ----------
    path : path
    format : TextFormat
    """

    path: str | os.PathLike[str]
    format: TextFormat = field(default_factory=TextFormat)


def scan_csv(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    thousands: str = "",
    encoding: str = "utf-8",
    quote: str = '"',
    header: bool | None = None,
    names: Sequence[str] = (),
    dates: str | Sequence[str] = (),
    missing_values: Sequence[str] = MISSING_VALUES,
) -> TextTable:
    """Describe a table in text files, to pass to a fit. Nothing is read, and nothing is guessed.

    Every value is parsed for itself, by what `bounds` declare its column to be: a number, a date or time, or
    a category. No value can change how another one is read.

    Parameters
    ----------
    path : path
        A file, a folder, or a pattern such as ``trips/*.csv``. Files may be compressed (.gz, .bz2, .zst).
    delimiter : str, optional
        One character between values; by default a comma, or a tab in files that end in .tsv or .tab.
    decimal, thousands : str
        Decimal mark of numbers, and the mark between their thousands, if any.
    encoding : str
    quote : str
        Character around values that contain the delimiter or a line break; "" for none.
    header : bool, optional
        Whether the first line has the names of the columns; by default unless `names` are given.
    names : sequence of str
        Names of the columns.
    dates : str or sequence of str
        Formats of dates and times, as for `datetime.strptime`, tried in this order. None means ISO 8601.
    missing_values : sequence of str
        Spellings that mean a missing value.

    Examples
    --------
    >>> table = scan_csv("trips.csv", delimiter=";", decimal=",", dates="%d.%m.%Y")
    >>> table.format.decimal
    ','
    """
    for name, value in (("names", names), ("missing_values", missing_values)):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ParameterError(f"`{name}` must be a list of strings, got {value!r}")
    written = TextFormat(
        delimiter=default_delimiter(path) if delimiter is None else delimiter,
        decimal=decimal,
        thousands=thousands,
        encoding=encoding,
        quote=quote,
        header=not names if header is None else header,
        names=tuple(names),
        dates=(dates,) if isinstance(dates, str) else tuple(dates),
        missing_values=tuple(missing_values),
    )
    return TextTable(path, written)


def default_delimiter(path: str | os.PathLike[str]) -> str:
    """A tab for files that end in .tsv or .tab, otherwise a comma."""
    return "\t" if any(ending in os.fspath(path).lower() for ending in TABS) else ","
