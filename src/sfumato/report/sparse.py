"""Clusters of sparse rows: their sizes, and the columns that set them apart."""

from __future__ import annotations

import numpy as np

from sfumato.public.intervals import half_widths
from sfumato.public.models.column_terms import ColumnTerm, ColumnTerms
from sfumato.release import Release
from sfumato.report.findings import size_picture
from sfumato.report.markup import paragraph, table

MOST_TERMS = 10  # of a cluster
_MEANING = (
    "A cluster is a group of records that use similar columns. Below, each cluster is told by the columns "
    "that are furthest above their mean in all records. Columns that do not stand out from the noise are not "
    "listed."
)
_ROWS = (
    "A record has few active columns out of {n_columns:,}. At most {max_active:,} of them count: the largest "
    "values, and among equal ones those that come first in a public order. {norm} A public random map turned "
    "the columns into {width:,} coordinates, in which records were clustered."
)


def sparse_findings(release: Release) -> str:
    """Return the section on what was found in sparse rows, as HTML."""
    sizes = getattr(release.model, "estimated_sizes", None)
    parts = [paragraph(_MEANING), "" if sizes is None else size_picture(sizes)]
    if (terms := release.column_terms) is not None:
        parts += [_term_table(terms, cluster) for cluster in range(terms.n_clusters)]
    return "".join(parts)


def row_rules(release: Release) -> str:
    """Return how sparse rows were read, as HTML."""
    sparse = release.sparse
    assert sparse is not None
    norm = "Records are scaled to length 1." if sparse.norm == "unit" else _shortened(sparse.radius)
    return paragraph(
        _ROWS.format(
            n_columns=sparse.n_columns,
            max_active=sparse.max_active,
            norm=norm,
            width=release.domain.n_features,
        )
    )


def _shortened(radius: float) -> str:
    return f"Records longer than {radius:g} are shortened to that length."


def _term_table(terms: ColumnTerms, cluster: int) -> str:
    found = terms.top(cluster, MOST_TERMS)
    caption = f"Cluster {cluster}: columns that set it apart, with 95% intervals"
    if not found:
        return paragraph(f"Cluster {cluster}: no column stands out from the noise.", "note")
    return table(caption, ["column", "mean here", "mean in all records"], [_term_row(term) for term in found])


def _term_row(term: ColumnTerm) -> list[str]:
    half = float(half_widths(np.array([term.std]))[0])
    return [term.name, f"{term.mean:.4f} ± {half:.4f}", f"{term.others:.4f}"]
