"""What an inspection of a table found, in words and figures. Exact, not private: for the holder's screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

Spell = Callable[[Mapping[str, Any]], str]  # how options are written

NOT_PRIVATE = (
    "These figures are exact, not private. They are for the holder of the table: do not publish them."
)


@dataclass(frozen=True)
class ColumnFindings:
    """How many values of a column are not as declared.

    Parameters
    ----------
    name : str
    kind : {"number", "date", "category", "ordered", "person"}
        What the column is declared to be.
    missing : int
        Values that are missing.
    unreadable : int
        Values that are not of this kind. They count as missing.
    outside : int
        Values outside the bounds, or not among the levels.
    """

    name: str
    kind: str
    missing: int = 0
    unreadable: int = 0
    outside: int = 0


@dataclass(frozen=True)
class Advice:
    """Something to decide.

    Parameters
    ----------
    says : str
        What is wrong. It quotes no value.
    settings : tuple
        Pairs of a name and a value: options that settle it, together or, if `either`, each of them.
    either : bool
    refuses : bool
        Whether a fit would be refused or in vain.
    """

    says: str
    settings: tuple[tuple[str, Any], ...] = ()
    either: bool = False
    refuses: bool = True

    def text(self, spell: Spell) -> str:
        """A sentence, with options as `spell` writes them."""
        ways = [{name: value} for name, value in self.settings] if self.either else [dict(self.settings)]
        options = " or ".join(spell(way) for way in ways if way)
        return f"{self.says}. Give {options}" if options else self.says


@dataclass(frozen=True)
class Findings:
    """What a fit would find in a table. Prints as a page. Exact, not private: for the holder alone.

    Parameters
    ----------
    rows : int
        Rows of the table.
    used : int
        Rows that a fit would use, before `max_rows_per_unit`.
    columns : tuple of ColumnFindings
    advice : tuple of Advice
    unit : str, optional
        Column that identifies a person.
    """

    rows: int
    used: int
    columns: tuple[ColumnFindings, ...]
    advice: tuple[Advice, ...]
    unit: str | None = None

    @property
    def fits(self) -> bool:
        """Whether nothing is left to decide."""
        return not any(advice.refuses for advice in self.advice)

    @property
    def settings(self) -> dict[str, Any]:
        """Options that settle everything: of several ways, the first."""
        found: dict[str, Any] = {}
        for one in (one for one in self.advice if one.refuses):
            found = {**found, **dict(one.settings[:1] if one.either else one.settings)}
        return found

    def text(self, spell: Spell) -> str:
        """The page, with options as `spell` writes them."""
        head = ("column", "read as", "missing", "unreadable", "outside")
        cells = [head] + [
            (c.name, c.kind, *(f"{n:,}" for n in (c.missing, c.unreadable, c.outside))) for c in self.columns
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        capped = ", less those beyond the maximum number of rows per person" if self.unit else ""
        rows = (
            f"{self.rows:,} {'row' if self.rows == 1 else 'rows'}, of which a fit uses {self.used:,}{capped}."
        )
        decide = [f"- {advice.text(spell)}" for advice in self.advice] or ["Everything is as declared."]
        together = [f"Together: {spell(self.settings)}"] if len(self.settings) > 1 else []
        return "\n".join([NOT_PRIVATE, "", *table, "", rows, *decide, *together])

    def to_dict(self, spell: Spell) -> dict[str, Any]:
        """For JSON."""
        columns = [asdict(column) for column in self.columns]
        advice = [{"says": one.text(spell), "refuses": one.refuses} for one in self.advice]
        counts = {"rows": self.rows, "used": self.used, "fits": self.fits}
        return {"note": NOT_PRIVATE, **counts, "columns": columns, "advice": advice}

    def __str__(self) -> str:
        return self.text(as_python)


def listed(names: list[str]) -> str:
    """Columns in a sentence."""
    return ("column " if len(names) == 1 else "columns ") + ", ".join(map(repr, names))


def as_python(settings: Mapping[str, Any]) -> str:
    """Options as in Python."""
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
    written = ", ".join(f"{name}={value!r}" for name, value in plain.items() if name != "missing")
    parts = [f"scan_csv(path, {written})"] if written else []
    return " and ".join(parts + ([f"missing={plain['missing']!r}"] if "missing" in plain else []))
