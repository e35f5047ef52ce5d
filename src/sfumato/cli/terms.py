"""What ``sfumato profile`` says about the terms of a release."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.public.terms import Terms
    from sfumato.release import Release

_COLUMNS = (
    "cluster",
    "term",
    "share",
    "low",
    "high",
    "elsewhere",
    "elsewhere_low",
    "elsewhere_high",
    "score",
)


def tell_terms(
    release: Release, cluster: int | None, as_csv: Path | None, *, as_json: bool, quiet: bool
) -> None:
    """Print the typical words of the clusters of a release that has no profiles, or write them as CSV."""
    terms = release.terms
    assert terms is not None
    if cluster is not None and not 0 <= cluster < len(terms):
        raise ParameterError(f"`--cluster` must be from 0 to {len(terms) - 1}, got {cluster}")
    entries = told_terms(terms, cluster)
    if as_csv is not None:
        write_entries(entries, as_csv, _COLUMNS)
    if as_json:
        print(json.dumps({"terms": entries}, allow_nan=False))
    elif as_csv is None:
        chosen = range(len(terms)) if cluster is None else [cluster]
        print("\n".join(f"Cluster {number}. Typical words: {terms.sentence(number)}" for number in chosen))
    elif not quiet:
        print(f"terms: {as_csv}")
    if release.privacy.seeded and not quiet:
        print("the noise came from a seed: do not publish", file=sys.stderr)


def told_terms(terms: Terms, cluster: int | None) -> list[dict[str, Any]]:
    """Terms of a cluster, or of all, with their shares."""
    return [entry for entry in terms.rows() if cluster is None or entry["cluster"] == cluster]


def write_entries(entries: list[dict[str, Any]], path: Path, columns: Sequence[str] = ()) -> None:
    """Write entries to a CSV file; `columns` are needed if there may be none."""
    from sfumato.release import write_whole

    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(columns or entries[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(entries)
    write_whole(path, text.getvalue())
