"""The installed command, in processes of its own."""

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from tests.cli.conftest import COMMAND

from sfumato import Budget, Ledger, Release, __version__
from sfumato.cli.app import app

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


@pytest.mark.slow
def test_five_commands_of_the_docs(trips, shell, silent_about, tmp_path):
    section = DOCS.read_text(encoding="utf-8").split("\n## ")[1]
    blocks = re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
    assert [kind for kind, _ in blocks] == ["toml", "console"]
    (tmp_path / "bounds.toml").write_text(blocks[0][1])
    commands = blocks[1][1].strip().splitlines()
    assert len(commands) <= 5
    said = ""
    for command in commands:
        name, *arguments = shlex.split(command)
        assert name == "sfumato"
        done = shell(*arguments)
        said += done.stdout + done.stderr
    assert "--method grid-kmeans: few columns" in said
    assert "grid: epsilon 0.791667" in said
    assert re.search(r"trips +epsilon=2 +epsilon=1 +epsilon=1 +open", said)
    silent_about(said)
    assert Release.load("release.json").columns == ("east", "north")
    assert "<html" in (tmp_path / "report.html").read_text()


def test_json_is_all_that_stdout_holds(trips, shell, bounds, silent_about):
    arguments = ["--epsilon", 1, "--method", "grid-kmeans", "--clusters", 3, "--bounds", bounds, "--json"]
    done = shell("fit", trips, *arguments)
    found, release = json.loads(done.stdout), Release.load("release.json")
    assert found["release"] == "release.json"
    assert found["sha256"] == release.checksum() == json.loads(Path("release.json").read_text())["sha256"]
    assert found["clusters"] == 3
    assert found["privacy"] == json.loads(json.dumps(release.privacy.to_dict()))
    assert found["report"] is found["bounds_privacy"] is None
    assert done.stderr.splitlines() == [
        "rows: epsilon 0.0416667, discrete Laplace",
        "grid: epsilon 0.791667, discrete Laplace",
        "table: epsilon 0.0416667, discrete Laplace",
        "profiles: epsilon 0.125, discrete Laplace",
    ]
    silent_about(done.stdout + done.stderr)


def test_a_refused_budget(trips, shell, bounds):
    Ledger.create("budget.db", "trips", Budget(0.5))
    options = ["--bounds", bounds, "--ledger", "budget.db", "--dataset", "trips"]
    done = shell("fit", trips, "--epsilon", 1, *options, code=4)
    assert done.stdout == ""
    method, line = done.stderr.splitlines()
    assert method.startswith("--method ")
    assert line.startswith("error: The budget of 'trips' does not cover")
    assert not Path("release.json").exists()
    assert not Ledger("budget.db", "trips").history()


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("charged", [True, False])
def test_a_signal_ends_a_fit_and_says_what_is_spent(trips, bounds, sent, code, charged):
    ledger = Ledger.create("budget.db", "trips", Budget(2))
    options = ["--ledger", "budget.db", "--dataset", "trips"] if charged else []
    fit = ["fit", trips, "--method", "grid-kmeans", "--clusters", "8", "--epsilon", "1", "--bounds", bounds]
    with subprocess.Popen([COMMAND, *fit, *options], stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("grid: "):  # the last step, after the charge
                process.send_signal(sent)
                break
        *_, said = process.stderr.read().splitlines()
        assert process.wait() == code
    note = "epsilon=1 was charged to 'trips' and counts; nothing was released"
    assert (
        said
        == f"interrupted: {note if charged else 'the noise may have been drawn: count epsilon=1 as spent'}"
    )
    assert [charge.outcome for charge in ledger.history()] == ["failed"] * charged
    assert not Path("release.json").exists()


def test_version_loads_nothing_heavy():
    run = [sys.executable, "-X", "importtime", "-m", "sfumato.cli", "--version"]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout == f"sfumato {__version__}\n"
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "typer" in loaded
    assert not loaded & {"numpy", "scipy", "sklearn", "pyarrow", "numba", "matplotlib", "pandas"}


def test_without_typer(tmp_path):
    script = "import sys; sys.modules['typer'] = None; from sfumato.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 70
    assert done.stderr == "error: the command needs typer: pip install 'sfumato[cli]'\n"


def options(command, path=()):
    """Commands and their options, of all groups."""
    for name, child in getattr(command, "commands", {}).items():
        yield from options(child, (*path, name))
    for parameter in command.params:
        if parameter.param_type_name == "option" and not {"--help", "--show-completion"} & {*parameter.opts}:
            yield " ".join(path), parameter


def test_help_has_an_example_of_every_option():
    found = list(options(typer.main.get_command(app)))
    assert len(found) > 40
    bare = [
        (path, option.opts)
        for path, option in found
        if option.opts[-1] not in (option.help or "") and option.opts != ["--install-completion"]
    ]
    assert bare == []


def test_ledgers_for_programs(shell):
    shell("ledger", "create", "b.db", "trips", "--epsilon", 2)
    Ledger("b.db", "trips").charge(Budget(0.5), method="DPM", plan="", seeded=False)
    (shown,) = json.loads(shell("ledger", "show", "b.db", "--json").stdout)
    assert (shown["data set"], shown["spent"], shown["state"]) == ("trips", "epsilon=0.5", "open")
    (charge,) = json.loads(shell("ledger", "history", "b.db", "trips", "--json").stdout)
    assert (charge["method"], charge["spend"]) == ("DPM", "epsilon=0.5")
