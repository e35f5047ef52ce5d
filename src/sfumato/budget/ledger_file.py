"""The SQLite file behind a ledger: schema, append-only rules, transactions, readable errors."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sfumato.budget.ledger_checksums import LINES, add_checksum, first_change
from sfumato.errors import LedgerError

_APPLICATION_ID = 0x5366756D  # "Sfum"
_OLD_VERSION = 1  # without units, parts and checksums
SCHEMA_VERSION = 2
_AMOUNTS = """epsilon TEXT, delta TEXT, rho TEXT,
    CHECK ((epsilon IS NULL) <> (rho IS NULL) AND (delta IS NULL OR rho IS NULL))"""
_OLD_TABLES = {
    "dataset": f"id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, time TEXT NOT NULL, {_AMOUNTS}",
    "charge": f"""id INTEGER PRIMARY KEY, dataset INTEGER NOT NULL REFERENCES dataset (id),
        time TEXT NOT NULL, method TEXT NOT NULL, plan TEXT NOT NULL, seeded INTEGER NOT NULL, {_AMOUNTS}""",
    "settlement": """charge INTEGER PRIMARY KEY REFERENCES charge (id), time TEXT NOT NULL,
        outcome TEXT NOT NULL CHECK (outcome IN ('released', 'failed'))""",
    "closure": "dataset INTEGER PRIMARY KEY REFERENCES dataset (id), time TEXT NOT NULL",
}
_TABLES = _OLD_TABLES | {
    "dataset": f"""id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, time TEXT NOT NULL, unit TEXT,
        parts_by TEXT, parts TEXT, max_parts_per_unit INTEGER, {_AMOUNTS},
    CHECK ((parts IS NULL) = (parts_by IS NULL) AND (parts IS NULL) = (max_parts_per_unit IS NULL))""",
    "charge": f"""id INTEGER PRIMARY KEY, dataset INTEGER NOT NULL REFERENCES dataset (id),
        time TEXT NOT NULL, method TEXT NOT NULL, plan TEXT NOT NULL, seeded INTEGER NOT NULL,
        unit TEXT, part TEXT, {_AMOUNTS}""",
    "checksum": "id INTEGER PRIMARY KEY, line TEXT NOT NULL UNIQUE, sha256 TEXT NOT NULL",
}
_UNIQUE = {"dataset": "name", "checksum": "line"}
# REPLACE removes the old row without firing a DELETE trigger, so an INSERT on a taken key is forbidden too.
_FORBIDDEN = {
    "update": "BEFORE UPDATE ON {table}",
    "delete": "BEFORE DELETE ON {table}",
    "replace": "BEFORE INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {taken})",
}
_CAUSES = {
    sqlite3.SQLITE_BUSY: "is locked: another process held it for longer than timeout={timeout:g} seconds. "
    "Try again, or give a larger `timeout`.",
    sqlite3.SQLITE_NOTADB: "is not a SQLite database. Give the path of a ledger, or of a new file.",
    sqlite3.SQLITE_READONLY: "is read-only. Give this user write access to the file and its folder.",
    sqlite3.SQLITE_FULL: "could not be written, because the disk is full. Free some space.",
    sqlite3.SQLITE_CORRUPT: "is damaged ({error}). Restore a backup and charge what was released since.",
}
_DAMAGED = (
    "The ledger {path} is damaged or was edited: its tables are not as sfumato wrote them. Restore a backup "
    "and charge what was released since."
)
_CHANGED = (
    "The ledger {path} was changed after it was written: {change}. Restore a backup and charge what was "
    "released since."
)


@contextmanager
def transaction(
    path: Path, timeout: float, begin: str = "DEFERRED", *, create: bool = False
) -> Iterator[sqlite3.Connection]:
    """Open the ledger for one transaction. Leaving early rolls back; errors name the path and the fix.

    Every line is checked against its checksum. A file of an older version is brought up to date by the first
    transaction that writes (``begin="IMMEDIATE"``). Before that, readers see an updated copy in memory.
    """
    uri = f"{path.as_uri()}?mode={'rwc' if create else 'rw'}"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)) as connection:
            _harden(connection)
            connection.execute(f"BEGIN {begin}")
            version = _checked_version(connection, path, create)
            with _up_to_date(connection, version, writes=begin == "IMMEDIATE") as current:
                yield current
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise LedgerError(_explained(error, path, timeout)) from error
    except UnicodeDecodeError:  # SQLite quotes a part of the file that is not text
        raise LedgerError(_DAMAGED.format(path=path)) from None


def _harden(connection: sqlite3.Connection) -> None:
    # EXTRA is FULL plus a sync of the folder once the journal is gone. Without it a power cut right after a
    # commit can bring the journal back, and with it the state before the charge.
    for setting in ("journal_mode = DELETE", "synchronous = EXTRA", "fullfsync = ON", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}").fetchall()


def _checked_version(connection: sqlite3.Connection, path: Path, create: bool) -> int:
    """Version of the file, which is a whole ledger, or becomes a new one."""
    ((application,),) = connection.execute("PRAGMA application_id").fetchall()
    ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    ((n_objects,),) = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    if create and application == version == n_objects == 0:
        _create_tables(connection)
        return SCHEMA_VERSION
    if application != _APPLICATION_ID:
        raise LedgerError(
            f"The database {path} is not a sfumato ledger. Give the path of one, or of a new file."
        )
    if version not in (_OLD_VERSION, SCHEMA_VERSION):
        raise LedgerError(
            f"The ledger {path} has schema version {version}, and this sfumato reads {SCHEMA_VERSION}. "
            "Upgrade sfumato to the version that wrote the ledger."
        )
    if not _is_whole(connection, version):
        raise LedgerError(_DAMAGED.format(path=path))
    if version == SCHEMA_VERSION and (change := first_change(connection)):
        raise LedgerError(_CHANGED.format(path=path, change=change))
    return int(version)


@contextmanager
def _up_to_date(
    connection: sqlite3.Connection, version: int, *, writes: bool
) -> Iterator[sqlite3.Connection]:
    """The ledger in the newest version: the file itself, or a copy in memory for who only reads."""
    if version == SCHEMA_VERSION:
        yield connection
        return
    lines = _old_lines(connection)
    if writes:
        # Foreign keys point backwards, so tables go in the opposite order. DROP fires no trigger.
        for table in reversed(LINES):
            connection.execute(f"DROP TABLE {table}")
        _fill(connection, lines)
        yield connection
        return
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        _fill(copy, lines)
        copy.execute(f"PRAGMA user_version = {version}")  # tells that the file has no checksums yet
        yield copy


def _old_lines(connection: sqlite3.Connection) -> list[tuple[str, dict[str, str | int]]]:
    """All lines of a file of the old version, by table and then by number."""
    lines = []
    for table in LINES:
        cursor = connection.execute(f"SELECT * FROM {table} ORDER BY rowid")
        names = [column[0] for column in cursor.description]
        lines += [(table, dict(zip(names, row, strict=True))) for row in cursor.fetchall()]
    return lines


def _fill(connection: sqlite3.Connection, lines: list[tuple[str, dict[str, str | int]]]) -> None:
    """Make the tables of the newest version, and write all lines with their numbers and checksums."""
    _create_tables(connection)
    for table, row in lines:
        insert(connection, table, **row)


def _create_tables(connection: sqlite3.Connection) -> None:
    for statement in _schema(SCHEMA_VERSION):
        connection.execute(statement)


def _is_whole(connection: sqlite3.Connection, version: int) -> bool:
    """Whether the tables and rules match the schema, and no row is lost or of the wrong type."""
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    written = {_lax(sql) for sql in _schema(version) if sql.startswith("CREATE")}
    if {_lax(str(sql)) for (sql,) in found} != written:
        return False
    told = connection.execute("PRAGMA integrity_check(1)").fetchall()
    return told == [("ok",)] and not connection.execute("PRAGMA foreign_key_check").fetchall()


def _lax(sql: str) -> str:
    """The statement in the form that older versions of SQLite accept."""
    return sql.removesuffix(" STRICT")


def _schema(version: int) -> Iterator[str]:
    strict = " STRICT" if sqlite3.sqlite_version_info >= (3, 37) else ""
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    for table, columns in (_OLD_TABLES if version == _OLD_VERSION else _TABLES).items():
        yield f"CREATE TABLE {table} ({columns}){strict}"
        name = _UNIQUE.get(table)
        taken = "rowid = NEW.rowid" + (f" OR {name} = NEW.{name}" if name else "")
        for event, when in _FORBIDDEN.items():
            yield f"CREATE TRIGGER {table}_{event} {when.format(table=table, taken=taken)} {refuse}"
    closed = "EXISTS (SELECT 1 FROM closure WHERE dataset = NEW.dataset)"
    yield f"CREATE TRIGGER charge_closed BEFORE INSERT ON charge WHEN {closed} {refuse}"
    yield "CREATE INDEX charge_dataset ON charge (dataset)"
    yield f"PRAGMA application_id = {_APPLICATION_ID}"
    yield f"PRAGMA user_version = {version}"


def _explained(error: sqlite3.Error, path: Path, timeout: float) -> str:
    # Errors of the Python module itself carry no code; the low byte of an extended code is the primary one.
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if primary == sqlite3.SQLITE_CANTOPEN:
        return _unopened(path)
    cause = _CAUSES.get(primary, "could not be used: {error}. Check the file and its disk.")
    return f"The ledger {path} {cause.format(timeout=timeout, error=error)}"


def _unopened(path: Path) -> str:
    try:
        if path.is_dir():
            return f"`path` must be a file, got the folder {path}. Add a file name, such as ledger.db."
        if not path.parent.is_dir():
            return f"There is no folder {path.parent} for the ledger {path.name}. Create the folder first."
        if not path.exists():
            return f"There is no ledger at {path}. Create one with Ledger.create(path, dataset, total)."
    except OSError:
        pass
    return f"The ledger {path} cannot be opened. Let this user read and write the file and its folder."


def insert(connection: sqlite3.Connection, table: str, **row: str | int) -> int:
    """Append a row and its checksum, and return its number."""
    marks = ", ".join("?" * len(row))
    cursor = connection.execute(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
    )
    number = int(cursor.lastrowid or 0)
    add_checksum(connection, table, number)
    return number
