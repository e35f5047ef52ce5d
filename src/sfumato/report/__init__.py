"""A report on a release that an official can read: one HTML file, made from the release alone."""

from __future__ import annotations

import base64
import hashlib
import html
import os
from importlib.resources import files
from pathlib import Path
from string import Template

from sfumato.budget.statement import SEEDED_WARNING
from sfumato.public.models import CentreModel, MixtureModel, MorseModel, SourceTargetModel
from sfumato.release import Release, write_whole
from sfumato.report.account import public_facts, steps, verification
from sfumato.report.findings import clusters, rows_in_words
from sfumato.report.guarantee import Guarantee, in_words
from sfumato.report.markup import facts, paragraph
from sfumato.report.mixtures import mixtures
from sfumato.report.places import places
from sfumato.report.spans import spans

__all__ = ["render", "write"]


def write(release: Release, path: str | os.PathLike[str]) -> Path:
    """Write the report on a release: one HTML file that needs no network.

    The file is written under a temporary name and renamed, so that no half-written report can be seen.

    Parameters
    ----------
    release : Release
    path : str or path-like

    Returns
    -------
    Path
        Where the report is.

    Privacy
    -------
    Reads released values and public parameters only, and spends nothing.

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
    guarantee = Guarantee.of(release.privacy)
    here = files(__name__)
    script = here.joinpath("choices.js").read_text("utf-8")
    return Template(here.joinpath("page.html").read_text("utf-8")).substitute(
        title=html.escape(f"Clusters of a confidential table, by {release.method}"),
        style=here.joinpath("style.css").read_text("utf-8"),
        banner=_banner() if release.privacy.seeded else "",
        summary=_summary(release, guarantee),
        protection=in_words(guarantee),
        findings=_findings(release),
        budget=steps(release),
        public=public_facts(release),
        verify=verification(release),
        script=script,
        script_hash=f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}",
    )


def _findings(release: Release) -> str:
    model = release.model
    if isinstance(model, CentreModel):
        return clusters(release, model)
    if isinstance(model, MixtureModel | MorseModel):
        return mixtures(release, model)
    if isinstance(model, SourceTargetModel):
        return places(release, model)
    if hasattr(model, "spans"):
        return spans(release, model.spans)
    return paragraph(f"The release holds a {type(model).__name__}, for which this report has no picture.")


def _banner() -> str:
    return (
        f'<div class="banner" role="alert"><strong>{SEEDED_WARNING}</strong>'
        "<p>The noise of this run came from a seed. Whoever guesses the seed can remove the noise, so none "
        "of the guarantees below holds. Run it again without <code>random_state</code>.</p></div>"
    )


def _summary(release: Release, guarantee: Guarantee) -> str:
    counted = {
        "Columns": str(release.domain.n_features),
        "Rows": rows_in_words(release),
        "Released": release.created[:10],
    }
    return facts(guarantee.summary() | counted)
