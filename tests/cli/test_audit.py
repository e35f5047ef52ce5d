import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import COMMAND

QUICK = ["--method", "density-tree", "--set", "cell=0.5", "--runs", 60]

PLUG_IN = '''
import numpy as np

from sfumato import GridKMeans
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.public.models import CentreModel
from sfumato.domain import Grid


class Branching(GridKMeans):
    """Leaves out clusters without rows, by their exact counts."""

    def _cluster(self, curator):
        curator.count("rows")
        grid = Grid.over(curator.domain, 2)
        noisy = curator.cells("grid", grid)
        raw_counts = curator._engine.fold(CellCounts(grid))
        kept = raw_counts > 0
        kept[0] = True
        return CentreModel(grid.centers()[kept], noisy.values[kept].astype(float))
'''


@pytest.fixture
def plugged(tmp_path):
    """A package with a broken method, installed as far as entry points are concerned."""
    (tmp_path / "branching.py").write_text(PLUG_IN)
    facts = tmp_path / "branching-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: branching\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[sfumato.methods]\nbranching = branching:Branching\n")

    def run(*arguments):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.run(
            [COMMAND, *map(str, arguments)], capture_output=True, text=True, env=environment
        )

    return run


def test_a_broken_method_of_another_package_is_caught(plugged):
    done = plugged(
        "audit", "--method", "branching", "--epsilon", 1, "--runs", 120, "--pair", "emptied cluster"
    )
    assert done.returncode == 7, done.stderr
    assert "emptied cluster" in done.stdout
    assert "BROKEN" in done.stdout
    assert "branching breaks its promise" in done.stdout
    assert "1 of 1 pairs" in done.stderr


@pytest.mark.slow
def test_a_sound_method_is_not(shell, tmp_path):
    done = shell("audit", *QUICK, "--epsilon", 1, "--pair", "outlier", "--pair", "person", "--out", "a.html")
    assert "no contradiction" in done.stdout
    assert "proves nothing" in done.stdout
    page = (tmp_path / "a.html").read_text()
    assert "outlier" in page
    assert "epsilon=1" in page


@pytest.mark.parametrize("budget", [["--epsilon", 1, "--delta", 1e-6], ["--rho", 0.5]])
def test_json(call, budget):
    options = [*QUICK, *budget, "--pair", "nobody", "--json", "--quiet", "--out", "a.json", "--unseeded"]
    done = call("audit", *options)
    said = json.loads(done.stdout)
    assert said == json.loads(Path("a.json").read_text())
    assert (said["broken"], said["seeded"], said["runs"]) == (False, False, 60)
    (found,) = said["pairs"]
    assert found["pair"] == "nobody"
    assert found["lower"] <= found["promise"]
    assert done.stderr == ""


@pytest.mark.slow
def test_all_pairs_are_the_default(call):
    done = call("audit", *QUICK, "--epsilon", 1, "--json", "--quiet")
    names = {found["pair"] for found in json.loads(done.stdout)["pairs"]}
    assert names == {"outlier", "duplicate", "emptied cluster", "border", "nobody", "person", "patient"}


def test_white_box(call):
    done = call(
        "audit", *QUICK[:-2], "--epsilon", 1, "--white-box", "--paths", 1, "--pair", "person", "--json"
    )
    (found,) = json.loads(done.stdout)["pairs"]
    assert (found["lost"], found["broken"], found["paths"]) == (1.0, False, 2)
    done = call("audit", *QUICK[:-2], "--rho", 0.5, "--white-box", "--pair", "outlier", "--out", "meter.html")
    assert "density-tree lost at most 100.0% of its promise on these pairs" in done.stdout
    assert "100% of the promise" in Path("meter.html").read_text()


@pytest.mark.slow
def test_white_box_searches_for_the_worst_neighbours(call):
    done = call("audit", *QUICK[:-2], "--epsilon", 1, "--white-box", "--paths", 1, "--json", "--quiet")
    found = json.loads(done.stdout)["pairs"]
    assert [one["pair"] for one in found[-2:]] == ["worst row found", "worst person found"]
    assert len(found) == 9


def test_white_box_finds_a_broken_method(plugged):
    options = ["--method", "branching", "--epsilon", 1, "--white-box", "--pair", "emptied cluster"]
    done = plugged("audit", *options, "--paths", 1)
    assert done.returncode == 7, done.stderr
    assert "branching breaks its promise" in done.stdout
    assert "with the same answers, the result differs" in done.stdout


def test_refusals(call):
    for options, word in [
        (["--epsilon", 1, "--pair", "twins"], "--pair"),
        (["--epsilon", 1, "--out", "a.pdf"], "--out"),
        (["--epsilon", 1, "--confidence", 1], "--confidence"),
        ([], "--epsilon"),
        (["--epsilon", 1, "--rho", 1], "both"),
        (["--epsilon", 1, "--clusters", 3], "--clusters"),
    ]:
        done = call("audit", *QUICK, *options, code=2)
        assert word in done.stderr
        assert done.stdout == ""
    call("audit", "--epsilon", 1, code=2)
    call("audit", "--method", "dpm", "--epsilon", 1, "--runs", 10, code=2)


def test_a_file_is_not_overwritten_unasked(call):
    Path("a.json").write_text("mine")
    call("audit", *QUICK, "--epsilon", 1, "--out", "a.json", code=2)
    assert Path("a.json").read_text() == "mine"


def test_every_option_has_an_example(call):
    said = " ".join(call("audit", "--help").stdout.split())
    examples = ["--method dpm", "--runs 10000", "--pair outlier", "--seed 7", "--unseeded", "--jobs 2"]
    examples += ["--confidence 0.999", "--out audit.html", "--rho 0.1", "--delta 1e-6", "--set max_depth=5"]
    for example in examples:
        assert example in said
