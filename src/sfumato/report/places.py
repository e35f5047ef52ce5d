"""The places that were chosen beside a private source."""

from __future__ import annotations

from functools import partial

from sfumato import plot
from sfumato.public.models import SourceTargetModel
from sfumato.release import Release
from sfumato.report.findings import coordinate
from sfumato.report.markup import figure, paragraph, table

_LONGEST_TABLE = 100

_MEANING = (
    "Some places are confidential: the source. Among other places, which are public, the targets, new ones "
    "were chosen to serve all targets together with the source. The source itself is not shown. A sanitised "
    "source stands for it: points computed from noisy numbers, some of which may stand for nobody."
)


def places(release: Release, model: SourceTargetModel) -> str:
    """Return the section on the places that were chosen, as HTML."""
    parts = [paragraph(_MEANING), paragraph(_numbers(model)), _picture(release, model)]
    return "".join([*parts, _table(release, model)])


def _numbers(model: SourceTargetModel) -> str:
    text = (
        f"{len(model.cluster_centers):,} targets were chosen, beside {len(model.sanitized_source):,} points "
        "that stand for the source. The mean distance of a target from the nearest of both is "
        f"{model.cost:.4g}, by published numbers."
    )
    if model.diff_bound is not None:
        text += f" With the source itself it would differ by no more than {model.diff_bound:.4g}."
    return text


def _picture(release: Release, model: SourceTargetModel) -> str:
    if model.n_features != 2:
        return ""
    names = ", ".join(plot.column_names(release))
    alt = (
        f"Picture: a map of two columns ({names}) with {len(model.cluster_centers)} chosen targets and "
        f"{len(model.sanitized_source)} points that stand for the source. The table below gives the former."
    )
    caption = "Chosen targets with their numbers, and the sanitised source, within the public bounds."
    return figure(partial(plot.places, release), alt, caption, salt="places", size=(5.2, 4.7))


def _table(release: Release, model: SourceTargetModel) -> str:
    low, high = release.domain.low, release.domain.high
    chosen = zip(model.center_indices, model.cluster_centers, strict=True)
    rows = [
        [str(i), str(index), *(coordinate(*part) for part in zip(place, low, high, strict=True))]
        for i, (index, place) in enumerate(chosen)
    ]
    rest = len(rows) - _LONGEST_TABLE
    if rest > 0:
        rows = [*rows[:_LONGEST_TABLE], [f"{rest} more", *[""] * (1 + model.n_features)]]
    head = ["number", "row of the target", *plot.column_names(release)]
    return table("The chosen targets, in the order of the file of targets", head, rows)
