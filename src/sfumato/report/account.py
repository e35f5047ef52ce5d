"""What each step asked and cost, what was public, and how readers can check it."""

from __future__ import annotations

from collections import Counter
from functools import partial

from sfumato import plot
from sfumato.budget import Record
from sfumato.budget.exact import rounded_up
from sfumato.release import FORMAT, FORMAT_VERSION, Release
from sfumato.report.markup import figure, paragraph, table

_BUDGET = (
    "Every question asked of the table costs some privacy. The budget is the most that all questions "
    "together may cost."
)
_SELECTIONS = ("exponential", "permute-and-flip")


def steps(release: Release) -> str:
    """Return the section on the budget, as HTML."""
    shares = plot.step_shares(release)
    told = ", ".join(f"{step} {share:.1%}" for step, share in shares.items())
    picture = figure(
        partial(plot.budget, release),
        f"Picture: bars with each step's share of the budget: {told}.",
        "Each step's share of the budget.",
        salt="budget",
        size=(5.2, 1.1 + 0.45 * len(shares)),
    )
    head = ("step", "times", "mechanism", "sensitivity", "noise scale", "noise (std)", "cost")
    counted = Counter(release.privacy.steps)
    rows = [(record.step, str(times), *_row(record, times)) for record, times in counted.items()]
    foot = ("total", str(len(release.privacy.steps)), "", "", "", "", str(release.privacy.spent))
    caption = "Every question asked of the confidential table, and its cost"
    asked = table(caption, head, rows, foot=foot, texts=("mechanism",))
    return paragraph(_BUDGET) + picture + asked + _about_steps(release)


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


def _row(record: Record, times: int) -> tuple[str, str, str, str, str]:
    is_gaussian, is_selection = record.epsilon is None, record.mechanism in _SELECTIONS
    std = "—" if is_selection else f"{record.noise_std:.4g}"
    amount = record.rho if record.epsilon is None else record.epsilon
    cost = f"{'rho' if is_gaussian else 'epsilon'}={rounded_up(amount * times, 4)}"
    cost += f", delta={rounded_up(record.delta * times, 4)}" if record.delta else ""
    return record.mechanism, record.sensitivity_in_words(), f"{float(record.scale):.6g}", std, cost


def _about_steps(release: Release) -> str:
    text = (
        "The sensitivity of a question is the most that one protected record or person can change its exact "
        "answer. The noise is scaled to cover it, and its size is given as a standard deviation (std). "
    )
    match release.privacy.budget.kind:
        case "pure":
            text += "The costs add up to the total."
        case "zcdp":
            text += "In rho, the costs add up to the total. An epsilon counts as at most half its square."
        case "approximate":
            text += (
                "The total is not the sum of the costs. It is the smallest of three proven bounds: the sum, "
                "privacy-loss distributions, and Rényi divergences. The picture compares the steps by rho."
            )
    if any(record.delta for record in release.privacy.steps):
        text += (
            " A step with a delta shows only values that many people have; with this probability it may show "
            "a value that one person alone has. Its epsilon and delta are added to those of all other steps."
        )
    return paragraph(text, "note")


def _bounds_table(release: Release) -> str:
    domain = release.domain
    rows = [
        (name, f"{low:,.10g}", f"{high:,.10g}")
        for name, low, high in zip(plot.column_names(release), domain.low, domain.high, strict=True)
    ]
    caption = "Public bounds of the columns. Values outside were moved to the nearest bound."
    if any(record.delta for record in release.privacy.steps):
        caption += " Levels of categories were not public: a part of the budget found them."
    if domain.radius is not None:
        caption = (
            f"Box around the public ball of radius {domain.radius:g}. Records outside the ball were moved to "
            "its surface."
        )
    return table(caption, ("column", "lower bound", "upper bound"), rows)


def _citation(release: Release) -> str:
    return (
        f"clustering by {release.method}, differentially private with {release.privacy.budget} for "
        f"{release.privacy.unit}, made with sfumato {release.library} on {release.created[:10]}."
    )
