"""The fields of an entry: what each is about, what it may hold, and whether an entry has them all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

TO_FILL_IN = "TO BE FILLED IN"
DEPLOYMENT = "deployment"  # holds all sections of an entry

Answers = Mapping[str, Any]
Kind = Literal["text", "texts", "slug", "date", "tier", "parameters"]

_PARAMETERS = {
    "Pure DP": {"epsilon"},
    "Approximate DP": {"epsilon", "delta"},
    "Zero-concentrated DP": {"rho"},
}
_STATES = ("Draft", "Pending", "Changes Required", "Approved")
_PRODUCTS = (
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)


@dataclass(frozen=True)
class Field:
    """A field of an entry.

    Parameters
    ----------
    about : str
        What it says.
    kind : {"text", "texts", "slug", "date", "tier", "parameters"}
    choices : tuple of str
        All that it may hold, if the registry has a list.
    tier : int
        Lowest tier of entries that have it.
    is_fixed : bool
        Whether the release alone decides it.
    """

    about: str
    kind: Kind = "text"
    choices: tuple[str, ...] = ()
    tier: int = 1
    is_fixed: bool = False

    @property
    def blank(self) -> str | list[str]:
        """What stands in it until somebody fills it in."""
        text = f"{TO_FILL_IN}: {self.about}"
        return [text] if self.kind == "texts" else text

    def problem(self, value: object) -> str:
        """What is wrong with a value, or ""."""
        if _is_unfilled(value) and not self.is_fixed:
            return ""
        match self.kind:
            case "texts":
                fits = isinstance(value, list) and bool(value) and all(map(_is_text, value))
                wanted = "a list of texts"
            case "tier":
                fits, wanted = value in (1, 2, 3) and not isinstance(value, bool), "1, 2 or 3"
            case "parameters":
                fits = isinstance(value, dict) and all(map(_is_amount, value.values()))
                wanted = "numbers of at least 0 by name"
            case "date":
                fits, wanted = _is_date(value), "a date such as '2026-11-30'"
            case "slug":
                fits = isinstance(value, str) and bool(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", value))
                wanted = "lower-case letters and numbers, joined by hyphens"
            case _:
                fits = value in self.choices if self.choices else _is_text(value)
                wanted = f"one of {', '.join(self.choices)}" if self.choices else "a text"
        return "" if fits else f"must be {wanted}, got {value!r}"


FIELDS: dict[str, Field] = {
    "url_slug": Field("end of the entry's address, such as kinds-of-stays-city-hospital-2026", "slug"),
    "status": Field("state of its review", choices=_STATES),
    "tier": Field("how complete the entry is: 1, 2 or 3", "tier"),
    "basic.name": Field("name of what is published"),
    "basic.data_curators": Field("who publishes it", "texts"),
    "basic.intended_use": Field("what it is meant to be used for"),
    "basic.data_product_type": Field("what kind of product it is", choices=_PRODUCTS),
    "basic.data_product_region": Field("region that the data describe, or whose laws apply"),
    "basic.description": Field("what is published, in short"),
    "basic.publication_date": Field("day of publication, such as 2026-11-30", "date"),
    "dp_variant.variant_name": Field("kind of guarantee", choices=tuple(_PARAMETERS), tier=2, is_fixed=True),
    "dp_variant.data_domain": Field("tables that the guarantee is about", tier=3),
    "dp_variant.unprotected_quantities": Field("what is published without noise", tier=3),
    "privacy_loss.privacy_unit": Field("who or what is protected", tier=2),
    "privacy_loss.privacy_unit_details": Field("which tables are adjacent", tier=3),
    "privacy_loss.privacy_parameters": Field("numbers of the guarantee", "parameters", tier=2, is_fixed=True),
    "privacy_loss.privacy_parameters_details": Field("what these numbers mean", tier=3),
    "deployment_model.model_name": Field(
        "who is trusted with the data", choices=("Local", "Central", "Shuffle", "Federated"), tier=2
    ),
    "deployment_model.actors": Field(
        "who sees the table, who sees what is published, and why they are trusted", tier=3
    ),
    "deployment_model.release_type": Field(
        "whether it is published once", choices=("One release", "Many releases"), tier=2
    ),
    "deployment_model.data_source_type": Field(
        "whether the table grows (Dynamic) or not (Static)", choices=("Static", "Dynamic"), tier=2
    ),
    "deployment_model.access_type": Field(
        "whether people may ask the table more", choices=("Interactive", "Non-interactive"), tier=2
    ),
    "accounting.post_processing": Field("what was computed after the noise", tier=3),
    "accounting.composition": Field("how costs add up", tier=3),
    "implementation.preprocessing_and_hyperparameter_tuning": Field(
        "how bounds, parameters and budget were chosen, and whether anybody looked at the table for it",
        tier=3,
    ),
    "implementation.mechanisms": Field("noise and software", tier=3, is_fixed=True),
    "implementation.justification": Field("why this method, this unit and this budget", tier=3),
    "administrative.sources": Field("addresses of the release file and of what is written about it"),
    "administrative.notes": Field("anything else"),
    "administrative.registry_authors": Field("who wrote this entry", "texts"),
}


def problems(entry: Answers) -> list[str]:
    """Return what is wrong with an entry, a line each. Fields that are to be filled in are not wrong.

    Parameters
    ----------
    entry : mapping
        As `make_entry` returns it, or as a YAML reader reads it.

    Examples
    --------
    >>> problems({"status": "Draft", "size": 3})[:2]
    ['url_slug: is missing', 'tier: is missing']
    """
    found = dict(flattened(entry))
    lines = [f"{name}: is missing" for name in FIELDS if name not in found]
    lines += [f"{name}: is no field of an entry" for name in found if name not in FIELDS]
    for name, value in found.items():
        if name in FIELDS and (problem := FIELDS[name].problem(value)):
            lines.append(f"{name}: {problem}")
    return lines or _contradictions(found)


def _contradictions(found: Answers) -> list[str]:
    variant, parameters = found["dp_variant.variant_name"], found["privacy_loss.privacy_parameters"]
    if set(parameters) == _PARAMETERS[variant]:
        return []
    wanted = " and ".join(sorted(_PARAMETERS[variant]))
    return [f"privacy_loss.privacy_parameters: must be {wanted} with {variant}, got {sorted(parameters)}"]


def unfilled(entry: Answers) -> list[str]:
    """Return the names of the fields of an entry that are still to be filled in.

    Parameters
    ----------
    entry : mapping
        As `make_entry` returns it.
    """
    return [name for name, value in flattened(entry) if _is_unfilled(value)]


def tier_of(fields: Answers) -> int:
    """Highest tier of which all fields are filled in, by name; at least 1."""
    missing = [FIELDS[name].tier for name, value in fields.items() if _is_unfilled(value)]
    return max(1, min(missing, default=4) - 1)


def flattened(entry: Answers) -> Iterator[tuple[str, Any]]:
    """Fields of an entry by their names, such as "basic.name"."""
    for name, value in entry.items():
        if name != DEPLOYMENT or not isinstance(value, Mapping):
            yield name, value
            continue
        for section, fields in value.items():
            if not isinstance(fields, Mapping):
                yield section, fields
            else:
                yield from ((f"{section}.{name}", field) for name, field in fields.items())


def nested(fields: Answers) -> dict[str, Any]:
    """Entry from fields by their names, in the order of the registry."""
    entry: dict[str, Any] = {}
    for name in FIELDS:
        section, _, field = name.partition(".")
        if field:
            entry.setdefault(DEPLOYMENT, {}).setdefault(section, {})[field] = fields[name]
        else:
            entry[name] = fields[name]
    return entry


def _is_unfilled(value: object) -> bool:
    texts = value if isinstance(value, list) else [value]
    return any(isinstance(text, str) and TO_FILL_IN in text for text in texts)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _is_date(value: object) -> bool:
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False
