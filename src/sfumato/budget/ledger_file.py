"""The SQLite file behind a ledger: schema, append-only rules, transactions, readable errors."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sfumato.errors import LedgerError

_APPLICATION_ID = 0x5366756D  # "Sfum"
_SCHEMA_VERSION = 1
_AMOUNTS = """epsilon TEXT, delta TEXT, rho TEXT,
    CHECK ((epsilon IS NULL) <> (rho IS NULL) AND (delta IS NULL OR rho IS NULL))"""
_TABLES = {
    "dataset": f"id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, time TEXT NOT NULL, {_AMOUNTS}",
    "charge": f"""id INTEGER PRIMARY KEY, dataset INTEGER NOT NULL REFERENCES dataset (id),
        time TEXT NOT NULL, method TEXT NOT NULL, plan TEXT NOT NULL, seeded INTEGER NOT NULL, {_AMOUNTS}""",
    "settlement": """charge INTEGER PRIMARY KEY REFERENCES charge (id), time TEXT NOT NULL,
        outcome TEXT NOT NULL CHECK (outcome IN ('released', 'failed'))""",
    "closure": "dataset INTEGER PRIMARY KEY REFERENCES dataset (id), time TEXT NOT NULL",
}
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


@contextmanager
def transaction(
    path: Path, timeout: float, begin: str = "DEFERRED", *, create: bool = False
) -> Iterator[sqlite3.Connection]:
    """Open the ledger for one transaction. Leaving early rolls back; errors name the path and the fix."""
    uri = f"{path.as_uri()}?mode={'rwc' if create else 'rw'}"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)) as connection:
            _harden(connection)
            connection.execute(f"BEGIN {begin}")
            _check_schema(connection, path, create)
            yield connection
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


def _check_schema(connection: sqlite3.Connection, path: Path, create: bool) -> None:
    ((application,),) = connection.execute("PRAGMA application_id").fetchall()
    ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    ((n_objects,),) = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    if create and application == version == n_objects == 0:
        for statement in _schema():
            connection.execute(statement)
    elif application != _APPLICATION_ID:
        raise LedgerError(
            f"The database {path} is not a sfumato ledger. Give the path of one, or of a new file."
        )
    elif version != _SCHEMA_VERSION:
        raise LedgerError(
            f"The ledger {path} has schema version {version}, and this sfumato reads {_SCHEMA_VERSION}. "
            "Upgrade sfumato to the version that wrote the ledger."
        )
    elif not _is_whole(connection):
        raise LedgerError(_DAMAGED.format(path=path))


def _is_whole(connection: sqlite3.Connection) -> bool:
    """Whether the tables and rules match the schema, and no row is lost or of the wrong type."""
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    written = {_lax(sql) for sql in _schema() if sql.startswith("CREATE")}
    if {_lax(str(sql)) for (sql,) in found} != written:
        return False
    told = connection.execute("PRAGMA integrity_check(1)").fetchall()
    return told == [("ok",)] and not connection.execute("PRAGMA foreign_key_check").fetchall()


def _lax(sql: str) -> str:
    """The statement in the form that older versions of SQLite accept."""
    return sql.removesuffix(" STRICT")


def _schema() -> Iterator[str]:
    strict = " STRICT" if sqlite3.sqlite_version_info >= (3, 37) else ""
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    for table, columns in _TABLES.items():
        yield f"CREATE TABLE {table} ({columns}){strict}"
        taken = "rowid = NEW.rowid" + (" OR name = NEW.name" if table == "dataset" else "")
        for event, when in _FORBIDDEN.items():
            yield f"CREATE TRIGGER {table}_{event} {when.format(table=table, taken=taken)} {refuse}"
    closed = "EXISTS (SELECT 1 FROM closure WHERE dataset = NEW.dataset)"
    yield f"CREATE TRIGGER charge_closed BEFORE INSERT ON charge WHEN {closed} {refuse}"
    yield "CREATE INDEX charge_dataset ON charge (dataset)"
    yield f"PRAGMA application_id = {_APPLICATION_ID}"
    yield f"PRAGMA user_version = {_SCHEMA_VERSION}"


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
    """Append a row and return its number."""
    marks = ", ".join("?" * len(row))
    cursor = connection.execute(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
    )
    return int(cursor.lastrowid or 0)
