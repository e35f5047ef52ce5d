"""What a release says about the fields of an entry."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

from sfumato.budget.exact import rounded_up
from sfumato.budget.records import Record
from sfumato.domain import ALL_ROWS, Unit
from sfumato.plot.columns import Column, columns_of
from sfumato.plot.steps import folded_names
from sfumato.public.doubts import doubts
from sfumato.registry.fields import FIELDS
from sfumato.release import Release

_VARIANTS = {"pure": "Pure DP", "approximate": "Approximate DP", "zcdp": "Zero-concentrated DP"}
_DIGITS = 6  # of the numbers of a guarantee
_MOST_COLUMNS, _MOST_LEVELS = 20, 12  # named one by one
_UNPROTECTED = (
    "No statistic of the table is published without noise; the number of rows is protected too. Names of "
    "columns, bounds, levels, parameters and budget were declared as public, or bought with a part of the "
    "budget. What was declared is not protected if it was chosen by looking at the table."
)
_ALONE = "These numbers are for this release alone. Other releases of the same table add to them."
_POST_PROCESSING = (
    "All of the release is computed from the noisy answers to the steps of `mechanisms` and from public "
    "parameters: clusters, their sizes, and how far they may be off. This costs no more."
)
_SAMPLING = (
    "Sums are taken in integers, and the noise is discrete and drawn exactly, so there is no floating-point "
    "side channel. Random bits come from the operating system."
)


def facts(release: Release) -> dict[str, Any]:
    """Fields that a release fills in, by their names. Released values and public parameters only."""
    privacy = release.privacy
    return {
        "basic.data_product_type": "Machine learning model",
        "basic.description": _description(release),
        "basic.publication_date": release.created[:10],
        "dp_variant.variant_name": _VARIANTS[privacy.budget.kind],
        "dp_variant.data_domain": _data_domain(release),
        "dp_variant.unprotected_quantities": _UNPROTECTED,
        "privacy_loss.privacy_unit": "One row" if privacy.unit.column is None else "One person",
        "privacy_loss.privacy_unit_details": _adjacent(privacy.unit),
        "privacy_loss.privacy_parameters": _parameters(release),
        "privacy_loss.privacy_parameters_details": f"{privacy.promise()}\n{_ALONE}",
        "deployment_model.model_name": "Central",
        "deployment_model.release_type": "One release",
        "deployment_model.access_type": "Non-interactive",
        "accounting.post_processing": _POST_PROCESSING,
        "accounting.composition": privacy.composition(),
        "implementation.preprocessing_and_hyperparameter_tuning": _preprocessing(release),
        "implementation.mechanisms": _mechanisms(release),
        "administrative.notes": _notes(release),
    }


def _description(release: Release) -> str:
    found = release.model.attributes().get("n_clusters")
    clusters = f"{found:,} clusters" if isinstance(found, int) and found != 1 else "Clusters"
    return f"{clusters} of the rows of a confidential table, found with {release.method} of sfumato."


def _data_domain(release: Release) -> str:
    domain, sparse = release.domain, release.sparse
    if sparse is not None:
        return (
            f"Tables of any number of rows with at most {sparse.max_active:,} active columns each, out of "
            f"{sparse.n_columns:,}."
        )
    if domain.radius is not None:
        where = "on a sphere" if domain.is_sphere else "in a ball"
        return (
            f"Tables of any number of rows with {domain.n_features:,} numbers each, {where} of radius "
            f"{domain.radius:g}."
        )
    columns = columns_of(release)
    lines = [f"- {column.name}: {_limits(column)}" for column in columns[:_MOST_COLUMNS]]
    if len(columns) > _MOST_COLUMNS:
        lines.append(f"- {len(columns) - _MOST_COLUMNS:,} more columns")
    described = release.profiles.names if release.profiles is not None else ()
    clustered = {column.source for column in columns}
    lines += [f"- {name}: only described" for name in described if name not in clustered]
    return "\n".join(["Tables of any number of rows with these columns:", *lines])


def _limits(column: Column) -> str:
    if column.kind == "category":
        return f"one of {_listed(column.levels)}"
    return f"cycle, {column.between}" if column.kind == "cycle" else column.between


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_LEVELS
    return ", ".join(names) if rest <= 1 else f"{', '.join(names[:_MOST_LEVELS])} and {rest:,} more"


def _adjacent(unit: Unit) -> str:
    if unit.column is None:
        return "Two tables are adjacent if one is the other without one row: rows are added or removed."
    text = (
        "Two tables are adjacent if one is the other without all rows of one person: people are added or "
        f"removed. A person is one value of the column {unit.column!r}."
    )
    if unit.max_rows == ALL_ROWS:
        return text
    rows = "one row" if unit.max_rows == 1 else f"at most {unit.max_rows:,} rows"
    return f"{text} The computation uses {rows} of each person, chosen by that person's rows alone."


def _parameters(release: Release) -> dict[str, float]:
    """Numbers of the guarantee. As they are written, they are not below what was spent."""
    spent = release.privacy.spent
    amounts = {"epsilon": spent.epsilon, "delta": spent.delta or None, "rho": spent.rho}
    return {
        name: float(rounded_up(amount, _DIGITS)) for name, amount in amounts.items() if amount is not None
    }


def _preprocessing(release: Release) -> str:
    tuning = FIELDS["implementation.preprocessing_and_hyperparameter_tuning"].blank
    parameters = ", ".join(
        f"{name}={reprlib.repr(value)}" for name, value in release.parameters.items() if value is not None
    )
    words = release.domain.measure.words
    return "\n".join(
        [
            _outside(release),
            _missing(release),
            f"{words[:1].upper()}{words[1:]}.",
            f"Parameters: {parameters}.",
            str(tuning),
        ]
    )


def _outside(release: Release) -> str:
    domain = release.domain
    if domain.outside == "drop":
        return "Rows outside the bounds are left out."
    if domain.is_sphere or (release.sparse is not None and release.sparse.norm == "unit"):
        return "Rows are scaled to one length."
    if domain.radius is not None:
        return "Rows outside the ball are moved to its surface."
    return "Values outside the bounds are moved to the nearest bound."


def _missing(release: Release) -> str:
    match release.parameters.get("missing", "error"):
        case "drop":
            return "Rows with missing values are left out."
        case "error":
            return "Tables with missing values are refused."
        case _:
            return "Public values stand in for missing ones; rows that still miss one are left out."


def _mechanisms(release: Release) -> str:
    records = release.privacy.steps
    names = folded_names(record.step for record in records)
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((names[record.step], record.mechanism), []).append(record)
    lines = [f"- {step}: {_mechanism(group)}" for (step, _), group in groups.items()]
    software = f"Computed with sfumato {release.library}, an open-source library."
    return "\n".join([*lines, _SAMPLING, software])


def _mechanism(records: Sequence[Record]) -> str:
    """What records of one step have in common."""
    sensitivities = list(dict.fromkeys(record.sensitivity_in_words() for record in records))
    scales = [f"{float(scale):.6g}" for scale in sorted({record.scale for record in records})]
    times = "" if len(records) == 1 else f", {len(records):,} times"
    threshold = ", with a threshold" if any(record.delta for record in records) else ""
    noise = f"{records[0].mechanism}, scale {_ends(scales)}"
    return f"{noise} on sensitivity {_ends(sensitivities)}{threshold}{times}"


def _ends(texts: Sequence[str]) -> str:
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"


def _notes(release: Release) -> str:
    origin = f"Made from a release file of sfumato {release.library} with SHA-256 {release.checksum()}."
    return "\n".join([origin, *(f"{doubt.rstrip('.')}." for doubt in doubts(release))])
