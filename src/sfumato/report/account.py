"""What each step asked and cost, what was public, and how readers can check it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from sfumato import plot
from sfumato.budget import Record
from sfumato.budget.exact import rounded_up
from sfumato.plot.columns import Column, columns_of
from sfumato.plot.steps import currency, folded_names
from sfumato.plot.style import counted
from sfumato.release import FORMAT, FORMAT_VERSION, Release
from sfumato.report.bars import Bar, bars
from sfumato.report.markup import details, paragraph, table
from sfumato.report.sparse import row_rules

_BUDGET = (
    "Every question asked of the table costs some privacy. The budget is the most that all questions "
    "together may cost."
)
_CAPTION = "Every question asked of the confidential table, and its cost"
_MOST_NAMES = 6  # of levels
_ADVICE = re.compile(r"\. Declare units [^}]*\}")
_SELECTIONS = ("exponential", "permute-and-flip")


def steps(release: Release) -> str:
    """Return the section on the budget, as HTML. Steps that repeat have one line, and details on demand."""
    shares = plot.step_shares(release, folded=True)
    shown = [Bar(step, share, f"{share:.1%}") for step, share in shares.items()]
    picture = bars(f"Each step's share of the budget ({currency(release)})", shown, longest=1.0)
    asked, names = release.privacy.steps, folded_names(record.step for record in release.privacy.steps)
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in asked:
        groups.setdefault((names[record.step], record.mechanism), []).append(record)
    parts = [paragraph(_BUDGET), picture, _asked(release, _CAPTION, groups), _about_steps(release)]
    if set(names) != set(names.values()):
        single: dict[tuple[str, str], list[Record]] = {}
        for record in asked:
            single.setdefault((record.step, str(record)), []).append(record)
        each = _asked(release, _CAPTION, single)
        parts.append(details(f"All {counted(len(single), 'step')}, one by one", each))
    return "".join(parts)


def _asked(release: Release, caption: str, groups: Mapping[tuple[str, str], list[Record]]) -> str:
    head = ("step", "times", "mechanism", "sensitivity", "noise scale", "noise (std)", "cost")
    rows = [(step, str(len(records)), *_row(records)) for (step, _), records in groups.items()]
    foot = ("total", str(len(release.privacy.steps)), "", "", "", "", str(release.privacy.spent))
    return table(caption, head, rows, foot=foot, texts=("mechanism",))


def public_facts(release: Release) -> str:
    """Return the section on settings and bounds, as HTML."""
    rows = [(name, "not set" if value is None else str(value)) for name, value in release.parameters.items()]
    rows.append(("budget", str(release.privacy.budget)))
    return "".join(
        [
            paragraph(
                "The guarantee assumes that these values were chosen without looking at the table. They are "
                "public, so they are not protected."
            ),
            table("Settings of the method", ("setting", "value"), rows, texts=("value",)),
            _bounds_table(release),
        ]
    )


def verification(release: Release) -> str:
    """Return the section on how to verify and cite, as HTML."""
    rows = [
        ("method", release.method),
        ("library", f"sfumato {release.library}"),
        ("file format", f"{FORMAT}, version {FORMAT_VERSION}"),
        ("created", release.created),
        ("SHA-256", release.checksum()),
    ]
    return "".join(
        [
            table("The release behind this report", ("property", "value"), rows, texts=("value",)),
            paragraph(
                "The release is one JSON file. Its field sha256 must show the number above. The library "
                "checks this whenever it reads the file, and it recomputes the total cost from the steps. "
                "The same file gives labels for new records:"
            ),
            "<pre><code>from sfumato import Release\n\n"
            'release = Release.load("release.json")\n'
            "print(release.privacy)\nrelease.predict(new_records)</code></pre>",
            paragraph(f"To cite this release: {_citation(release)}"),
        ]
    )


def _row(records: Sequence[Record]) -> tuple[str, str, str, str, str]:
    """What records of one mechanism have in common, and what they cost together."""
    first = records[0]
    is_selection = first.mechanism in _SELECTIONS
    std = "—" if is_selection else _range([record.noise_std for record in records], 4)
    scale = _range([float(record.scale) for record in records], 6)
    sensitivities = list(dict.fromkeys(record.sensitivity_in_words() for record in records))
    amounts = (record.rho if record.epsilon is None else record.epsilon for record in records)
    amount = sum(amounts, Fraction(0))
    delta = sum((record.delta for record in records), Fraction(0))
    cost = f"{'rho' if first.epsilon is None else 'epsilon'}={rounded_up(amount, 4)}"
    cost += f", delta={rounded_up(delta, 4)}" if delta else ""
    return first.mechanism, _first_to_last(sensitivities), scale, std, cost


def _range(numbers: Sequence[float], digits: int) -> str:
    low, high = (f"{number:.{digits}g}" for number in (min(numbers), max(numbers)))
    return low if low == high else f"{low} to {high}"


def _first_to_last(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}"


def _about_steps(release: Release) -> str:
    text = (
        "The sensitivity of a question is the most that one protected record or person can change its exact "
        "answer. The noise is scaled to cover it, and its size is given as a standard deviation (std). "
    )
    text += release.privacy.composition()
    if release.privacy.budget.kind == "approximate":
        text += " The picture compares the steps by rho."
    return paragraph(text, "note")


def measuring(release: Release) -> str:
    """Return a sentence on how columns were measured, as HTML, without the advice for whoever fits."""
    words = _ADVICE.sub("", release.domain.measure.words)
    return (
        paragraph(f"{words[:1].upper()}{words[1:]}.", "note")
        if words and release.domain.n_features > 1
        else ""
    )


def _bounds_table(release: Release) -> str:
    if release.sparse is not None:
        return row_rules(release)
    domain = release.domain
    rows = [(column.name, *_limits(column)) for column in columns_of(release)]
    caption = "Public bounds of the columns. "
    caption += "Values outside were moved to the nearest bound."
    if domain.outside == "drop":
        caption = "Public bounds of the columns. Records outside were left out."
    if any(column.kind == "category" for column in columns_of(release)):
        caption += " A category has levels instead; all other values count as “other”."
    if any(record.delta for record in release.privacy.steps):
        caption += " Levels of categories were not public: a part of the budget found them."
    if domain.radius is not None:
        caption = (
            f"Box around the public ball of radius {domain.radius:g}. Records outside the ball were moved to "
            "its surface."
        )
    if domain.is_sphere:
        caption = f"Box around the public sphere: records were scaled to the length {domain.radius:g}."
    return table(caption, ("column", "lower bound", "upper bound"), rows)


def _limits(column: Column) -> tuple[str, str]:
    """Public limits of a column in words."""
    match column.kind:
        case "category":
            return f"{len(column.levels)} levels", shortened(column.levels)
        case "rank":
            return column.levels[0], column.levels[-1]
        case "flag":
            return "false", "true"
        case "cycle":
            return "cycle", column.between
        case "date":
            return column.written(column.low), column.written(column.high)
        case _:
            unit = f" {column.unit}" if column.unit else ""
            return f"{column.low:,.10g}{unit}", f"{column.high:,.10g}{unit}"


def shortened(names: Sequence[str]) -> str:
    """The first names of a long list, and how many there are besides."""
    rest = len(names) - _MOST_NAMES
    return ", ".join(names) if rest <= 1 else f"{', '.join(names[:_MOST_NAMES])} and {rest:,} more"


def _citation(release: Release) -> str:
    return (
        f"clustering by {release.method}, differentially private with {release.privacy.budget} for "
        f"{release.privacy.unit}, made with sfumato {release.library} on {release.created[:10]}."
    )
