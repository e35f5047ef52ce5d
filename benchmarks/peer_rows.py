"""Rows of comparison with what is no paper's table: pages and programs of others, as the other benchmarks have kept them."""

from typing import Any

from benchmarks.cells import TIMES, Row, Value, row, standard
from benchmarks.centre_data import DATA_SETS, METHODS
from benchmarks.fastlloyd_suite import fast_lloyd_at
from benchmarks.google_page import google_at
from benchmarks.kmeans_accuracy import PEER
from benchmarks.table_bounds import TITLES
from benchmarks.wide_page import SPARSE_PEERS

READING = 0.02  # relative: how far a value read off a plot may be off
SAME_COST = 0.005  # relative: costs of medoids that do not differ
WITH_DIFFPRIVLIB = (
    "grid_accuracy",
    "kmeans_accuracy",
    "dpm_protocol",
    "real_tables",
    "r_tables",
    "google_page",
    "fastlloyd_suite",
    "hst_suite",
)
Measured = dict[str, Any]


def google_rows(measured: Measured) -> list[Row]:
    return [
        row(r["data"], f"k {r['k']}", {"Google": Value(value, rounding=READING * value)}, recommended(r))
        for r in measured.get("rows", [])
        if (value := google_at(r))
    ]


def fast_lloyd_rows(measured: Measured) -> list[Row]:
    return [
        row(
            r["data"],
            f"epsilon {r['epsilon']:g}",
            {"FastLloyd": Value(value, rounding=0.005)},
            recommended(r),
        )
        for r in measured.get("tables", [])
        if (value := fast_lloyd_at(r))
    ]


def recommended(r: Row) -> dict[str, Value]:
    return {r["method"]: standard(r["ratio"], r["seeds"])}


def diffprivlib_rows(found: dict[str, Measured]) -> list[Row]:
    rows = [
        row(
            "grid_accuracy",
            f"{r['d']} columns, {r['k']} clusters, {r['n']:,} rows, epsilon {r['epsilon']:g}",
            {PEER: Value(r[PEER])},
            {"GridKMeans": Value(r["sfumato rugnik"], r["sfumato rugnik se"])},
        )
        for r in found["grid_accuracy"].get("rows", [])
    ]
    for table in ("kmeans_accuracy", "dpm_protocol"):
        rows += centre_rows(table, found[table].get("rows", []))
    rows += real_rows(found["real_tables"])
    neutral = [
        (table, r)
        for table, part in (
            ("google_page", "rows"),
            ("fastlloyd_suite", "tables"),
            ("fastlloyd_suite", "grid"),
            ("hst_suite", "rows"),
            ("r_tables", "rows"),
        )
        for r in found[table].get(part, [])
    ]
    return rows + [
        row(
            table,
            f"{r['data']}, {r['k']} clusters, epsilon {r['epsilon']:g}",
            {PEER: standard(r[PEER], r["peer_seeds"])},
            recommended(r),
        )
        for table, r in neutral
        if PEER in r
    ]


def centre_rows(table: str, rows: list[Row]) -> list[Row]:
    cells = {(r["data"], r["method"]): r for r in rows if r["variant"] in ("", "refined")}
    ours = (*METHODS, "PrivateKMeans", "GridKMeans", "our DPM")
    found = []
    for name, method in cells:
        if method == PEER:
            most, peer = DATA_SETS[name].n_clusters, cells[name, PEER]
            fair = [m for m in ours if (name, m) in cells and cells[name, m]["clusters"][0] <= most]
            values = {m: standard(cells[name, m]["ratio"], cells[name, m]["seeds"]) for m in fair}
            found.append(
                row(table, DATA_SETS[name].title, {PEER: standard(peer["ratio"], peer["seeds"])}, values)
            )
    return found


def real_rows(measured: Measured) -> list[Row]:
    cells = {(r["data"], r["k"], r["epsilon"], r["method"]): r for r in measured.get("rows", [])}
    found = []
    for name, k, epsilon, method in measured.get("recommended", []):
        ours, peer = cells[name, k, epsilon, method], cells[name, k, epsilon, PEER]
        setting = f"{TITLES[name]}, {k} clusters, epsilon {epsilon:g}"
        printed = {PEER: standard(peer["ratio"], peer["seeds"])}
        found.append(row("real_tables", setting, printed, {method: standard(ours["ratio"], ours["seeds"])}))
    return found


def synthetic_rows(measured: Measured) -> list[Row]:
    synthesisers = measured.get("synthesisers", {})
    return [
        row(
            TITLES[r["data"]],
            f"{r['k']} clusters",
            {name: standard(r["ratios"][name], about["seeds"]) for name, about in synthesisers.items()},
            {r["recommended"]: standard(r["ratios"][r["recommended"]], measured["seeds"])},
        )
        for r in measured.get("rows", [])
    ]


def sparse_rows(measured: Measured) -> list[Row]:
    rows = []
    for r in measured.get("cells", {}).values():
        if r["part"] == "sparse":
            opendp, google = (Value(value, rounding=0.005) for value in SPARSE_PEERS[r["amount"]])
            ours = {r["method"]: Value(sum(r["ari"]) / len(r["ari"]))}
            printed = {"OpenDP's branch": opendp, "Google": google}
            rows.append(row("Rows of tags", f"rho {r['amount']:g}", printed, ours, is_higher_better=True))
    return rows


def sampler_rows(measured: Any) -> list[Row]:
    return [
        row(
            r["noise"],
            f"scale {r['scale']:,}",
            {"OpenDP": time_of(r["opendp_us"])},
            {"ours": Value(r["ours_us"])},
        )
        for r in measured or []
    ]


def medoid_rows(measured: Measured) -> list[Row]:
    rows = []
    for r in measured.get("plain", []):
        setting = f"{r['d']} columns, k {r['k']}"
        pam = {"cost": Value(1.0, rounding=SAME_COST), "seconds": time_of(r["pam_s"] + r["matrix_s"])}
        ours = {"cost": r["cost"], "seconds": r["ours_s"]}
        rows += [
            row(r["kind"], f"{setting}, {what}", {"FasterPAM": value}, {"k_medoids": Value(ours[what])})
            for what, value in pam.items()
        ]
    return rows


def kmeans_times(measured: Any) -> list[Row]:
    rows = measured or []
    base = {r["data"]: r["fit_s"] for r in rows if r["method"] == "scikit-learn, 1 thread"}
    return [
        row(DATA_SETS[r["data"]].title, r["method"], {"scikit-learn": time_of(base[r["data"]])}, ours)
        for r in rows
        if not r["method"].startswith("scikit-learn")
        for ours in [{r["method"]: Value(r["fit_s"])}]
    ]


def time_of(value: float) -> Value:
    return Value(value, rounding=TIMES * value)


def shape_rows(measured: Measured) -> list[Row]:
    """DensityTree at epsilon 1 on as many rows as HDBSCAN has."""
    cells = {
        (r["table"], r["rows"], r["epsilon"]): standard(r["ari"], r["seeds"])
        for r in measured.get("rows", [])
        if r["half"] == "reported"
    }
    return [
        row(table, f"{n:,} rows", {"HDBSCAN": peer}, {"DensityTree": ours}, is_higher_better=True)
        for (table, n, epsilon), peer in cells.items()
        if epsilon is None and (ours := cells.get((table, n, 1.0)))
    ]
