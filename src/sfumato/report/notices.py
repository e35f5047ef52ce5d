"""What stands at the top of a report: doubts about the findings, and what may be published."""

from __future__ import annotations

import html

from sfumato.budget.statement import SEEDED_WARNING
from sfumato.public.doubts import doubts
from sfumato.release import Release

_MAY = (
    "this page",
    "the release file from which it was made",
    "anything that is computed from these two alone",
)
_MUST_NOT = (
    "the table itself, or any part of it",
    "the cluster of a record of the table: labels are not protected",
    "pictures with records in them, and exact counts from checks of the table",
    "other results from the same table, unless they have a budget of their own in the ledger",
)


def notices(release: Release) -> str:
    """Return the boxes at the top, as HTML: a banner for seeded runs, doubts, and what may be published."""
    return "".join([_banner() if release.privacy.seeded else "", _doubts(release), _publishing(release)])


def _banner() -> str:
    return (
        f'<div class="banner" role="alert"><strong>{SEEDED_WARNING}</strong>'
        "<p>The noise in this run came from a seed. Anyone who guesses the seed can remove the noise, so "
        "none of the guarantees below holds. Run it again without a seed.</p></div>"
    )


def _doubts(release: Release) -> str:
    found = doubts(release)
    if not found:
        return ""
    items = "".join(f"<li>{html.escape(doubt.rstrip('.'))}.</li>" for doubt in found)
    return (
        '<aside class="doubts" aria-label="Warnings"><p><strong>Read these results with care</strong></p>'
        f"<ul>{items}</ul></aside>"
    )


def _publishing(release: Release) -> str:
    if release.privacy.seeded:
        may = "<p><strong>Publish nothing of this run.</strong> It is seeded, see above.</p>"
    else:
        may = f"<p><strong>You may publish</strong></p>{_list(_MAY)}"
    return (
        f'<aside class="publish" aria-label="What may be published"><div>{may}</div>'
        f"<div><p><strong>Do not publish</strong></p>{_list(_MUST_NOT)}</div></aside>"
    )


def _list(texts: tuple[str, ...]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(text)}</li>' for text in texts)}</ul>"
