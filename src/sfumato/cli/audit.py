"""``sfumato audit``: attack a method on made-up neighbouring tables."""

from __future__ import annotations

import dataclasses
import html
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import methods, options
from sfumato.cli.failures import say
from sfumato.cli.files import check_new
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.audit import AuditResult, MeterResult, Pair
    from sfumato.cluster import PrivateClusterer

    Result = AuditResult | MeterResult

BROKEN = 7  # exit code; those of failures are in `failures.CODES`
ALL = "all"
FORMATS = (".html", ".json")
_HEAD, _METER_HEAD = ("pair", "at least", "promised", "verdict"), ("pair", "lost", "promised", "verdict")
_STYLE = (
    "body{font:16px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "td,th{padding:.3em 1em .3em 0;text-align:left}"
)

WhiteBox = Annotated[
    bool,
    typer.Option(
        "--white-box",
        help="Replay all answers on the neighbour and add up the exact losses instead: --white-box.",
    ),
]
Paths = Annotated[
    int,
    typer.Option(
        min=1, help="With --white-box: seeds on each pair, each in both directions, e.g. --paths 5."
    ),
]
Runs = Annotated[
    int, typer.Option(min=40, help="Runs on each of the two neighbouring tables, e.g. --runs 10000.")
]
PairName = Annotated[
    list[str] | None,
    typer.Option("--pair", help="Neighbours to try, e.g. --pair outlier --pair person. Default: all."),
]
Confidence = Annotated[
    float, typer.Option(help="Confidence that all bounds hold together, e.g. --confidence 0.999.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all runs, e.g. --seed 7.")]
Unseeded = Annotated[
    bool,
    typer.Option(
        "--unseeded", help="Take the noise from the operating system instead of a seed: --unseeded."
    ),
]
Jobs = Annotated[int, typer.Option(min=1, help="Number of processes, e.g. --jobs 2.")]
Out = Annotated[Path | None, typer.Option(help="File to write, .html or .json, e.g. --out audit.html.")]


def audit(
    method: options.Method,
    clusters: options.Clusters = None,
    settings: options.Settings = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    white_box: WhiteBox = False,
    paths: Paths = 2,
    runs: Runs = 2000,
    pairs: PairName = None,
    confidence: Confidence = 0.99,
    seed: Seed = 0,
    unseeded: Unseeded = False,
    jobs: Jobs = 1,
    out: Out = None,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Attack a method on made-up neighbouring tables. Reads no data. Exit code 7: a promise is broken."""
    if out is not None and out.suffix not in FORMATS:
        raise ParameterError(f"`--out` must end in {' or '.join(FORMATS)}, got {str(out)!r}")
    if not 0 < confidence < 1:
        raise ParameterError(f"`--confidence` must be between 0 and 1, got {confidence}. Try 0.99")
    check_new(out, force=force)
    chosen = _chosen(pairs)
    budget = options.as_parameters(epsilon, delta, rho)
    estimator = methods.make(method, clusters, methods.parse_settings(settings or ()), budget)
    if white_box:
        found: Sequence[Result] = _metered(estimator, chosen, paths, is_whole=pairs is None, quiet=quiet)
        said = _as_dict(method, {"paths": paths}, found)
    else:
        found = _attacked(estimator, chosen, confidence, runs, None if unseeded else seed, jobs, quiet=quiet)
        said = _as_dict(method, {"confidence": confidence, "runs": runs, "seeded": not unseeded}, found)
    if out is not None:
        _write(out, said, found)
    if as_json:
        print(json.dumps(said, allow_nan=False))
    elif not quiet:
        print(_in_words(said, found))
    if said["broken"]:
        raise typer.Exit(BROKEN)


def _attacked(
    estimator: PrivateClusterer,
    pairs: Sequence[Pair],
    confidence: float,
    runs: int,
    seed: int | None,
    jobs: int,
    *,
    quiet: bool,
) -> list[AuditResult]:
    from sfumato.audit import audit_estimator

    results: list[AuditResult] = []
    with _bar(len(pairs), quiet=quiet) as progress:
        for found in audit_estimator(
            estimator,
            pairs,
            confidence=confidence,
            n_runs=runs,
            random_state=seed,
            n_jobs=jobs,
            progress=lambda share: progress(len(results), share),
        ):
            results.append(found)
    return results


def _metered(
    estimator: PrivateClusterer, pairs: Sequence[Pair], paths: int, *, is_whole: bool, quiet: bool
) -> list[MeterResult]:
    """Meter the pairs and, unless some were chosen, the worst neighbours that a search finds."""
    from sfumato.audit import meter_estimator, worst_neighbour

    results: list[MeterResult] = []
    with _bar(len(pairs) + 2 * is_whole, quiet=quiet) as progress:
        for found in meter_estimator(estimator, pairs, n_paths=paths):
            progress(len(results), 1)
            results.append(found)
        for by_person in (False, True) if is_whole else ():
            found = worst_neighbour(estimator, by_person=by_person, n_paths=paths)
            progress(len(results), 1)
            name = f"worst {'person' if by_person else 'row'} found"
            results.append(dataclasses.replace(found, pair=name))
    return results


def _chosen(names: Sequence[str] | None) -> list[Pair]:
    from sfumato.audit import PAIRS

    wanted = list(dict.fromkeys(names or [ALL]))
    for name in wanted:
        if name not in (ALL, *PAIRS):
            raise ParameterError(f"`--pair` must be {ALL} or one of {', '.join(PAIRS)}, got {name!r}")
    return [pair for name, pair in PAIRS.items() if ALL in wanted or name in wanted]


@contextmanager
def _bar(n_pairs: int, *, quiet: bool) -> Iterator[Callable[[int, float], None]]:
    """Function to call with the number of finished pairs and the finished share of the next one."""
    if quiet or not sys.stderr.isatty():
        yield _lines(n_pairs, quiet=quiet)
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=n_pairs)
        yield lambda done, share: bar.update(task, completed=done + share)


def _lines(n_pairs: int, *, quiet: bool) -> Callable[[int, float], None]:
    def write(done: int, share: float) -> None:
        if share == 1 and not quiet:
            say(f"{done + 1} of {n_pairs} pairs")

    return write


def _as_dict(method: str, settings: dict[str, Any], results: Sequence[Result]) -> dict[str, Any]:
    found = {"broken": any(one.broken for one in results), "pairs": [one.to_dict() for one in results]}
    return {"method": method} | settings | found


def _is_metered(said: dict[str, Any]) -> bool:
    return "paths" in said


def _table(said: dict[str, Any], results: Sequence[Result]) -> list[tuple[str, ...]]:
    head, amount = (_METER_HEAD, "lost") if _is_metered(said) else (_HEAD, "lower")
    return [head, *((r.pair, f"{getattr(r, amount):.3f}", str(r.budget), r.verdict) for r in results)]


def _in_words(said: dict[str, Any], results: Sequence[Result]) -> str:
    lines = _table(said, results)
    widths = [max(len(line[j]) for line in lines) for j in range(len(_HEAD))]
    table = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*table, "", _conclusion(said, results)])


def _conclusion(said: dict[str, Any], results: Sequence[Any]) -> str:
    broken = [found for found in results if found.broken]
    method = said["method"]
    if _is_metered(said):
        if broken:
            return f"{method} breaks its promise: {'; '.join(dict.fromkeys(r.verdict for r in broken))}."
        most = max(found.share for found in results)
        tried = f"{said['paths']} seeds in both directions on each pair"
        return (
            f"{method} lost at most {most:.1%} of its promise on these pairs ({tried}). Nothing else that "
            "can be seen told them apart."
        )
    sure = f"{said['runs']} runs on each table, confidence {said['confidence']:g} for all pairs together"
    n_failed = sum(found.n_failed for found in results)
    failures = f" {n_failed} runs raised an error, which counts as an outcome." if n_failed else ""
    if not broken:
        return f"{method}: no contradiction to the promise found, which proves nothing ({sure}).{failures}"
    worst = max(broken, key=lambda found: found.lower / found.promise)
    return (
        f"{method} breaks its promise ({sure}). The event '{worst.event}' happened in {worst.n_likely} of "
        f"{worst.n_runs} runs {worst.likelier} the unit of '{worst.pair}', and in {worst.n_unlikely} on its "
        f"neighbour.{failures}"
    )


def _write(path: Path, said: dict[str, Any], results: Sequence[Result]) -> None:
    from sfumato.release import write_whole

    is_json = path.suffix == ".json"
    text = json.dumps(said, indent=1, allow_nan=False) if is_json else _page(said, results)
    write_whole(path, text + "\n")


def _page(said: dict[str, Any], results: Sequence[Result]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    title = html.escape(f"Audit of {said['method']}")
    conclusion = html.escape(_conclusion(said, results))
    head, *cells = _table(said, results)
    table = row(head, "th") + "".join(row(line, "td") for line in cells)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1><p>{conclusion}</p>"
        f"<table>{table}</table></body></html>"
    )
