"""``sfumato registry``: an entry for the public registry of deployments, from a release and answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.bounds_option import read_toml
from sfumato.cli.failures import say
from sfumato.cli.files import check_new
from sfumato.cli.predict import load
from sfumato.errors import ParameterError


def registry(
    release: options.ReleaseFile,
    out: Annotated[Path, typer.Option(help="YAML file to write, e.g. --out entry.yaml.")] = Path(
        "entry.yaml"
    ),
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=TEXT",
            help="Text of a field that the release does not know, e.g. --set basic.name='Kinds of stays'. "
            "May be repeated, also for a field that takes several texts.",
        ),
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file with the texts of fields, in a table per section, e.g. --answers answers.toml.",
        ),
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Write an entry for the public registry of deployments of differential privacy. Spends nothing."""
    check_new(out, force=force)
    given = {} if answers is None else read_toml(answers)
    for field, texts in _settings(settings or []).items():
        _put(given, field, texts)
    found = load(release)
    from sfumato.registry import FIELDS, unfilled, write

    entry = write(found, out, given)
    if not quiet:
        print(f"entry: {out}")
        for field in unfilled(entry):
            say(f"to be filled in: {field} ({FIELDS[field].about})")


def _settings(settings: list[str]) -> dict[str, list[str]]:
    """Texts of each field."""
    found: dict[str, list[str]] = {}
    for setting in settings:
        field, given, text = setting.partition("=")
        if not given or not field.strip():
            raise ParameterError(f"`--set` must be FIELD=TEXT, got {setting!r}. Try --set basic.name='Stays'")
        found.setdefault(field.strip(), []).append(text.strip())
    return found


def _put(answers: dict[str, Any], field: str, texts: list[str]) -> None:
    """Set a field in answers as a TOML file has them. The command line wins."""
    section, _, name = field.rpartition(".")
    table = answers.setdefault(section, {}) if section else answers
    if not isinstance(table, dict):
        raise ParameterError(f"`{section}` in --answers must be a table, got {table!r}")
    table[name] = texts if len(texts) > 1 else texts[0]
