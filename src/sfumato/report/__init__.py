"""A report on a release for readers who are not experts: one HTML file, made from the release alone."""

from __future__ import annotations

import base64
import hashlib
import html
import os
from importlib.resources import files
from pathlib import Path
from string import Template

from sfumato.budget.statement import SEEDED_WARNING
from sfumato.plot import blank
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.release import Release, write_whole
from sfumato.report import centres, mixtures, places, spans  # noqa: F401  # which register their models
from sfumato.report.account import public_facts, steps, verification
from sfumato.report.findings import findings
from sfumato.report.markup import facts
from sfumato.report.protection import Protection, in_words

__all__ = ["render", "write"]


def write(release: Release, path: str | os.PathLike[str]) -> Path:
    """Write the report on a release: one HTML file that needs no network.

    The file is written under a temporary name and then renamed, so nobody sees half a report.

    Parameters
    ----------
    release : Release
    path : str or path-like

    Returns
    -------
    Path
        The path of the report.

    Privacy
    -------
    Reads released values and public parameters only, and costs no budget.

    Examples
    --------
    >>> from sfumato import Release, report
    >>> report.write(Release.load("release.json"), "report.html")  # doctest: +SKIP
    """
    return write_whole(path, render(release))


def render(release: Release) -> str:
    """Return the report on a release as the text of an HTML page.

    Parameters
    ----------
    release : Release
    """
    blank(1, 1)  # without matplotlib, say how to install it
    protection = Protection.of(release.privacy)
    here = files(__name__)
    script = here.joinpath("choices.js").read_text("utf-8")
    return Template(here.joinpath("page.html").read_text("utf-8")).substitute(
        title=html.escape(f"Clusters in a confidential table, found by {release.method}"),
        style=here.joinpath("style.css").read_text("utf-8"),
        banner=_banner() if release.privacy.seeded else "",
        summary=_summary(release, protection),
        protection=in_words(protection),
        findings=findings(release.model, release),
        budget=steps(release),
        public=public_facts(release),
        verify=verification(release),
        script=script,
        script_hash=f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}",
    )


def _banner() -> str:
    return (
        f'<div class="banner" role="alert"><strong>{SEEDED_WARNING}</strong>'
        "<p>The noise in this run came from a seed. Anyone who guesses the seed can remove the noise, so "
        "none of the guarantees below holds. Run it again without <code>random_state</code>.</p></div>"
    )


def _summary(release: Release, protection: Protection) -> str:
    counted = {
        "Columns": str(release.domain.n_features),
        "Records": _records(release),
        "Released": release.created[:10],
    }
    return facts(protection.summary() | counted)


def _records(release: Release) -> str:
    """How many records the table has, if the release says so."""
    synopsis: GridSynopsis | None = getattr(release.model, "synopsis", None)
    if synopsis is None:
        return "not released"
    about = f" (noise ± {synopsis.rows_std:,.0f})" if synopsis.rows_std else " (public)"
    return f"{synopsis.noisy_rows:,.0f}{about}"
