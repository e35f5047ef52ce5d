import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from sfumato import Budget, GridKMeans, Ledger, Release, recommend
from sfumato.budget.statement import SEEDED_WARNING
from sfumato.cli import methods, steps

GRID = ["--method", "grid-kmeans", "--clusters", "3"]
FIT = [*GRID, "--epsilon", "1", "--quiet"]
COLUMNS = ["--columns", "east,north", "--bounds", "0,40"]


def test_the_release_is_that_of_the_library(call, stays, frame):
    call("fit", stays, *FIT, *COLUMNS, "--seed", 0)
    bounds = {"east": (0, 40), "north": (0, 40)}
    same = GridKMeans(3, bounds=bounds, random_state=0).fit(frame).release_
    found = json.loads(Path("release.json").read_text())
    del found["sha256"]
    assert found | {"created": ""} == json.loads(json.dumps(same.to_dict())) | {"created": ""}


def test_what_it_says(call, stays, silent_about):
    done = call("fit", stays, *GRID, "--epsilon", 1, *COLUMNS, "--report", "report.html")
    assert done.stdout.startswith("GridKMeans found 3 clusters.\nDifferential privacy with epsilon=1, ")
    assert done.stdout.endswith("release: release.json\nreport:  report.html\n")
    assert done.stderr.startswith("rows: epsilon 0.0416667, discrete Laplace\n")  # a sixth is for profiles
    assert Path("report.html").exists()
    silent_about(done.output)


def test_one_cluster_is_told_as_one(call, stays):
    done = call("fit", stays, "--method", "grid-kmeans", "--clusters", 1, "--epsilon", 1, *COLUMNS)
    assert done.stdout.startswith("GridKMeans found 1 cluster.\n")


def test_quiet_says_nothing(call, stays):
    assert call("fit", stays, *FIT, *COLUMNS).output == ""


def test_a_seed_is_not_to_be_published(call, stays):
    done = call("fit", stays, *GRID, "--epsilon", 1, *COLUMNS, "--seed", 7, "--report", "report.html")
    assert SEEDED_WARNING in done.stdout
    assert "warning: the noise came from a seed: do not publish" in done.stderr
    assert SEEDED_WARNING in Path("report.html").read_text()
    call("fit", stays, *FIT, *COLUMNS, "--seed", 7, "--ledger", "b.db", "--dataset", "x", "--force", code=2)


def test_columns_of_every_kind_from_a_file_of_bounds(call, stays):
    Path("b.toml").write_text('east = [0, 40]\nday = [2026-01-01, 2026-07-01]\nward = ["icu", "er"]\n')
    call("fit", stays, *FIT, "--bounds", "b.toml")
    assert Release.load("release.json").columns == ("east", "day", "ward=icu", "ward=er", "ward=other")
    call("fit", stays, *FIT, "--bounds", "b.toml", "--columns", "ward,east", "--force")
    assert Release.load("release.json").columns == ("ward=icu", "ward=er", "ward=other", "east")


KINDS = """
east = { bounds = [0, 40], unit = "km" }
north = [0, 30, "km"]
hour = { cycle = [0, 24] }
day = { cycle = "week" }
size = { levels = ["S", "M", "L"], ordered = true }
paid = "bool"

[describe]
ward = { levels = ["icu", "er"] }
when = { bounds = [2026-01-01, 2026-07-01], format = "%d.%m.%Y" }

[labels]
ward = "Ward"
east = "Kilometres east"
"""


@pytest.fixture
def kinds(frame):
    rng = np.random.default_rng(1)
    table = frame.assign(
        hour=rng.integers(0, 24, len(frame)),
        size=rng.choice(["S", "M", "L"], len(frame)),
        paid=rng.choice(["true", "false"], len(frame)),
        when=frame.day.dt.strftime("%d.%m.%Y"),
        day=frame.day.dt.strftime("%d.%m.%Y"),
    )
    table.to_csv("kinds.csv", index=False)
    Path("kinds.toml").write_text(KINDS)
    return ["kinds.csv", "--bounds", "kinds.toml"]


DPM_FIT = ["--method", "dpm", "--clusters", 3, "--epsilon", 5, "--delta", 1e-6, "--quiet"]


def test_units_orders_cycles_booleans_and_columns_that_are_described(call, kinds):
    call("fit", *kinds, *DPM_FIT, "--report", "report.html", "--title", "Trips of cabs")
    release = Release.load("release.json")
    assert release.columns == (
        *("east", "north", "hour (cos)", "hour (sin)", "day (cos)", "day (sin)", "size", "paid"),
    )
    assert [coordinate.unit for coordinate in release.reading.coordinates[:2]] == ["km", "km"]
    assert release.reading.coordinates[6].levels == ("S", "M", "L")
    assert "km by the widest of their bounds" in release.domain.measure.words
    assert release.profiles.names == ("east", "north", "hour", "day", "size", "paid", "ward", "when")
    assert release.profiles.column("ward").levels == ("icu", "er")
    assert release.profiles.column("when").kind == "date"
    page = Path("report.html").read_text()
    assert "Trips of cabs" in page
    assert "Kilometres east" in page


def test_the_options_of_columns(call, kinds):
    call(
        "fit", *kinds, *DPM_FIT, "--weights", "east=2, hour=0.5", "--profiles", 0.3, "--describe", "ward,cab"
    )
    release = Release.load("release.json")
    assert release.parameters["weights"] == {"east": 2.0, "hour": 0.5}
    assert release.parameters["profiles"] == 0.3
    assert release.profiles.names[-2:] == ("ward", "cab")
    assert release.domain.measure.step[0] == pytest.approx(20)
    call("fit", *kinds, *DPM_FIT, "--scale", "none", "--profiles", 0, "--force")
    release = Release.load("release.json")
    assert release.profiles is None
    assert not release.domain.measure


def test_columns_are_described_from_a_config_file(call, kinds):
    Path("run.toml").write_text(
        'data = "kinds.csv"\nclusters = 3\nepsilon = 5\ndelta = 1e-6\nquiet = true\nprofiles = 0.25\n'
        'report = "report.html"\ntitle = "All trips"\nscale = "bounds"\n'
        "[bounds]\neast = [0, 40]\nnorth = [0, 30]\n[weights]\neast = 2\n"
        '[describe]\nward = { levels = ["er"] }\n[labels]\neast = "To the east"\n'
    )
    call("fit", "--config", "run.toml")
    release = Release.load("release.json")
    assert release.profiles.names == ("east", "north", "ward")
    assert release.profiles.column("ward").levels == ("er",)
    assert release.parameters["weights"] == {"east": 2.0}
    assert "To the east" in Path("report.html").read_text()
    call("check", "--config", "run.toml")


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("east = { bounds = [0, 40], unit = 3 }", "the unit of column 'east' must be a text"),
        ("east = { bounds = [0, 40], ordered = true }", "column 'east' must have bounds [low, high]"),
        ("east = { levels = [1, 2], unit = 'km' }", "column 'east' must have bounds [low, high]"),
        ("east = { cycle = 'month' }", "the cycle of column 'east' must be two numbers"),
        ("east = { cycle = [0, 24], levels = [1] }", "column 'east' must have bounds [low, high]"),
        ("east = { type = 'number' }", "column 'east' must have bounds [low, high]"),
        ("east = [0, 'km']", "must be two numbers or two dates"),
        ("east = ['2026-01-01', '2026-07-01']", "must be two numbers or two dates"),
        ("east = 'boolean'", "column 'east' must have bounds [low, high]"),
        ("east = { levels = [1], ordered = true }", "must be two or more"),
        ("east = [0, 40]\n[labels]\nwest = 'West'", "[labels] in b.toml must have a text"),
        ("east = [0, 40]\n[describe]\nward = { levels = ['er'], missing = 'er' }", "no `missing`"),
    ],
)
def test_files_of_bounds_that_are_refused(call, stays, line, fix):
    Path("b.toml").write_text(line)
    done = call("fit", stays, "--epsilon", 1, "--bounds", "b.toml", code=2)
    assert fix in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_doubts_are_told_as_warnings(call, stays):
    Path("b.toml").write_text("east = [0, 40]\nnorth = [0, 90000]\n")
    done = call("fit", stays, *FIT, "--bounds", "b.toml", "--scale", "none")
    assert "warning: Columns were measured as they are, and the bounds of 'north' are over 10" in done.stderr
    assert "Use --scale bounds" in done.stderr


def test_people_and_missing_values(call, frame):
    frame.assign(east=frame.east.where(frame.index % 50 > 0))[["cab", "east", "north"]].to_csv(
        "trips.csv", index=False
    )
    unit = ["--bounds", "0,40", "--unit", "cab", "--max-rows-per-unit", 2]
    done = call("fit", "trips.csv", *FIT, *unit, code=3)
    assert "--missing drop" in done.stderr
    call("fit", "trips.csv", *FIT, *unit, "--missing", "drop")
    release = Release.load("release.json")
    assert str(release.privacy.unit) == "one person (column 'cab', at most 2 rows each)"
    assert release.columns == ("east", "north")


def test_private_bounds_of_all_columns(call, trips):
    call("fit", trips, *FIT, "--bounds", "private", "--unit", "cab")
    steps = [record.step for record in Release.load("release.json").privacy.steps]
    assert steps[:3] == ["magnitudes", "coarse bins", "fine bins"]


def test_bounds_that_are_bought_apart(call, stays, silent_about):
    ledger = Ledger.create("budget.db", "stays", Budget(2))
    charged = ["--ledger", "budget.db", "--dataset", "stays"]
    options = [*GRID, "--epsilon", 1, "--columns", "east,north", "--estimate-bounds", 0.5, *charged]
    done = call("fit", stays, *options)
    assert [(charge.method, str(charge.spend), charge.outcome) for charge in ledger.history()] == [
        ("estimate_bounds", "epsilon=0.5", "released"),
        ("GridKMeans", "epsilon=1", "released"),
    ]
    assert "Of that, the bounds cost epsilon=0.5" in done.stdout
    assert "magnitudes: epsilon 0.15, discrete Laplace" in done.stderr
    silent_about(done.output)

    done = call("fit", stays, *options, "--out", "second.json", "--json", code=4)
    assert "does not cover charge 2 of 2: requested epsilon=1, remaining epsilon=0, " in done.stderr
    assert "Charge 1 is for the bounds, charge 2 for the fit." in done.stderr
    assert len(ledger.history()) == 2
    done = call("fit", stays, *options, "--set", "rule=wild", "--out", "second.json", code=2)
    assert len(ledger.history()) == 2


def test_bounds_in_json(call, stays):
    options = ["--columns", "east,north", "--estimate-bounds", 0.5, "--json", "--quiet"]
    done = call("fit", stays, *GRID, "--rho", 0.5, *options)
    assert json.loads(done.stdout)["bounds_privacy"]["spent"] == {"epsilon": "1/2"}


def test_the_ledger_is_charged_once(call, stays):
    for total, budget in ((Budget(2), ["--epsilon", 1]), (Budget(rho=1), ["--rho", 0.5])):
        ledger = Ledger.create("budget.db", str(total), total)
        charged = ["--ledger", "budget.db", "--dataset", str(total), "--force"]
        call("fit", stays, *GRID, *COLUMNS, "--quiet", *budget, *charged)
        assert [charge.outcome for charge in ledger.history()] == ["released"]


def test_nothing_is_overwritten_unasked(call, stays):
    ledger = Ledger.create("budget.db", "stays", Budget(2))
    charged = ["--ledger", "budget.db", "--dataset", "stays"]
    Path("release.json").write_text("precious")
    done = call("fit", stays, *FIT, *COLUMNS, *charged, code=2)
    assert "overwrite it with --force" in done.stderr
    assert Path("release.json").read_text() == "precious"
    assert not ledger.history()
    call("fit", stays, *FIT, *COLUMNS, *charged, "--force")
    assert Release.load("release.json").method == "GridKMeans"


def test_config_file_and_command_line(call, stays):
    Path("run.toml").write_text(
        'data = "stays.parquet"\nmethod = "grid-kmeans"\nclusters = 3\nepsilon = 1\nquiet = true\n'
        'out = "first.json"\n[bounds]\neast = [0, 40]\nnorth = [0, 30]\n'
        '[set]\nrule = "eugkm"\nmax_cells = 50\n'
    )
    call("fit", "--config", "run.toml")
    first = Release.load("first.json")
    assert first.parameters["rule"] == "eugkm"
    assert (first.parameters["n_clusters"], first.columns) == (3, ("east", "north"))
    options = ["--rho", 0.5, "--clusters", 4, "--set", "rule=rugnik", "--out", "second.json"]
    call("fit", "--config", "run.toml", *options)
    second = Release.load("second.json")
    assert second.parameters["rule"] == "rugnik"
    assert (second.parameters["max_cells"], second.parameters["n_clusters"]) == (50, 4)
    assert second.privacy.budget == Budget(rho=0.5)
    call("fit", "--config", "run.toml", "--estimate-bounds", 0.5, "--columns", "east", "--out", "third.json")
    assert Release.load("third.json").columns == ("east",)


@pytest.mark.parametrize(
    "budget", [{"epsilon": 2}, {"epsilon": 2, "delta": 1e-6}, {"rho": 0.5}], ids=["pure", "delta", "rho"]
)
@pytest.mark.parametrize("k", [None, 3, "auto"])
@pytest.mark.parametrize(
    ("bounds", "rows"),
    [
        ({"east": (0, 40), "north": (0, 30)}, None),
        ({"east": (0, 40), "north": (0, 30), "cab": (0, 1500)}, None),
        ((0, 1500), 500),
        ((0, 1500), 10**6),
    ],
)
def test_fit_takes_the_method_that_plan_and_recommend_name(call, trips, budget, k, bounds, rows):
    """One rule, for all budgets, with and without a number of clusters or of rows."""
    lines = [f"{name} = {list(pair)}\n" for name, pair in bounds.items()] if isinstance(bounds, dict) else []
    Path("b.toml").write_text("".join(lines))
    options = [text for name, amount in budget.items() for text in (f"--{name}", amount)]
    options += ["--bounds", "b.toml" if lines else "0,1500"]
    options += ["--clusters", k] if k else []
    options += ["--rows", rows] if rows else []
    planned = json.loads(call("plan", *options, "--json", *([] if lines else ["--columns-number", 3])).stdout)
    said = call("fit", trips, *options).stderr
    named = recommend(rows, None if lines else 3, k, bounds=bounds, **{"epsilon": None} | budget)
    release = Release.load("release.json")
    assert release.method == named.method.__name__ == methods.BUILT_IN[planned["method"]]
    assert release.parameters["n_clusters"] == named.parameters["n_clusters"]
    assert f"--method {planned['method']}: {named.reason}\n" in said
    assert planned["reason"] == named.reason


def test_lists_in_a_config_file(call, stays):
    Path("run.toml").write_text('columns = ["east", "north"]\nbounds = [0, 40]\nepsilon = 1\nclusters = 3\n')
    call("fit", stays, "--config", "run.toml", "--method", "grid-kmeans", "--quiet")
    assert Release.load("release.json").domain.high == (40, 40)


@pytest.mark.parametrize(
    ("content", "fix"),
    [
        ("epsilon = ", "must be a TOML file"),
        ("epsilons = 1", "may have data, method"),
        ("set = 1", "a table"),
    ],
)
def test_bad_config_files(call, stays, content, fix):
    Path("run.toml").write_text(content)
    assert fix in " ".join(call("fit", stays, "--config", "run.toml", code=2).stderr.split())


NUMBERS = ["--epsilon", "1", "--bounds", "0,40", "--columns", "east"]


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        (["--bounds", "0,40"], "`--epsilon` or `--rho` must be given, got neither"),
        (["--epsilon", "1", "--rho", "1", "--bounds", "0,40"], "got both"),
        (["--epsilon", "1"], "buy them with --estimate-bounds 0.1"),
        (["--epsilon", "1", "--bounds", "0,1", "--estimate-bounds", "1"], "got both"),
        (["--epsilon", "-1", "--bounds", "0,40"], "`epsilon` must be a positive"),
        (["--epsilon", "1", "--bounds", "0"], "must be two numbers or a file"),
        (["--epsilon", "1", "--bounds", "no.toml"], "must be a TOML file"),
        (["--epsilon", "1", "--bounds", "40,0"], "low < high"),
        (["--epsilon", "1", "--bounds", "private", "--columns", "east"], "Use --estimate-bounds"),
        (["--epsilon", "1", "--bounds", "bounds.toml", "--columns", "age"], "must have bounds in the file"),
        (["--epsilon", "1", "--bounds", "bounds.toml#x"], "must have a table 'x'"),
        (["--epsilon", "1", "--bounds", "0,40", "--columns", "age"], "must be in the table"),
        ([*NUMBERS, "--method", "magic"], "`--method` must be one of kmeans, dpm, "),
        ([*NUMBERS, "--method", "density-tree", "--clusters", "3"], "`--clusters` must not be given"),
        (
            [*NUMBERS, "--method", "dpm", "--set", "depth=3"],
            "must name a parameter of dpm (n_clusters, max_depth",
        ),
        ([*NUMBERS, "--set", "epsilon=3"], "the command has an option for it"),
        ([*NUMBERS, "--set", "max_depth"], "must be name=value"),
        ([*NUMBERS, "--method", "dpm", "--set", "max_depth=0"], "`max_depth` must be"),
        ([*NUMBERS, "--missing", "fill"], "`--missing` must be error, drop or column=value"),
        ([*NUMBERS, "--scale", "width"], "`--scale` must be bounds or none, got 'width'"),
        ([*NUMBERS, "--weights", "east"], "`--weights` must be column=number"),
        ([*NUMBERS, "--weights", "east=2,1"], "`--weights` must be column=number"),
        ([*NUMBERS, "--weights", "south=2"], "`weights` must name columns"),
        ([*NUMBERS, "--profiles", "all"], "`--profiles` must be a share"),
        ([*NUMBERS, "--profiles", "1"], "`profiles` must be"),
        ([*NUMBERS, "--profiles", "0", "--describe", "ward"], "`profiles` must be positive with `describe`"),
        ([*NUMBERS, "--describe", "colour"], "Give --delta 1e-6, or list the levels"),
        ([*NUMBERS, "--describe", "colour", "--delta", "1e-6"], "column 'colour' must be in the table"),
        ([*NUMBERS, "--labels", "no.toml"], "must be a TOML file"),
        ([*NUMBERS, "--max-rows-per-unit", "3"], "name the column that identifies a person"),
        ([*NUMBERS, "--seed", "-3"], "`random_state` must be"),
        ([*NUMBERS, "--ledger", "b.db"], "must be given together"),
        ([*NUMBERS, "--out", "no/release.json"], "Create the folder first"),
        ([*NUMBERS, "--out", "a", "--report", "a"], "must differ"),
    ],
)
def test_parameters_that_are_refused(call, stays, bounds, options, fix):
    done = call("fit", stays, *options, code=2)
    assert fix in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: ")
    assert done.stdout == ""
    assert not Path("release.json").exists()


def test_usage_errors(call, stays):
    call("fit", stays, "--epsilon", "much", code=2)
    call("fit", stays, "--no-such-option", code=2)
    call("fit", code=2)
    call("fti", code=2)
    assert "does not exist" in call("fit", "no.csv", *NUMBERS, code=2).stderr


def test_bad_tables(call, frame, silent_about):
    Path("broken.parquet").write_text("not a table")
    assert "could not be read" in call("fit", "broken.parquet", *NUMBERS, code=3).stderr
    frame.assign(east=frame.east.astype(str)).to_parquet("text.parquet")
    done = call("fit", "text.parquet", *NUMBERS, "--quiet", code=3)
    assert "Choose columns by name: --columns a,b or --bounds a.toml" in done.stderr
    silent_about(done.stderr)
    frame.assign(east=frame.east.where(frame.index > 0)).to_parquet("missing.parquet")
    silent_about(call("fit", "missing.parquet", *NUMBERS, code=3).stderr)
    assert sorted(path.name for path in Path().iterdir()) == [
        "broken.parquet",
        "missing.parquet",
        "text.parquet",
    ]


def test_bad_ledgers(call, stays):
    charged = [*NUMBERS, "--ledger", "b.db", "--dataset", "stays"]
    assert "sfumato ledger create b.db stays" in call("fit", stays, *charged, code=5).stderr
    Ledger.create("b.db", "others", Budget(1))
    assert "`sfumato ledger create PATH DATASET" in call("fit", stays, *charged, code=5).stderr
    Path("b.db").write_text("no ledger at all, but a long text")
    call("fit", stays, *charged, code=5)


def test_unexpected_errors_show_data_only_when_debugging(call, stays, monkeypatch):
    def fail(self, X):
        raise RuntimeError("row 7 is 12.5")

    monkeypatch.setattr(GridKMeans, "fit", fail)
    done = call("fit", stays, *FIT, *COLUMNS, code=70)
    assert (
        done.stderr
        == "error: unexpected RuntimeError. `sfumato --debug ...` shows where; its output may contain data\n"
    )
    done = call("--debug", "fit", stays, *FIT, *COLUMNS, code=70)
    assert "row 7 is 12.5" in done.stderr


def test_weak_guarantees_are_told(call, stays):
    options = ["--method", "dpdbscan", "--set", "radius=1.0", "--set", "min_samples=2", "--quiet"]
    done = call("fit", stays, *options, "--epsilon", 0.1, *COLUMNS)
    assert re.fullmatch(r"(warning: .+\n)+", done.stderr)


def test_a_bar_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    model = GridKMeans(3, bounds=(0, 40))
    with steps.followed(model.plan(2), quiet=False):
        model.fit([[1.0, 2.0], [3.0, 4.0]] * 100)
    assert "rows: epsilon 0.05, discrete Laplace" in terminal.getvalue()
    assert "100%" in terminal.getvalue()
