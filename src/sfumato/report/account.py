"""What each step asked and cost, what was public, and how a reader can check it."""

from __future__ import annotations

from collections import Counter
from functools import partial

from sfumato import plot
from sfumato.budget import Record
from sfumato.release import FORMAT, FORMAT_VERSION, Release
from sfumato.report.markup import figure, paragraph, table

_SELECTIONS = ("exponential", "permute-and-flip")


def steps(release: Release) -> str:
    """Return the section on the budget, as HTML."""
    shares = plot.step_shares(release)
    told = ", ".join(f"{step} {share:.1%}" for step, share in shares.items())
    picture = figure(
        partial(plot.budget, release),
        f"Picture: bars with the share of the budget that each step took: {told}.",
        "Share of each step in the budget.",
        salt="budget",
        size=(5.2, 1.1 + 0.45 * len(shares)),
    )
    head = ("step", "times", "mechanism", "sensitivity", "noise scale", "noise (std)", "cost")
    counted = Counter(release.privacy.steps)
    rows = [(record.step, str(times), *_row(record, times)) for record, times in counted.items()]
    foot = ("all", str(len(release.privacy.steps)), "", "", "", "", str(release.privacy.spent))
    caption = "Every question that was asked of the confidential table, and what it cost"
    return picture + table(caption, head, rows, foot=foot, texts=("mechanism",)) + _about_steps(release)


def public_facts(release: Release) -> str:
    """Return the section on parameters and bounds, as HTML."""
    rows = [(name, "not set" if value is None else str(value)) for name, value in release.parameters.items()]
    rows.append(("budget", str(release.privacy.budget)))
    return "".join(
        [
            paragraph(
                "The guarantee presumes that these values were chosen without a look at the table. They are "
                "not protected."
            ),
            table("Parameters of the method", ("parameter", "value"), rows, texts=("value",)),
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
            table("The release that this report describes", ("property", "value"), rows, texts=("value",)),
            paragraph(
                "The release is one JSON file. Its field sha256 must show the number above, and the library "
                "checks it whenever it reads the file. It also computes the total of the budget again from "
                "the steps. Labels for new rows come from the same file:"
            ),
            "<pre><code>from sfumato import Release\n\n"
            'release = Release.load("release.json")\n'
            "print(release.privacy)\nrelease.predict(new_rows)</code></pre>",
            paragraph(f"To cite: {_citation(release)}"),
        ]
    )


def _row(record: Record, times: int) -> tuple[str, str, str, str, str]:
    is_gaussian, is_selection = record.epsilon is None, record.mechanism in _SELECTIONS
    std = "—" if is_selection else f"{record.noise_std:.4g}"
    amount = record.rho if record.epsilon is None else record.epsilon
    cost = f"{'rho' if is_gaussian else 'epsilon'}={float(amount * times):.4g}"
    return record.mechanism, record.sensitivity_in_words(), f"{float(record.scale):.6g}", std, cost


def _about_steps(release: Release) -> str:
    text = (
        "Sensitivity is the most that one protected unit can change the exact answer; the noise is made to "
        "cover it. "
    )
    match release.privacy.budget.kind:
        case "pure":
            text += "The costs add up to the whole."
        case "zcdp":
            text += "In rho the costs add up to the whole; an epsilon counts as at most half its square."
        case "approximate":
            text += (
                "The whole is not the sum of the parts but the smallest of the proved bounds: the sum, "
                "privacy-loss distributions, Rényi divergences. The picture compares the steps by their rho."
            )
    return paragraph(text, "note")


def _bounds_table(release: Release) -> str:
    domain = release.domain
    rows = [
        (name, f"{low:,.10g}", f"{high:,.10g}")
        for name, low, high in zip(plot.column_names(release), domain.low, domain.high, strict=True)
    ]
    caption = "Public bounds of the columns; values outside were moved to the nearest bound"
    if domain.radius is not None:
        caption = (
            f"Box around the public ball of radius {domain.radius:g}; rows outside were moved to its surface"
        )
    return table(caption, ("column", "lower bound", "upper bound"), rows)


def _citation(release: Release) -> str:
    return (
        f"clustering by {release.method}, differentially private with {release.privacy.budget}, unit: "
        f"{release.privacy.unit}; made with sfumato {release.library} on {release.created[:10]}."
    )
