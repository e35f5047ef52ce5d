"""Checksums of the lines of a ledger. Each covers its line and the checksum before it.

They show accidents: a changed digit, a lost line, lines in another order. They are no signature. Whoever may
write the file can compute them again, and an old copy of the whole file has right ones, too.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator

LINES = ("dataset", "charge", "settlement", "closure")  # the tables that checksums cover


def add_checksum(connection: sqlite3.Connection, table: str, number: int) -> None:
    """Append the checksum of a line that was just written."""
    (row,) = connection.execute(f"SELECT * FROM {table} WHERE rowid = ?", (number,)).fetchall()
    line, (_, last) = f"{table} {number}", last_checksum(connection)
    values = (line, _chained(last, line, row))
    connection.execute("INSERT INTO checksum (line, sha256) VALUES (?, ?)", values)


def last_checksum(connection: sqlite3.Connection) -> tuple[int, str]:
    """Number of lines that have a checksum, and the last checksum."""
    query = "SELECT id, sha256 FROM checksum ORDER BY id DESC LIMIT 1"
    return next(iter(connection.execute(query).fetchall()), (0, ""))


def has_checksum(connection: sqlite3.Connection, sha256: str) -> bool:
    """Whether some line has this checksum."""
    return bool(connection.execute("SELECT 1 FROM checksum WHERE sha256 = ?", (sha256,)).fetchall())


def first_change(connection: sqlite3.Connection) -> str | None:
    """Say which line is not as it was written, or ``None`` if all are."""
    lines, last = dict(_lines(connection)), ""
    for line, checksum in connection.execute("SELECT line, sha256 FROM checksum ORDER BY id").fetchall():
        row = lines.pop(line, None)
        if row is None:
            return f"line {line!r} is missing"
        if checksum != _chained(last, line, row):
            return f"line {line!r} does not match its checksum, or a line before it is gone"
        last = checksum
    return f"line {next(iter(lines))!r} has no checksum" if lines else None


def _lines(connection: sqlite3.Connection) -> Iterator[tuple[str, tuple[object, ...]]]:
    for table in LINES:
        for number, *row in connection.execute(f"SELECT rowid, * FROM {table} ORDER BY rowid").fetchall():
            yield f"{table} {number}", tuple(row)


def _chained(last: str, line: str, row: tuple[object, ...]) -> str:
    # Values of a type that sfumato never writes, such as bytes, match no checksum.
    content = json.dumps([last, line, *row], default=repr)
    return hashlib.sha256(content.encode()).hexdigest()
