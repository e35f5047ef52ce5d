"""BENCHMARKS.md: one page with the headline figures, computed from what the tables have kept."""

import re
from collections.abc import Callable
from statistics import fmean, median
from typing import Any

from tests.mutants.mutants import METERED

from benchmarks.centre_data import DATA_SETS, METHODS, markdown, short
from benchmarks.density_data import PAPER_SETS
from benchmarks.fastlloyd_suite import fast_lloyd_at
from benchmarks.google_page import google_at
from benchmarks.kept import kept
from benchmarks.kmeans_accuracy import PEER, in_clusters, spread
from benchmarks.mixed_tables import TARGET as MIXED_TARGET
from benchmarks.mixed_tables import synthetic
from benchmarks.paper_tables import PAPERS, SECTIONS, losses, totals
from benchmarks.papers import inertia_ratios
from benchmarks.real_tables import (
    FAST_LLOYD,
    TARGETS,
    best_of_ours,
    cells_of,
    verdict,
    worst_and_median,
)
from benchmarks.real_tables import PEER as TABLE_PEER
from benchmarks.source_target import OURS, share
from benchmarks.table_bounds import TITLES

SHORT = 7  # digits of a commit
INTRODUCTION = """# Benchmarks

`make bench` measures every figure on this page, keeps it in `benchmarks/results/*.json`, and writes this page and the
tables in `benchmarks/results/*.md`. Figures of papers are cited as such.

## What is compared, and how

- **Ours against the papers.** Each method runs on the data sets of the paper it comes from, with the same budget. Ratios are
  over non-private k-means (scikit-learn, 10 starts) on the same rows, so 1.00 means that privacy cost nothing. Below 1.00, k-means itself ended in a worse local optimum.
- **Ours against other libraries.** diffprivlib 0.6.6, OpenDP's samplers, scikit-learn (not private) and FasterPAM run on the
  same machine and rows.
- **Spread.** Values are means over seeds, ± one standard deviation. Seeds draw the noise and, for simulated data, the rows.
- **Times** are taken alone on the machine. All other tables are measured two at a time; a second that one of them states is as good as that.
- **Protocols of others.** Google's page, FastLloyd's suite and the DPM authors' program are followed as they are, with the method
  that `recommend` names: [google_page](benchmarks/results/google_page.md), [fastlloyd_suite](benchmarks/results/fastlloyd_suite.md),
  [dpm_protocol](benchmarks/results/dpm_protocol.md).
- **What this run lacks.** Some long tables have few seeds (each page says how many), so more of their cells count as equal. Not all tables were measured on one day.
- **Commits.** Each table carries the commit it was measured at. No code that it measures has changed since, so all describe the code that is here
  (`python -m benchmarks --stale`; `benchmarks/stale.py` says what counts: sentences and warnings do not).
- **Tuning.** Some rules were tuned on some of these data sets; [docs/notes](docs/notes) says which. The best of ours is
  chosen after the measurement. On the tables of R packages ([r_tables](benchmarks/results/r_tables.md)) nothing was tuned.
"""
REPRODUCE = """## How to reproduce

```console
make bench                          # everything: some hours on two cores
make bench QUICK=1                  # fewer seeds and rows, kept apart in benchmarks/results/quick
python -m benchmarks kmeans_time    # one table
python -m benchmarks --render       # only write this page and the tables again
python -m benchmarks --stale        # list the kept tables whose code has changed since
```

Some tables need public data sets in the folder that `SFUMATO_DATA` names; without them their rows are left out. `r_tables` fetches its
data from the package index. diffprivlib runs in an environment of its own, because it does not import with the present scikit-learn.
What peers and non-private baselines reach is kept in `.cache/benchmarks`, by rows, parameters and versions: a second run on the same machine computes only ours.
"""


# Found by comparing eight single runs of PrivateKMeans with the clusters of non-private k-means.
WHY_MISSED = {
    "adult_full": "Adult: the 244 people with the largest capital gain, a cluster of their own without privacy, stay with others in every "
    "run, and the 2,013 with a capital loss in half of the runs.",
    "bank_marketing": "Bank: in two of eight runs noise misplaces, or loses, the centre of the 1,515 clients of an earlier campaign.",
}


def page(titles: dict[str, str]) -> str:
    """The page: headline figures, where ours loses, and a list of the tables."""
    return "\n".join(
        [
            INTRODUCTION,
            "## Headline",
            "",
            *headline(),
            "",
            "## Centres at epsilon 1, delta 1/(n sqrt n)",
            "",
            "Inertia as a multiple of non-private k-means. DPM finds the number of clusters itself; in parentheses: "
            "how many, and its ratio to k-means with as many. The best of ours took no more clusters than there are classes.",
            "",
            *centres(),
            "",
            *real_tables(),
            "## Against every paper and peer",
            "",
            "Every cell that a paper prints, and every value of a peer in our tables. **+** ours is better, **=** equal within two standard errors "
            "(times: within 10 %), **−** ours is worse. The cells of the DPM paper count twice: by our protocol and by its authors'.",
            "",
            *cells(),
            "",
            "## Where we lose, and why",
            "",
            *lost(),
            "",
            REPRODUCE,
            *tables(titles),
        ]
    )


def measured(name: str) -> Any:
    found = kept(name)
    assert found is not None, f"run `python -m benchmarks {name}` first"
    return found["measured"]


def headline() -> list[str]:
    head = ["family", "what", "**ours**", "paper", "others", "table"]
    tables = [row for name, row in TABLE_ROWS.items() if kept(name)]
    lines = [
        grid(),
        *(row() for row in tables),
        density(),
        shapes(),
        mixtures(),
        source_target(),
        *speed(),
        noise(),
        audits(),
        exact_losses(),
        mistakes(),
    ]
    return markdown(head, [[*line[:-1], link(line[-1])] for line in lines])


def link(name: str) -> str:
    return f"[{name}](benchmarks/results/{name}.md)"


def grid() -> list[str]:
    rows = measured("grid_accuracy")["rows"]
    excess = {
        name: fmean(row[name] - 1 for row in rows) for name in ("sfumato rugnik", "paper", "diffprivlib")
    }
    wins = sum(row["sfumato rugnik"] <= row["paper"] for row in rows)
    return [
        "grids",
        f"mean excess cost over k-means, {len(rows)} settings, epsilon 0.1 to 1",
        f"**{excess['sfumato rugnik']:.3f}** (at or below the paper in {wins})",
        f"RUGNIK {excess['paper']:.3f}",
        f"diffprivlib {excess['diffprivlib']:.1f}",
        "grid_accuracy",
    ]


def tables_row() -> list[str]:
    found = measured("real_tables")
    cells = cells_of(found)
    at_one = [setting for setting in found["recommended"] if setting[2] == 1.0]
    ours = [cells[tuple(setting)] for setting in at_one]
    best = [cells[*setting[:3], best_of_ours(cells, *setting[:3])] for setting in at_one]
    peer = [cells[*setting[:3], TABLE_PEER] for setting in at_one]
    ratios = [fmean(row["ratio"][0] for row in rows) for rows in (ours, best, peer)]
    return [
        "real tables",
        f"inertia over k-means in units of public bounds, {len(at_one)} settings, epsilon 1",
        f"**{ratios[0]:.3f}** (best of ours {ratios[1]:.3f})",
        f"FastLloyd, Adult only: {FAST_LLOYD['adult_full', 1.0]:g}",
        f"diffprivlib {short(ratios[2])}",
        "real_tables",
    ]


def r_row() -> list[str]:
    rows = measured("r_tables")["rows"]
    at_one = [row for row in rows if row["epsilon"] == 1.0]
    return [
        "tables of R packages, nothing tuned on them",
        f"inertia over k-means, {len({row['data'] for row in rows})} tables, 4 and 8 clusters, epsilon 1, median (mean)",
        f"**{median(map(ratio_of, at_one)):.3f}** ({fmean(map(ratio_of, at_one)):.3f})",
        "",
        f"diffprivlib {short(median(map(peer_of, at_one)))} ({short(fmean(map(peer_of, at_one)))})",
        "r_tables",
    ]


def mixed_row() -> list[str]:
    rows = measured("mixed_tables")["rows"]
    mean = fmean(row["ratios"][row["recommended"]][0] for row in rows)
    others = [
        f"{name} {fmean(row['ratios'][name][0] for row in rows):.3f}"
        for name in measured("mixed_tables")["synthesisers"]
    ]
    return [
        "mixed tables",
        f"cost over non-private k-prototypes, {len(rows)} settings, epsilon 1",
        f"**{mean:.3f}**",
        "",
        f"synthetic table first: {', '.join(others)}",
        "mixed_tables",
    ]


def google_row() -> list[str]:
    rows = [row for row in measured("google_page")["rows"] if google_at(row)]
    means = [fmean(of(row) for row in rows) for of in (ratio_of, google_at, peer_of)]
    return [
        "Google's page",
        f"cost over k-means, {len(rows)} settings of 2 to 64 clusters, epsilon 1",
        f"**{means[0]:.3f}**",
        f"Google {short(means[1])}",
        f"diffprivlib {short(means[2])}",
        "google_page",
    ]


def fast_lloyd_row() -> list[str]:
    rows = [row for row in measured("fastlloyd_suite")["tables"] if fast_lloyd_at(row)]

    def means(of: Callable[[dict[str, Any]], Any]) -> str:
        at = [fmean(of(row) for row in rows if row["epsilon"] == epsilon) for epsilon in (0.1, 1.0)]
        return f"{short(at[0])}, {short(at[1])}"

    return [
        "FastLloyd's suite",
        f"cost over k-means, {len(rows) // 2} tables, epsilon 0.1 and 1",
        f"**{means(ratio_of)}**",
        f"FastLloyd {means(fast_lloyd_at)}",
        f"diffprivlib {means(peer_of)}",
        "fastlloyd_suite",
    ]


def hst_row() -> list[str]:
    rows = measured("hst_suite")["rows"]
    return [
        "Shuttle and Covertype",
        f"cost over k-means, {len(rows)} settings of 10 to 40 clusters, epsilon 1",
        f"**{fmean(map(ratio_of, rows)):.3f}**",
        "",
        f"diffprivlib {short(fmean(map(peer_of, rows)))}",
        "hst_suite",
    ]


def ratio_of(row: dict[str, Any]) -> float:
    return float(row["ratio"][0])


def peer_of(row: dict[str, Any]) -> float:
    return float(row[PEER][0])


TABLE_ROWS = {  # if measured: they need the data folder, or a download
    "google_page": google_row,
    "fastlloyd_suite": fast_lloyd_row,
    "hst_suite": hst_row,
    "real_tables": tables_row,
    "r_tables": r_row,
    "mixed_tables": mixed_row,
}


def density() -> list[str]:
    found = measured("density_accuracy")
    ari = {(row["data"], row["method"], row["epsilon"]): row["ari"][0] for row in found["rows"]}

    def mean(method: str, epsilon: float | None) -> float:
        return fmean(ari[name, method, epsilon] for name in PAPER_SETS)

    paper = fmean(found["paper"][name]["dp_dbscan"]["ari"] for name in PAPER_SETS)
    return [
        "shapes",
        f"adjusted Rand index, mean of {len(PAPER_SETS)} data sets, epsilon 1",
        f"**DensityTree {mean('DensityTree', 1.0):.2f}**, DPDBSCAN {mean('DPDBSCAN', 1.0):.2f}",
        f"DP-DBSCAN {paper:.2f}",
        f"DBSCAN, not private: {mean('non-private', None):.2f}",
        "density_accuracy",
    ]


def shapes() -> list[str]:
    rows = [row for row in measured("density_shapes")["rows"] if row["half"] == "reported"]
    usual = {row["table"]: row["rows"] for row in rows if row["epsilon"] is None}

    def mean(epsilon: float | None) -> float:
        return fmean(
            row["ari"][0] for row in rows if row["epsilon"] == epsilon and row["rows"] == usual[row["table"]]
        )

    return [
        "shapes of the half that is reported on",
        f"adjusted Rand index, mean of {len(usual)} recipes and tables",
        f"**DensityTree {mean(1.0):.2f}** (epsilon 1), {mean(4.0):.2f} (epsilon 4), {mean(1e4):.2f} (without noise)",
        "",
        f"HDBSCAN with default parameters, not private: {mean(None):.2f}",
        "density_shapes",
    ]


def mixtures() -> list[str]:
    rows = {(row["data"], row["setting"]): row for row in measured("paper_tables")["morse"]}

    def values(value_of: Callable[[dict[str, Any]], float]) -> str:
        pairs = {
            data: [value_of(rows[data, f"epsilon {epsilon}, 6 components"]) for epsilon in (1, 10)]
            for data in ("Pulsar", "Magic")
        }
        return "; ".join(f"{data} {low:.2f}, {high:.2f}" for data, (low, high) in pairs.items())

    return [
        "mixtures",
        "adjusted Rand index, 6 components to 2 clusters, epsilon 1 and 10",
        f"**{values(lambda row: row['ours'])}** (best base)",
        values(lambda row: row["printed"]["DPMoG-hard-Morse"]),
        "",
        "mixture_accuracy",
    ]


def source_target() -> list[str]:
    found = measured("source_target")
    costs = {(row["data"], row["method"], row["budget"], row["k"]): row["cost"] for row in found["rows"]}

    def shares(method: str) -> list[float]:
        return [share(costs, name, method, "epsilon 3") for name in found["sizes"]]

    return [
        "places",
        f"share of the gap closed, median of {len(found['sizes'])} pairs, epsilon 3",
        f"**{median(shares(OURS)):.0%}** (worst {min(shares(OURS)):.0%})",
        f"NNA {median(shares('NNA')):.0%}, NAS {median(shares('NAS')):.0%}",
        f"private k-means {median(shares('LocalSearchKMeans')):.0%}",
        "source_target",
    ]


def speed() -> list[list[str]]:
    times = {(row["data"], row["method"]): row for row in measured("kmeans_time")}
    dpm, base = times["synth_10d", "DPM"], times["synth_10d", "scikit-learn, 1 thread"]
    cabs = {row["method"]: row for row in measured("density_time")["cabs"]}
    tree, kmeans = cabs["DensityTree"], cabs["KMeans, all threads"]
    large = measured("grid_scale")
    return [
        [
            "speed",
            "fit of 100,000 x 10, 64 clusters",
            f"**DPM {dpm['fit_s']:.3g} s**",
            "",
            f"scikit-learn's k-means {base['fit_s']:.1f} s",
            "kmeans_time",
        ],
        [
            "speed",
            f"fit of {measured('density_time')['rows']:,} positions",
            f"**DensityTree {tree['fit_s']:.3g} s**",
            "",
            f"scikit-learn's k-means {kmeans['fit_s']:.1f} s",
            "density_time",
        ],
        [
            "speed",
            f"fit of {large['rows']:,} x 2",
            f"**GridKMeans {large['fit_s']:.2f} s**",
            "",
            f"one NumPy pass {large['numpy_pass_s']:.2f} s",
            "grid_scale",
        ],
    ]


def noise() -> list[str]:
    rows = measured("samplers")
    ours, theirs = ([row[key] for row in rows] for key in ("ours_us", "opendp_us"))
    return [
        "noise",
        "microseconds per exact draw",
        f"**{min(ours):.2f} to {max(ours):.2f}**",
        "",
        f"OpenDP {min(theirs):.1f} to {max(theirs):.1f}",
        "samplers",
    ]


def audits() -> list[str]:
    rows = measured("audit")["rows"]
    peer = next(row for row in rows if "diffprivlib" in row["name"])
    ours = [row for row in rows if row["name"].isidentifier()]
    broken = sum(row["broken"] for row in ours)
    return [
        "audits",
        f"promises contradicted by attacks, {len(ours)} audits",
        f"**{broken}**",
        "",
        f"diffprivlib promises 1, loses at least {peer['lower']:.2f}",
        "audit",
    ]


def exact_losses() -> list[str]:
    rows = measured("meter")["rows"]
    shares = [row["share"] for row in rows]
    return [
        "audits",
        f"part of the promise that is lost on the worst neighbours found, {len(rows)} meterings",
        f"**{min(shares):.2f} to {max(shares):.2f}**, {sum(row['broken'] for row in rows)} broken",
        "",
        "",
        "meter",
    ]


def mistakes() -> list[str]:
    rows = measured("kills")["rows"]
    metered = [row for row in rows if row["name"] in METERED]
    return [
        "audits",
        f"planted mistakes that the exact meter sees by itself, of {len(metered)} at which it can look",
        f"**{sum(bool(row['said']) for row in metered)}**",
        "",
        f"the other {len(rows) - len(metered)}: seen by their tests",
        "kills",
    ]


def centres() -> list[str]:
    found = measured("kmeans_accuracy")
    rows = {(row["data"], row["method"], row["variant"]): row for row in found["rows"]}
    lines = []
    for name in (name for name in found["shapes"] if DATA_SETS[name].has_classes):
        n, d = found["shapes"][name]
        refined = {m: rows[name, m, "refined"] for m in METHODS}
        fair = [m for m in METHODS if refined[m]["clusters"][0] <= DATA_SETS[name].n_clusters]
        best = min(fair, key=lambda m: refined[m]["ratio"][0])
        printed = inertia_ratios(found["paper"], name)
        others = [f"{short(printed[m])}" for m in ("dpm", "lsh_splits", "em_mc", "dp_lloyd")]
        lines.append(
            [
                f"{DATA_SETS[name].title}, {n:,} x {d}",
                f"**{spread(refined[best]['ratio'])}** ({best})",
                f"{spread(refined['DPM']['ratio'])} ({in_clusters(refined['DPM'])})",
                *others,
                spread(rows[name, PEER, ""]["ratio"]),
            ]
        )
    papers = [f"paper: {name}" for name in ("DPM", "LSH-Splits", "EM-MC", "DP-Lloyd")]
    return markdown(["data set", "**best of ours**", "our DPM", *papers, "diffprivlib"], lines)


def real_tables() -> list[str]:
    """A section on real tables, as far as they were measured: they need the data folder."""
    if not kept("real_tables"):
        return []
    found, mixed = measured("real_tables"), kept("mixed_tables")
    cells = cells_of(found)
    names = {(name, k, epsilon): method for name, k, epsilon, method in found["recommended"]}

    def numeric(name: str, k: int, epsilon: float) -> str:
        row = cells[name, k, epsilon, names[name, k, epsilon]]
        worst = worst_and_median(row)[0]
        return f"**{spread(row['ratio'])}** ({worst:.2g} %), {verdict(row, epsilon)}"

    head = [f"epsilon {epsilon:g}: ≤ {ratio:g} ({error:g} %)" for epsilon, (ratio, error) in TARGETS.items()]
    lines = [
        [
            f"{TITLES[name]}, {k} clusters",
            *(numeric(name, k, epsilon) for epsilon in TARGETS),
            spread(cells[name, k, 1.0, TABLE_PEER]["ratio"]),
        ]
        for name, k in dict.fromkeys((name, k) for name, k, *_ in names)
    ]
    return [
        "## Real tables, public bounds, delta 1e-6",
        "",
        "The method that `recommend` names, on tables as they are: inertia in units of the bounds over non-private k-means; in "
        "parentheses, the error of a centre in per cent of the width of the worst column.",
        "",
        *markdown(["table", *head, "diffprivlib, epsilon 1"], lines),
        "",
        *(mixed_tables(mixed["measured"]) if mixed else []),
    ]


def mixed_tables(found: dict[str, Any]) -> list[str]:
    lines = [
        [
            f"{TITLES[row['data']]}, {row['k']} clusters",
            f"**{spread(row['ratios'][row['recommended']])}**",
            *(synthetic(found, row, name) for name in found["synthesisers"]),
        ]
        for row in found["rows"]
    ]
    return [
        "Mixed columns at epsilon 1: cost of k-prototypes over the best without privacy (kmodes), and the same by k-prototypes on a "
        "synthetic table at the same budget.",
        "",
        *markdown(["table", f"ours: ≤ {MIXED_TARGET:g}", *found["synthesisers"]], lines),
        "",
    ]


def cells() -> list[str]:
    found = measured("paper_tables")
    lines = [totals(section, found[section.key])[:6] for section in SECTIONS]
    total = ["all", *(str(sum(int(line[i]) for line in lines)) for i in range(1, 5)), ""]
    return markdown(
        ["paper or peer", "cells compared", "+", "=", "−", "worst loss, and why"], [*lines, total]
    )


def lost() -> list[str]:
    found = measured("paper_tables")
    lines = []
    for section in PAPERS:
        paper = section.title.split(",")[0]
        lines += [
            re.sub(
                r"^- Lost: (.+?), (\d+), the worst at",
                rf"- **{paper}, \1** (cells lost: \2). The worst at",
                line,
            )
            for line in losses(section, found[section.key])
            if line.startswith("- Lost: ")
        ]
    return [*lines, *lost_elsewhere()]


def lost_elsewhere() -> list[str]:
    """Losses that no paper's table shows."""
    rows = {(row["data"], row["method"], row["variant"]): row for row in measured("kmeans_accuracy")["rows"]}
    pure = {m: rows["synth_100d", m, "pure"]["ratio"][0] for m in METHODS}
    best = min(pure, key=lambda m: pure[m])
    r15 = next(
        row
        for row in measured("density_accuracy")["rows"]
        if (row["data"], row["method"], row["epsilon"]) == ("r15", "DensityTree", 1.0)
    )
    return [
        *lost_tables(),
        *lost_mixed(),
        f"- **Pure epsilon in 100 columns.** At epsilon 1 and delta 0 the best of ours has {short(pure[best])} times the inertia of "
        f"k-means ({best}), DPM {short(pure['DPM'])}: the noise of a sum grows with the root of the number of columns. Allow a delta.",
        f"- **Few rows.** Of the 15 clusters of R15, with 40 rows each, DensityTree finds {r15['clusters'][0]:.0f} at epsilon 1: the "
        "noise hides the others.",
        lost_on_spark(),
    ]


def lost_on_spark() -> str:
    """Time of the folds of a fit on one worker over that of the engine of files, by both ways of reading."""
    runs, step = measured("spark_scale")["runs"], "folds of a GridKMeans fit"
    through_java = runs["spark 1"][step] / runs["parquet 1"][step]
    runs = measured("spark_files")["runs"]
    by_workers = runs["spark 1"][step] / runs["files 1"][step]
    return (
        f"- **Spark.** The folds of a fit take {short(by_workers)} times as long as without Spark where workers read the files "
        f"themselves, and {through_java:.0f} times as long for other data frames: most of it is passing rows from the JVM to Python."
    )


def lost_tables() -> list[str]:
    """Real tables on which the recommended method misses its target, and how the best of ours does."""
    if not kept("real_tables"):
        return []
    found = measured("real_tables")
    cells, lines, missed = cells_of(found), [], []
    for name, k, epsilon, method in found["recommended"]:
        row, best = cells[name, k, epsilon, method], best_of_ours(cells, name, k, epsilon)
        if verdict(row, epsilon) == "missed":
            ratio = cells[name, k, epsilon, best]["ratio"][0]
            missed.append(name)
            lines.append(
                f"{TITLES[name]}, {k} clusters, epsilon {epsilon:g}: {method} {short(row['ratio'][0])}"
                + (f", {best} {short(ratio)}" if best != method else "")
            )
    if not lines:
        return []
    reasons = " ".join(WHY_MISSED[name] for name in dict.fromkeys(missed) if name in WHY_MISSED)
    return [
        f"- **Real tables**, targets missed by the recommended method: {'; '.join(lines)}. {reasons}".rstrip()
    ]


def lost_mixed() -> list[str]:
    """Mixed tables on which a synthetic table at the same budget gives better prototypes."""
    if not kept("mixed_tables"):
        return []
    found, lines = measured("mixed_tables"), []
    for row in found["rows"]:
        ratios, ours = row["ratios"], row["ratios"][row["recommended"]][0]
        better = [
            f"{name} {short(ratios[name][0])}" for name in found["synthesisers"] if ratios[name][0] < ours
        ]
        if better:
            setting = f"{TITLES[row['data']]}, {row['k']} clusters"
            lines.append(f"{setting}: {row['recommended']} {short(ours)}, {', '.join(better)}")
    if not lines:
        return []
    return [
        f"- **Mixed tables**, where a synthetic table at the same budget gives a lower cost of k-prototypes: {'; '.join(lines)}. Ours "
        "minimise another cost: the squared distance to distributions over levels, not the number of levels that differ."
    ]


def tables(titles: dict[str, str]) -> list[str]:
    machines = {name: found["machine"] for name in titles if (found := kept(name))}
    dates = sorted({machine["date"] for machine in machines.values()})
    last = list(machines.values())[-1]
    lines = [
        [link(name), title, machines[name]["date"], machines[name].get("commit", "")[:SHORT]]
        for name, title in titles.items()
    ]
    return [
        "## All tables",
        "",
        f"Measured from {dates[0]} to {dates[-1]} on {last['cores']} virtual processors ({last['processor']}), Python "
        f"{last['python']}. `python -m benchmarks --stale` lists the tables whose code has changed since their commit. `constants` is a "
        "study of what choices are worth: it is run when they change, not with the others.",
        "",
        *markdown(["table", "what it shows", "date", "commit"], lines),
        "",
    ]
