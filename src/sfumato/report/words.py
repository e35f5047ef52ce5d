"""Typical words of clusters, from terms that were released with texts beside the rows."""

from __future__ import annotations

import numpy as np

from sfumato.public.intervals import half_widths
from sfumato.public.profiles.wording import number, percent, unit_for
from sfumato.public.terms import Terms
from sfumato.release import Release
from sfumato.report.markup import details, paragraph, table

MOST_CLUSTERS = 200  # in the table
_INTRODUCTION = (
    "The words that set each cluster apart: many texts in the cluster use them, and few elsewhere. They come "
    "from noisy counts that were published with the clusters. Words that noise hides are left out."
)
_NOTHING = "No word stands out from the noise."
_HEAD = ("word", "in this cluster", "95% interval", "elsewhere", "95% interval elsewhere")


def word_section(release: Release) -> str:
    """Return the section with the typical words of each cluster, as HTML, or nothing if there are none."""
    terms: Terms | None = getattr(release, "terms", None)
    if terms is None:
        return ""
    who = "records" if release.privacy.unit.column is None else "people"
    order = np.argsort(-terms.sizes, kind="stable").tolist()
    rows = [(str(c), _size(terms, c), _listed(terms, c)) for c in order[:MOST_CLUSTERS]]
    drawn = table("Typical words of each cluster", ("cluster", who, "typical words"), rows, texts=_WORDS)
    parts = [paragraph(_INTRODUCTION), drawn, paragraph(_about(terms, who), "note")]
    parts += [
        details(f"Shares of the words of cluster {c}", _shares(terms, c)) for c in order[:MOST_CLUSTERS]
    ]
    return (
        '<section aria-labelledby="clusters"><h2 id="clusters">Typical words of the clusters</h2>'
        f"{''.join(parts)}</section>"
    )


def words_on_card(release: Release, cluster: int) -> str:
    """Return the typical words of a cluster for its card, as HTML, or nothing if there are none."""
    terms: Terms | None = getattr(release, "terms", None)
    if terms is None:
        return ""
    told = _listed(terms, cluster)
    if told == _NOTHING:
        return paragraph(told, "note")
    return paragraph(f"Typical words: {told}.") + details("Shares of these words", _shares(terms, cluster))


_WORDS = ("typical words",)


def _listed(terms: Terms, cluster: int) -> str:
    return ", ".join(term.term for term in terms[cluster]) or _NOTHING


def _size(terms: Terms, cluster: int) -> str:
    """Size of a cluster, rounded to what the noise allows."""
    half = float(half_widths(np.array([terms.std]))[0])
    return f"{number(max(float(terms.sizes[cluster]), 0.0), unit_for(half, least=1.0))} ± {half:,.0f}"


def _shares(terms: Terms, cluster: int) -> str:
    rows = [
        (
            term.term,
            percent(*term.share),
            f"{term.share.low:.1%} to {term.share.high:.1%}",
            percent(*term.elsewhere),
            f"{term.elsewhere.low:.1%} to {term.elsewhere.high:.1%}",
        )
        for term in terms[cluster]
    ]
    if not rows:
        return paragraph(_NOTHING)
    return table(f"Share of the texts of cluster {cluster} that use each word", _HEAD, rows)


def _about(terms: Terms, who: str) -> str:
    source = "found in the texts, each used by many" if terms.found else "chosen from public knowledge"
    return (
        f"{len(terms.terms):,} words were counted, {source}. Each of the {who} counted for at most "
        f"{terms.max_terms} of them, and the shares allow for the rest."
    )
