"""Places chosen among public targets to serve together with a private source."""

from __future__ import annotations

from functools import partial

from sfumato import plot
from sfumato.plot.columns import columns_of, is_map
from sfumato.public.models import SourceTargetModel
from sfumato.release import Release
from sfumato.report.findings import LONGEST_TABLE, findings
from sfumato.report.markup import figure, paragraph, table

_MEANING = (
    "Some places are confidential. They are called the source. Other places are public. They are called the "
    "targets. Some targets were chosen so that they and the source together serve all targets. This page "
    "does not show the source. It shows a stand-in, the sanitised source: points computed from noisy "
    "numbers. Some of these points may stand for nobody."
)


@findings.register
def _(model: SourceTargetModel, release: Release) -> str:
    parts = [paragraph(_MEANING), paragraph(_numbers(model)), _picture(release, model)]
    return "".join([*parts, _table(release, model)])


def _numbers(model: SourceTargetModel) -> str:
    text = (
        f"{len(model.cluster_centers):,} targets were chosen, and {len(model.sanitized_source):,} points "
        "stand in for the source. The mean distance from a target to the nearest of all these is "
        f"{model.cost:.4g}, computed from published numbers."
    )
    if model.diff_bound is not None:
        text += f" With the real source, it would differ by at most {model.diff_bound:.4g}."
    return text


def _picture(release: Release, model: SourceTargetModel) -> str:
    if not is_map(release):
        return ""
    names = ", ".join(plot.column_names(release))
    alt = (
        f"Picture: a map of two columns ({names}) with {len(model.cluster_centers)} chosen targets and "
        f"{len(model.sanitized_source)} points that stand in for the source. The table below lists the "
        "chosen targets."
    )
    caption = "Chosen targets with their numbers, and the stand-in for the source, within the public bounds."
    return figure(partial(plot.places, release), alt, caption, salt="places", size=(5.2, 4.7))


def _table(release: Release, model: SourceTargetModel) -> str:
    found = columns_of(release)
    chosen = zip(model.center_indices, model.cluster_centers, strict=True)
    rows = [
        [str(i), str(index), *(column.in_words(place, None) for column in found)]
        for i, (index, place) in enumerate(chosen)
    ]
    rest = len(rows) - LONGEST_TABLE
    if rest > 0:
        rows = [*rows[:LONGEST_TABLE], [f"{rest} more", *[""] * (1 + len(found))]]
    head = ["number", "row in the list of targets", *(column.name for column in found)]
    texts = [column.name for column in found if column.kind == "category"]
    return table("The chosen targets, and where each stands in the list of targets", head, rows, texts=texts)
