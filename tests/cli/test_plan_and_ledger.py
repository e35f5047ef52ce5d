import inspect
import json
import re
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from sfumato import DPM, Ledger, LloydKMeans, PrivateKMeans, cluster, planner
from sfumato.cli import city, methods
from sfumato.cli.app import EXAMPLES
from sfumato.cluster import PrivateClusterer
from sfumato.planner import budget_for, forecast


def test_plan_is_that_of_the_estimator(call):
    options = ["--epsilon", 1, "--columns-number", 3, "--max-rows-per-unit", 4, "--set", "max_depth=5"]
    done = call("plan", "--method", "dpm", *options)
    same = DPM(max_depth=5, unit="person", max_rows_per_unit=4, bounds=(-1, 1)).plan(3)
    assert done.stdout == f"{same}\n"


@pytest.mark.parametrize("budget", [["--epsilon", 1], ["--epsilon", 1, "--delta", 1e-6], ["--rho", 0.1]])
def test_recommendation(call, budget):
    done = call("plan", "--rows", 2000, "--columns-number", 2, "--clusters", 8, *budget)
    assert done.stdout.startswith("--method grid-kmeans: few columns and ")
    assert "noise scale" in done.stdout


def test_no_number_of_rows_is_needed_for_a_recommendation(call):
    done = call("plan", "--columns-number", 6, "--clusters", 8, "--epsilon", 1)
    assert done.stdout.startswith("--method dpm: enough for splits")
    options = ["--columns-number", 6, "--rows", 1e5, "--epsilon", 1, "--delta", 1e-6, "--json"]
    said = json.loads(call("plan", *options).stdout)
    chosen = PrivateKMeans("auto", delta=1e-6, bounds=(-1, 1))  # and not eight clusters, its default
    assert said["forecast"] == forecast(chosen, 1e5, 6).to_dict()


def test_forecast_follows_the_plan(call):
    options = ["--method", "lloyd-kmeans", "--clusters", 4, "--columns-number", 3, "--epsilon", 1]
    done = call("plan", *options, "--rows", 20_000, "--spread", 0.05)
    model = LloydKMeans(4, bounds=(-1, 1))
    assert done.stdout == f"{model.plan(3)}\n\n{forecast(model, 20_000, 3, spread=0.05)}\n"
    assert "would not show" in call("plan", *options, "--rows", 100).stdout


def test_forecast_for_methods_that_find_the_number_themselves(call):
    options = ["--columns-number", 2, "--epsilon", 1, "--clusters", 5, "--bounds", "0,100"]
    done = call("plan", "--method", "dpdbscan", *options, "--rows", 50_000, "--set", "radius=4")
    assert "5 equal normal clusters" in done.stdout
    assert "radius that fits" in done.stdout
    call("plan", "--method", "dpdbscan", *options, code=2)


@pytest.mark.parametrize("kind", ["epsilon", "rho"])
def test_least_budget(call, kind):
    size = ["--columns-number", 3, "--rows", 50_000, "--clusters", 4, "--method", "coreset-kmeans"]
    extra = ["--in-rho"] if kind == "rho" else []
    done = call("plan", *size, "--size-error", 80, "--json", *extra)
    said = json.loads(done.stdout)
    found = budget_for(50_000, 3, 4, "coreset-kmeans", size_error=80, in_rho=kind == "rho")
    assert said["budget"] == found.budget.to_dict()
    assert set(said["budget"]) == {kind}
    assert said["forecast"]["size_error"] <= 80
    shown = call("plan", *size, f"--{kind}", float(getattr(found.budget, kind)), "--json")
    assert json.loads(shown.stdout) == said


def test_plan_as_json(call):
    options = ["--columns-number", 2, "--clusters", 8, "--epsilon", 1, "--json"]
    said = json.loads(call("plan", "--rows", 2000, *options).stdout)
    assert said["method"] == "grid-kmeans"
    assert said["reason"].startswith("few columns")
    assert [step["step"] for step in said["steps"]] == ["rows", "grid"]
    assert said["forecast"]["passes"] == 2
    assert json.loads(call("plan", "--method", "dpm", *options).stdout)["forecast"] is None


def test_refused_forecasts(call):
    size = ["--columns-number", 2, "--clusters", 4]
    for options, word in [
        (["--method", "dpm", "--size-error", 10], "--rows"),
        (["--method", "dpm", "--epsilon", 1, "--spread", 1], "--rows"),
        (["--method", "dpm", "--rows", 1000, "--size-error", 10, "--epsilon", 1], "--epsilon"),
        (["--method", "dpm", "--rows", 1000, "--size-error", 1e-9], "for --size-error 1e-09"),
        (["--method", "dpm", "--rows", 1000, "--size-error", 10, "--set", "epsilon=3"], "--set epsilon"),
        (["--method", "dpm", "--rows", 1000, "--epsilon", 1, "--spread", -1], "spread"),
        (["--method", "density-tree", "--rows", 1000, "--center-error", 1], "center_error"),
    ]:
        done = call("plan", *size, *options, code=2)
        assert word in done.stderr
        assert done.stderr.count("\n") == 1
        assert not done.stdout


BOUNDS = """
age = { bounds = [0, 100], unit = "years" }
income = [0, 200000]
job = { levels = ["smith", "baker"] }

[describe]
ward = { levels = ["icu", "er"] }
"""


def test_columns_from_a_file_of_bounds(call):
    Path("b.toml").write_text(BOUNDS)
    table = ["--bounds", "b.toml", "--clusters", 5, "--epsilon", 1, "--delta", 1e-6]
    done = call("plan", *table, "--rows", 50_000)
    assert "columns are measured in units of their bounds" in done.stdout
    for line in ("error of a centre, age ", "error of a centre, income ", "error of a centre, job "):
        assert line in done.stdout
    assert "years, " in done.stdout
    assert done.stdout == call("plan", *table, "--rows", 50_000, "--columns-number", 3).stdout
    done = call("plan", *table, "--rows", 50_000, "--columns-number", 4, code=2)
    assert "`--columns-number` must be 3, the number of columns in --bounds, got 4" in done.stderr
    done = call("plan", *table, "--rows", 50_000, "--columns", "age,income", "--columns-number", 2)
    assert "error of a centre, job" not in done.stdout


def test_the_plan_of_a_file_is_that_of_the_library(call):
    Path("b.toml").write_text(BOUNDS)
    bounds = {"age": (0, 100, "years"), "income": (0, 200_000), "job": ["smith", "baker"]}
    options = [
        "--bounds",
        "b.toml",
        "--clusters",
        5,
        "--epsilon",
        1,
        "--weights",
        "age=2",
        "--profiles",
        0.25,
    ]
    said = json.loads(call("plan", *options, "--rows", 50_000, "--json").stdout)
    described = {"ward": ["icu", "er"]}
    settings = {"weights": {"age": 2.0}, "profiles": 0.25, "describe": described}
    assert said["forecast"] == json.loads(
        json.dumps(planner.plan(50_000, k=5, bounds=bounds, **settings).to_dict())
    )
    assert "times their weights" in said["measure"]
    assert [step["step"] for step in said["steps"]][-2:] == ["table", "profiles"]
    (cost,) = [float(step["cost"].split()[-1]) for step in said["steps"] if step["step"] == "profiles"]
    assert 0.1 < cost < 0.25
    bare = json.loads(call("plan", *options[:-4], "--rows", 50_000, "--profiles", 0, "--json").stdout)
    assert "profiles" not in [step["step"] for step in bare["steps"]]
    none = json.loads(call("plan", *options, "--rows", 50_000, "--scale", "none", "--json").stdout)
    assert "scale=None" in none["measure"]


def test_help_of_forecasts_has_examples(call):
    said = " ".join(call("plan", "--help").stdout.split())
    for option in (
        "--rows 50000",
        "--spread 0.5",
        "--center-error 0.01",
        "--size-error 100",
        "--in-rho",
        "--json",
    ):
        assert option in said


def test_refused_plans(call):
    done = call("plan", "--method", "dpm", "--epsilon", 1, code=2)
    assert "`--columns-number` must be given, or --bounds with a file" in done.stderr
    call("plan", "--method", "dpm", "--epsilon", 1, "--columns-number", 2, "--columns", "a,b", code=2)
    call("plan", "--method", "dpm", "--epsilon", 1, "--columns-number", 0, code=2)
    call("plan", "--method", "dpm", "--columns-number", 2, code=2)
    for clusters in (0, "many"):
        done = call("plan", "--epsilon", 1, "--columns-number", 2, "--clusters", clusters, code=2)
        # Old versions of typer write more between the option and the reason.
        assert re.search(
            rf"'--clusters'.*: it must be a whole number from 1, or auto, got '{clusters}'", done.stderr
        )


def test_every_method_of_the_library_has_a_name():
    exported = [getattr(cluster, name) for name in cluster.__all__]
    classes = {
        cls.__name__ for cls in exported if inspect.isclass(cls) and issubclass(cls, PrivateClusterer)
    } - {"PrivateClusterer"}
    assert set(methods.BUILT_IN.values()) == classes
    assert {methods.find(name).__name__ for name in methods.BUILT_IN} == classes


@pytest.mark.parametrize("method", methods.BUILT_IN)
def test_every_method_has_a_plan(call, method):
    done = call("plan", "--method", method, "--epsilon", 1, "--columns-number", 2)
    assert "epsilon=1" in done.stdout


def test_methods_of_other_packages(call, trips, bounds, monkeypatch):
    points = [
        EntryPoint("mine", "sfumato.cluster:GridKMeans", methods.GROUP),
        EntryPoint("dpm", "evil:DPM", methods.GROUP),
        EntryPoint("number", "math:pi", methods.GROUP),
    ]
    installed = metadata.entry_points
    monkeypatch.setattr(
        metadata,
        "entry_points",
        lambda **chosen: points if chosen == {"group": methods.GROUP} else installed(**chosen),
    )
    listed = call("methods").stdout
    assert "mine                 sfumato.cluster:GridKMeans\n" in listed
    assert "evil" not in listed
    assert methods.find("dpm") is DPM
    call("fit", trips, "--method", "mine", "--clusters", 3, "--epsilon", 1, "--bounds", bounds)
    done = call("plan", "--method", "number", "--epsilon", 1, "--columns-number", 2, code=2)
    assert "must be a PrivateClusterer" in done.stderr


def test_life_of_a_ledger(call):
    assert call("ledger", "create", "b.db", "trips", "--epsilon", 2).stdout == "trips: epsilon=2 in all\n"
    call("ledger", "create", "b.db", "stays", "--rho", 0.5)
    call("ledger", "create", "b.db", "trips", "--epsilon", 3, code=5)
    number = Ledger("b.db", "trips").charge(Ledger("b.db", "trips").total(), method="DPM", plan="all")
    Ledger("b.db", "trips").settle(number, "released")
    lines = [line.split() for line in call("ledger", "show", "b.db").stdout.splitlines()[1:]]
    assert lines == [
        ["trips", "epsilon=2", "epsilon=2", "epsilon=0", "open"],
        ["stays", "rho=0.5", "rho=0", "rho=0.5", "open"],
    ]
    assert len(call("ledger", "show", "b.db", "stays").stdout.splitlines()) == 2
    (charge,) = call("ledger", "history", "b.db", "trips").stdout.splitlines()[1:]
    assert charge.split()[0] == "1"
    assert charge.split()[2:] == ["DPM", "epsilon=2", "released"]
    call("ledger", "close", "b.db", "stays", input="n\n", code=1)
    assert not Ledger("b.db", "stays").is_closed()
    call("ledger", "close", "b.db", "stays", input="y\n")
    call("ledger", "close", "b.db", "trips", "--yes")
    assert call("ledger", "show", "b.db").stdout.count("closed") == 2


PARTS = ["--parts-by", "month", "--parts", "2026-01, 2026-02", "--parts", "2026-03"]


def test_a_ledger_with_parts(call, trips, bounds):
    call("ledger", "create", "b.db", "trips", "--epsilon", 2, "--unit", "row", *PARTS)
    fit = ["fit", trips, "--method", "grid-kmeans", "--clusters", 3, "--bounds", bounds, "--epsilon", 1]
    fit += ["--force", "--ledger", "b.db", "--dataset", "trips"]
    for month in ("2026-01", "2026-02"):
        call(*fit, "--part", month)
    assert "'2026-04'" in call(*fit, "--part", "2026-04", code=2).stderr
    without = call("fit", trips, "--out", "new.json", "--part", "2026-01", "--epsilon", 1, code=2)
    assert "must be given together" in without.stderr
    whole, first, _, third, rule = call("ledger", "show", "b.db", "trips").stdout.splitlines()[1:]
    assert whole.split() == ["trips", "epsilon=2", "epsilon=1", "epsilon=1", "open", "one", "row"]
    assert first.split()[2:4] == ["epsilon=1", "epsilon=1"]
    assert third.split()[2:4] == ["epsilon=0", "epsilon=2"]
    assert rule == "parts by month, at most 1 per unit: of the parts, the 1 largest count"
    assert len(call("ledger", "show", "b.db").stdout.splitlines()) == 2
    charges = json.loads(call("ledger", "history", "b.db", "trips", "--json").stdout)
    assert [(charge["unit"], charge["part"]) for charge in charges] == [
        ("one row", m) for m in ("2026-01", "2026-02")
    ]


def test_a_fit_with_another_unit_is_refused(call, trips, bounds):
    call("ledger", "create", "b.db", "trips", "--epsilon", 2, "--unit", "cab")
    fit = ["fit", trips, "--epsilon", 1, "--bounds", bounds, "--ledger", "b.db", "--dataset", "trips"]
    said = call(*fit, code=2).stderr
    assert "which protects one person (column 'cab'), got a run that protects one row" in said
    assert not Ledger("b.db", "trips").history()


def test_refused_parts(call):
    create = ["ledger", "create", "b.db", "trips", "--epsilon", 2, *PARTS]
    assert "`--unit` must be given with --parts-by" in call(*create, code=2).stderr
    said = call(*create, "--unit", "cab", code=2).stderr
    assert "`--max-parts-per-unit` must be declared" in said
    assert "write --max-parts-per-unit 1" in said
    call(*create, "--unit", "cab", "--max-parts-per-unit", 2)


def test_a_batch_of_fits(call):
    call(
        "ledger",
        "create",
        "b.db",
        "trips",
        "--epsilon",
        2,
        "--unit",
        "cab",
        *PARTS,
        "--max-parts-per-unit",
        2,
    )
    plan = ["ledger", "plan", "b.db", "trips"]
    head, *fits, spent, nothing = call(*plan, "--fits", 2, "--fit", "epsilon=0.5").stdout.splitlines()
    assert head.split() == ["fit", "part", "may", "spend"]
    assert [fit.split() for fit in fits] == [
        ["1", "epsilon=0.5"],
        ["2", "epsilon=0.75"],
        ["3", "epsilon=0.75"],
    ]
    assert spent == "spent: epsilon=0 now, epsilon=2 after these fits, of epsilon=2 in all"
    assert nothing == "nothing was charged"
    found = json.loads(call(*plan, "--fits", 2, "--part", "2026-01", "--part", "2026-03", "--json").stdout)
    assert found["fits"] == [
        {"part": part, "spend": {"epsilon": "1/2"}} for part in ("2026-01", "2026-01", "2026-03", "2026-03")
    ]
    assert (found["before"], found["after"]) == ({"epsilon": "0"}, {"epsilon": "2"})
    refused = call(*plan, "--fit", "epsilon=1.5", "--fit", "epsilon=1,part=2026-01", code=4).stderr
    assert "charge 2 of 2 to part '2026-01': requested epsilon=1, remaining epsilon=0.5" in refused
    for wrong in (
        [],
        ["--part", "2026-01"],
        ["--fit", "1"],
        ["--fit", "eps=1"],
        ["--fit", "epsilon="],
        ["--fits", -1],
    ):
        call(*plan, *wrong, code=2)
    assert "`--fits`, at least 1, or" in call(*plan, "--fits", 0, code=2).stderr
    assert not Ledger("b.db", "trips").history()


def test_a_ledger_is_verified(call):
    call("ledger", "create", "b.db", "trips", "--epsilon", 2)
    first, checksum = call("ledger", "verify", "b.db").stdout.splitlines()
    assert first == "1 line, as written; the last checksum is"
    call("ledger", "create", "b.db", "stays", "--epsilon", 2)
    assert call("ledger", "verify", "b.db", "--noted", checksum).stdout.startswith("2 lines")
    assert "an old copy" in call("ledger", "verify", "b.db", "--noted", "0" * 64, code=5).stderr
    content = Path("b.db").read_bytes()
    Path("b.db").write_bytes(content.replace(b"stays", b"stats"))
    for command in ("verify", "show"):
        assert (
            "line 'dataset 2' does not match its checksum" in call("ledger", command, "b.db", code=5).stderr
        )


def test_refused_ledgers(call):
    call("ledger", "create", "b.db", "trips", code=2)
    call("ledger", "create", "b.db", "trips", "--epsilon", 0, code=2)
    for command in (["show", "b.db"], ["history", "b.db", "x"], ["close", "b.db", "x", "--yes"]):
        assert call("ledger", *command, code=5).stderr.startswith("error: ")
    assert not Path("b.db").exists()
    call("ledger", "create", "b.db", "trips", "--epsilon", 1)
    refused = call("ledger", "create", "b.db", "trips", "--epsilon", 2, code=5).stderr
    assert "Use it with --dataset 'trips'" in refused


def test_demo(call, monkeypatch):
    show = city.show
    monkeypatch.setattr(city, "show", lambda folder: show(folder, n=3000))
    assert "report.html" in call("demo", "--out", "here").stdout
    assert Path("here/report.html").exists()


def test_help_of_every_command_has_an_example(call):
    commands = [("ledger", command.__name__) for command in EXAMPLES if command.__module__.endswith("ledger")]
    commands += [(command.__name__,) for command in EXAMPLES if not command.__module__.endswith("ledger")]
    for command in [*commands, ("ledger",), ("methods",), ()]:
        said = call(*command, "--help").stdout
        assert "Example: sfumato " in said
        assert len(command) < 1 or command[-1] in said
