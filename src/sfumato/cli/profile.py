"""``sfumato profile``: what is in each cluster of a release, in words and as a table."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.files import check_new
from sfumato.cli.predict import load
from sfumato.cli.report import read_labels
from sfumato.cli.terms import tell_terms, told_terms, write_entries
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.public.profiles import Profiles
    from sfumato.public.terms import Terms
    from sfumato.release import Release

TABLE = "table"  # in place of the number of a cluster
_HEAD = ("column", "statistic", "value", "95 % interval", "whole table")

Entry = dict[str, Any]  # of `Profiles.rows`


def profile(
    release: options.ReleaseFile,
    cluster: Annotated[
        int | None, typer.Option(help="Only this cluster, as `predict` numbers them, e.g. --cluster 2.")
    ] = None,
    noun: Annotated[str, typer.Option(help="What a row is, in the plural, e.g. --noun stays.")] = "rows",
    labels: options.Labels = None,
    as_csv: Annotated[
        Path | None, typer.Option("--csv", help="Write all numbers to a CSV file, e.g. --csv profiles.csv.")
    ] = None,
    as_json: options.Json = False,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what is in each cluster: a sentence, and a table with 95 % intervals. Spends nothing."""
    check_new(as_csv, force=force)
    loaded, texts = load(release), read_labels(labels)
    found = loaded.profiles
    if found is None:
        if loaded.terms is None:
            raise ParameterError(
                f"{release} must have profiles, got none. Fit with bounds that name columns, or "
                "--profiles 0.2"
            )
        tell_terms(loaded, cluster, as_csv, as_json=as_json, quiet=quiet)
        return
    if cluster is not None and not 0 <= cluster < found.n_clusters:
        raise ParameterError(f"`--cluster` must be from 0 to {found.n_clusters - 1}, got {cluster}")
    chosen = range(found.n_clusters) if cluster is None else [cluster]
    sentences = {number: found.sentence(number, noun, texts) for number in chosen}
    entries = [entry for entry in found.rows() if cluster is None or entry["cluster"] == cluster]
    if as_csv is not None:
        _write(entries, as_csv)
    if as_json:
        terms = {} if loaded.terms is None else {"terms": told_terms(loaded.terms, cluster)}
        print(json.dumps(_as_dict(found, sentences, entries) | terms, allow_nan=False))
    elif as_csv is None:
        told = _without_missing(loaded, found)
        pages = [_page(number, sentences[number], told, found, loaded.terms) for number in chosen]
        print("\n\n".join(pages))
    elif not quiet:
        print(f"profiles: {as_csv}")
    if loaded.privacy.seeded and not quiet:
        print("the noise came from a seed: do not publish", file=sys.stderr)


def _without_missing(release: Release, found: Profiles) -> list[Entry]:
    """Numbers of all clusters and columns, without the shares of missing values that can only be noise.

    A row that misses a value which it would be clustered by is left out, or has a public one in its place.
    """
    read = release.reading
    whole = set(found.names if read is None else [each.column for each in read.coordinates])
    missing = {(name, found.labels_of(name)[-1]) for name in whole.intersection(found.names)}
    return [entry for entry in found.rows() if _key(entry) not in missing]


def _as_dict(found: Profiles, sentences: dict[int, str], entries: list[Entry]) -> dict[str, Any]:
    clusters = [
        {"cluster": number, "sentence": sentence, "distinct": _distinct(found, number)}
        for number, sentence in sentences.items()
    ]
    return {"clusters": clusters, "numbers": entries}


def _distinct(found: Profiles, cluster: int) -> list[dict[str, Any]]:
    """Columns that set a cluster apart, the farthest first."""
    return [one._asdict() for one in found.distinct(cluster)]


def _key(entry: Entry) -> tuple[str, Any]:
    return entry["column"], entry["statistic"]


def _page(
    cluster: int,
    sentence: str,
    entries: list[Entry],
    found: Profiles,
    terms: Terms | None,
) -> str:
    """Sentence, typical words and table of a cluster."""
    own = [entry for entry in entries if entry["cluster"] == cluster]
    whole = {_key(entry): entry for entry in entries if entry["cluster"] is None}
    lines = [_HEAD, *(_line(entry, whole[_key(entry)], found) for entry in own)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    words = [] if terms is None else [f"Typical words: {terms.sentence(cluster)}"]
    return "\n".join([f"Cluster {cluster}. {sentence}", *words, "", *table])


def _line(entry: Entry, whole: Entry, found: Profiles) -> tuple[str, ...]:
    """A number with its interval: shares in per cent, points of a cycle in words."""
    low, high = (_shown(entry, entry[key], found) for key in ("low", "high"))
    told = _told(entry, found), f"{low} to {high}", _told(whole, found)
    return entry["column"], str(entry["statistic"]), *told


def _told(entry: Entry, found: Profiles) -> str:
    """A value, or what is left of it if it does not stand out from the noise."""
    if entry["readable"]:
        return _shown(entry, entry["value"], found)
    if _is_share(entry):
        from sfumato.public.profiles.wording import percent

        return percent(entry["value"], entry["low"], entry["high"])
    return f"under {_shown(entry, entry['high'], found)}" if entry["kind"] == "size" else "hidden by noise"


def _is_share(entry: Entry) -> bool:
    return bool(entry["kind"] == "level" or entry["statistic"] == "missing")


def _shown(entry: Entry, value: Any, found: Profiles) -> str:
    if isinstance(value, str):
        return value
    if _is_share(entry):
        return f"{100 * value:.1f} %"
    if entry["kind"] == "size":
        return f"{value:,.0f}"
    from sfumato.public.profiles.wording import on_cycle, quantity

    column = found.column(entry["column"])
    width = entry["high"] - entry["low"]
    if entry["kind"] == "cycle":
        return on_cycle(column, value, width / 20)
    is_whole = all(entry[key] == round(entry[key]) for key in ("value", "low", "high"))
    text = quantity(replace(column, unit=""), value, width / 10, is_whole=is_whole)
    return text if abs(value) >= 10_000 else text.replace(",", "")  # which would spoil years


def _write(entries: list[Entry], path: Path) -> None:
    named = [
        entry | {"cluster": TABLE if entry["cluster"] is None else entry["cluster"]} for entry in entries
    ]
    write_entries(named, path)
