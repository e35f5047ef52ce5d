"""An entry of the registry, from a release and the holder's answers."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import date
from difflib import get_close_matches
from typing import Any

from sfumato.budget.statement import SEEDED_WARNING
from sfumato.errors import ParameterError
from sfumato.registry.facts import facts
from sfumato.registry.fields import (
    DEPLOYMENT,
    FIELDS,
    TO_FILL_IN,
    Answers,
    flattened,
    nested,
    problems,
    tier_of,
)
from sfumato.registry.yaml import as_yaml
from sfumato.release import Release, write_whole


def make_entry(release: Release, answers: Answers | None = None) -> dict[str, Any]:
    """Return an entry for the public registry of deployments of differential privacy.

    Parameters
    ----------
    release : Release
        It must be one that may be published: not seeded.
    answers : mapping, optional
        Fields that the release does not know, or knows less well, by section and name:
        ``{"basic": {"name": "Kinds of stays"}}`` or ``{"basic.name": "Kinds of stays"}``. `FIELDS` lists all.

    Returns
    -------
    dict
        The entry. `unfilled` names the fields that nobody filled in.

    Raises
    ------
    ParameterError
        If the release is seeded, or an answer is not usable.

    Privacy
    -------
    Reads released values and public parameters only, and costs no budget. Answers are published with the
    entry: do not write anything from the table into them.
    """
    if release.privacy.seeded:
        raise ParameterError(
            f"an entry must be about a release that may be published, got one that is {SEEDED_WARNING}. Fit "
            "again without a seed"
        )
    given = {name: _checked(name, value) for name, value in _named(answers or {})}
    blank = {name: field.blank for name, field in FIELDS.items()}
    fields = blank | {"status": "Draft"} | facts(release) | given
    fields["url_slug"] = given.get("url_slug") or _slug(fields)
    fields["tier"] = given.get("tier") or tier_of({**fields, "tier": 1})
    entry = nested(fields)
    if found := problems(entry):
        raise ParameterError(f"an entry must have usable fields, got {'; '.join(found)}")
    return entry


def write(release: Release, path: str | os.PathLike[str], answers: Answers | None = None) -> dict[str, Any]:
    """Write an entry for the public registry of deployments of differential privacy, as YAML.

    The file is written under a temporary name and then renamed, so nobody sees half an entry.

    Parameters
    ----------
    release : Release
        It must be one that may be published: not seeded.
    path : path
    answers : mapping, optional
        As for `make_entry`.

    Returns
    -------
    dict
        The entry.

    Privacy
    -------
    Reads released values and public parameters only, and costs no budget. Answers are published with the
    entry.
    """
    entry = make_entry(release, answers)
    write_whole(path, as_yaml(entry))
    return entry


def _named(answers: Answers) -> Iterator[tuple[str, Any]]:
    """Answers by the names of their fields, however they are nested."""
    sections = {name: value for name, value in answers.items() if isinstance(value, Mapping)}
    yield from ((name, value) for name, value in answers.items() if name not in sections)
    yield from flattened({DEPLOYMENT: sections})


def _checked(name: str, value: object) -> object:
    """An answer as its field has it, however a file or a command line writes it."""
    field = FIELDS.get(name)
    if field is None:
        close = get_close_matches(name, FIELDS, n=1, cutoff=0)
        raise ParameterError(f"an answer must be to a field of an entry, got {name!r}. Try {close[0]!r}")
    if field.is_fixed:
        raise ParameterError(f"`{name}` must come from the release, got an answer. Leave it out")
    if field.kind == "texts" and isinstance(value, str):
        value = [value]
    if field.kind == "tier" and isinstance(value, str) and value.isdecimal():
        value = int(value)
    if field.kind == "date" and type(value) is date:
        value = value.isoformat()
    if problem := field.problem(value):
        raise ParameterError(f"`{name}` {problem}")
    return value


def _slug(fields: Answers) -> str | list[str]:
    """Name, publisher and year, such as "kinds-of-stays-city-hospital-2026", once they are known."""
    parts = [fields["basic.name"], *fields["basic.data_curators"], fields["basic.publication_date"][:4]]
    plain = unicodedata.normalize("NFKD", " ".join(parts)).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return FIELDS["url_slug"].blank if any(TO_FILL_IN in part for part in parts) else slug
