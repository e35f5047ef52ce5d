"""A report on a release for readers who are not experts: one HTML file, made from the release alone."""

from __future__ import annotations

import base64
import hashlib
import html
import os
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from string import Template

from sfumato.errors import ParameterError
from sfumato.plot.columns import columns_of, relabelled
from sfumato.plot.style import require_matplotlib
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.release import Release, write_whole
from sfumato.report import centres, mixtures, places, spans  # noqa: F401  # which register their models
from sfumato.report.account import measuring, public_facts, steps, verification
from sfumato.report.cards import card_section
from sfumato.report.findings import findings
from sfumato.report.markup import facts
from sfumato.report.notices import notices
from sfumato.report.numbers import number_section
from sfumato.report.protection import Protection, in_words
from sfumato.report.sparse import sparse_findings

__all__ = ["render", "write"]


def write(
    release: Release,
    path: str | os.PathLike[str],
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Path:
    """Write the report on a release: one HTML file that needs no network.

    The file is written under a temporary name and then renamed, so nobody sees half a report.

    Parameters
    ----------
    release : Release
    path : str or path-like
    title : str, optional
        Title of the page.
    labels : mapping, optional
        Text for columns, by name, for example ``{"los": "Days in hospital"}``.

    Returns
    -------
    Path
        The path of the report.

    Privacy
    -------
    Reads released values and public parameters only, and costs no budget. Title and labels are published
    with the page: do not write anything from the table into them.

    Examples
    --------
    >>> from sfumato import Release, report
    >>> report.write(Release.load("release.json"), "report.html")  # doctest: +SKIP
    """
    return write_whole(path, render(release, title, labels))


def render(release: Release, title: str | None = None, labels: Mapping[str, str] | None = None) -> str:
    """Return the report on a release as the text of an HTML page.

    Parameters
    ----------
    release : Release
    title : str, optional
        Title of the page.
    labels : mapping, optional
        Text for columns, by name.
    """
    require_matplotlib()
    named = _checked(release, labels or {})
    shown = replace(release, columns=relabelled(release, named)) if named else release
    protection = Protection.of(release.privacy)
    here = files(__name__)
    script = here.joinpath("choices.js").read_text("utf-8")
    described, numbers = card_section(release, named), number_section(shown)
    return Template(here.joinpath("page.html").read_text("utf-8")).substitute(
        title=html.escape(title or f"Clusters in a confidential table, found by {release.method}"),
        style=here.joinpath("style.css").read_text("utf-8"),
        notices=notices(release),
        summary=_summary(release, protection),
        to_clusters='<a href="#clusters">Clusters</a> ' if described else "",
        protection=in_words(protection),
        cards=described,
        findings=findings(shown.model, shown) if release.sparse is None else sparse_findings(release),
        numbers=numbers,
        to_numbers='<a href="#numbers">How many</a> ' if numbers else "",
        measuring=measuring(shown),
        budget=steps(release),
        public=public_facts(shown),
        verify=verification(release),
        script=script,
        script_hash=f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}",
    )


def _checked(release: Release, labels: Mapping[str, str]) -> dict[str, str]:
    """The labels, of columns that the release has."""
    known = [column.source for column in columns_of(release)]
    profiles = getattr(release, "profiles", None)
    known += [name for name in (profiles.names if profiles is not None else ()) if name not in known]
    for name, text in labels.items():
        if name not in known:
            raise ParameterError(
                f"`labels` must name columns of the release, {', '.join(known)}, got {name!r}"
            )
        if not isinstance(text, str) or not text.strip():
            raise ParameterError(f"the label of column {name!r} must be a text, got {text!r}")
    return dict(labels)


def _summary(release: Release, protection: Protection) -> str:
    sparse = release.sparse
    counted = {
        "Columns": str(len(columns_of(release))) if sparse is None else f"{sparse.n_columns:,}",
        "Records": _records(release),
        "Released": release.created[:10],
    }
    return facts(protection.summary() | counted)


def _records(release: Release) -> str:
    """How many records the table has, if the release says so."""
    synopsis: GridSynopsis | None = getattr(release.model, "synopsis", None)
    profiles = getattr(release, "profiles", None)
    if synopsis is not None:
        about = f" (noise ± {synopsis.rows_std:,.0f})" if synopsis.rows_std else " (public)"
        return f"{synopsis.noisy_rows:,.0f}{about}"
    if profiles is not None:
        size = profiles.size(None)
        return f"{size.value:,.0f} ({size.low:,.0f} to {size.high:,.0f})"
    return "not released"
