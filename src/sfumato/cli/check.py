"""``sfumato check``: what in a table is not as declared, for its holder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from sfumato.cli import options
from sfumato.cli.bounds_option import parse_bounds, parse_describe, parse_missing
from sfumato.cli.failures import CODES, say
from sfumato.cli.text_options import as_options, described, takes_text_options
from sfumato.errors import DataError, ParameterError

if TYPE_CHECKING:
    from sfumato.curator.findings import Findings
    from sfumato.domain.text import TextTable


@takes_text_options
def check(
    data: options.Data,
    bounds: options.Bounds = None,
    columns: options.Columns = None,
    describe: options.Describe = None,
    unit: options.Unit = None,
    missing: options.Missing = None,
    outside: options.OutsideRule = None,
    as_json: options.Json = False,
    config: options.Config = None,
    *,
    written: dict[str, Any],
) -> None:
    """Count what in a table is not as declared, before you pay for a fit. The figures are not private."""
    if bounds is None:
        raise ParameterError(
            "`--bounds` must be given, a file that says which columns to read, and how. A line for each: "
            "age = [0, 120] for numbers, ward = { levels = ['icu', 'er'] } for categories"
        )
    declared = parse_bounds(bounds, options.split(columns))
    table = described(data, written, declared.written)
    beside = parse_describe(describe, declared, None)
    absent = parse_missing(missing, declared)
    found = inspect(table, declared.bounds, unit, absent, outside or "clip", beside)
    print(json.dumps(found.to_dict(as_options)) if as_json else found.text(as_options))
    if not found.fits:
        raise typer.Exit(CODES[DataError.__name__])


def inspect(
    table: str | TextTable, bounds: Any, unit: str | None, missing: Any, outside: Any, describe: Any
) -> Findings:
    """What a fit would find. Messages have the options of the command."""
    from sfumato.curator import inspection

    return inspection.inspect(table, bounds, unit, missing, outside, as_options, describe)


def look(
    table: str | TextTable,
    bounds: Any,
    unit: str | None,
    missing: Any,
    outside: Any,
    *,
    describe: Any = None,
    quiet: bool,
) -> None:
    """Refuse a table that a fit would refuse or use in vain, while nothing is charged. Not private."""
    found = inspect(table, bounds, unit, missing, outside, describe)
    if not found.fits:
        reasons = "; ".join(advice.text(as_options) for advice in found.advice if advice.refuses)
        together = f". Together: {as_options(found.settings)}" if len(found.settings) > 1 else ""
        raise DataError(f"the table is not as declared, and nothing was charged: {reasons}{together}")
    if not quiet and found.used < found.rows:
        n = found.rows - found.used
        also = ", and those beyond the maximum number of rows per person" if unit else ""
        rows = "1 row is" if n == 1 else f"{n:,} rows are"
        say(f"{rows} left out{also}. This figure is exact, for you alone; `sfumato check` says more")
