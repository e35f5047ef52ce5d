"""Files that a project carries agree with `pyproject.toml` and the Makefile."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("CITATION.cff", "version: {}"),
        ("recipe/recipe.yaml", '  version: "{}"'),
        ("CHANGELOG.md", "## {} (unreleased)"),
    ],
)
def test_the_version_is_the_same_everywhere(name, line):
    assert line.format(PROJECT["project"]["version"]) in text(name).splitlines()


def test_the_recipe_asks_for_what_the_project_asks_for():
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"], *extras["cli"], *extras["report"]]
    wanted = {re.sub(r"(>=)", r" \1", one).replace("matplotlib", "matplotlib-base") for one in wanted}
    run = text("recipe/recipe.yaml").split("  run:\n")[1].split("\n\n")[0]
    assert {line.strip("- ") for line in run.splitlines()} == wanted | {"python >=3.11"}
    assert PROJECT["project"]["requires-python"] == ">=3.11"


def test_hooks_run_what_make_check_runs():
    (line,) = [line for line in text("Makefile").splitlines() if "ruff check . &&" in line]
    hooks = re.findall(r"entry: (.*)", text(".pre-commit-config.yaml"))
    assert hooks == [command.replace("$(BIN)", ".venv/bin").strip() for command in line.split("&&")]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_may_do_little(path):
    content = path.read_text()
    used = re.findall(r"uses: (\S+)(.*)", content)
    assert used
    for action, version in used:
        if not action.startswith("./"):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", version)
    assert "\npermissions:\n  contents: read\n" in content
    assert "secrets." not in content
    assert content.count("actions/checkout@") == content.count("persist-credentials: false")


def test_workflows_run_targets_of_the_makefile():
    targets = set(re.findall(r"^\.PHONY: (.*)$", text("Makefile"), re.MULTILINE)[0].split())
    run = [target for path in WORKFLOWS for target in re.findall(r"run: make (\S+)", path.read_text())]
    assert {"check", "test", "test-all", "test-oldest", "dist"} == set(run) <= targets


def test_the_policy_names_the_oldest_versions():
    extras = PROJECT["project"]["optional-dependencies"]
    found = re.findall(r"^\| ([\w-]+)(?: \(\w+\))? \| ([\d.]+) \|", text("docs/policies.md"), re.MULTILINE)
    stated = {name.lower(): version for name, version in found}
    wanted = [*PROJECT["project"]["dependencies"], *extras["cli"], *extras["report"], *extras["spark"]]
    bounds = {"python": "3.11"} | dict(one.split(">=") for one in wanted)
    assert stated == {name: bounds[name] for name in stated}
    assert {"python", "numpy", "scikit-learn", "dp-accounting", "typer"} <= set(stated)


def test_every_version_of_python_is_tested():
    newest = re.findall(r"^\| Python \| [\d.]+ \| ([\d.]+) \|", text("docs/policies.md"), re.MULTILINE)[0]
    versions = ", ".join(f'"3.{minor}"' for minor in range(11, int(newest.split(".")[1]) + 1))
    assert f"python: [{versions}]" in text(".github/workflows/ci.yml")


def test_the_constraints_of_the_oldest_versions():
    found = {}
    exec(compile(text(".ci/oldest.py"), ".ci/oldest.py", "exec"), found)
    lines = found["oldest"](PROJECT)
    assert {"numpy==2.0", "dp-accounting==0.5", "pytest==8.3", "typer==0.16"} <= set(lines)
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in lines)


@pytest.mark.parametrize(
    "name", ["CITATION.cff", ".pre-commit-config.yaml", "recipe/recipe.yaml", *WORKFLOWS]
)
def test_a_yaml_reader_reads_them(name):
    assert pytest.importorskip("yaml").safe_load(text(name))
