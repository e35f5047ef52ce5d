"""`sfumato registry`: an entry from a release file, and a list of what is missing."""

from pathlib import Path

import pytest

from sfumato import Release
from sfumato.registry import as_yaml, make_entry

ANSWERS = """
[basic]
name = "Places of trips"
data_curators = ["City", "Cabs"]
publication_date = 2026-11-30

[administrative]
registry_authors = ["A. Clerk"]
"""


@pytest.fixture
def release(call, trips, bounds):
    call("fit", trips, "--clusters", 3, "--epsilon", 2, "--bounds", bounds, "--unit", "cab", "--quiet")
    return Release.load("release.json")


def test_what_is_missing_is_listed(call, release, silent_about):
    done = call("registry", "release.json")
    assert done.stdout == "entry: entry.yaml\n"
    assert "to be filled in: basic.name (name of what is published)\n" in done.stderr
    assert done.stderr.count("to be filled in: ") == done.stderr.count("\n") == 11
    assert Path("entry.yaml").read_text() == as_yaml(make_entry(release))
    silent_about(done.output + Path("entry.yaml").read_text())


def test_answers(call, release):
    Path("answers.toml").write_text(ANSWERS)
    options = ["--set", "basic.name=Other places", "--set", "administrative.sources=x=y", "--set", "tier=2"]
    options += ["--set", "basic.data_curators=City", "--set", "basic.data_curators=Country"]
    done = call("registry", "release.json", "--out", "e.yaml", "--answers", "answers.toml", *options)
    assert "basic.name" not in done.stderr
    answers = {
        "tier": 2,
        "basic.name": "Other places",
        "basic.data_curators": ["City", "Country"],
        "basic.publication_date": "2026-11-30",
        "administrative.registry_authors": "A. Clerk",
        "administrative.sources": "x=y",
    }
    assert Path("e.yaml").read_text() == as_yaml(make_entry(release, answers))
    assert call("registry", "release.json", "--out", "e.yaml", "--force", "--quiet").output == ""


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        (["--set", "name"], "FIELD=TEXT"),
        (["--set", "=x"], "FIELD=TEXT"),
        (["--set", "name=x"], "Try 'basic.name'"),
        (["--set", "privacy_loss.privacy_parameters=0"], "must come from the release"),
        (["--set", "basic.publication_date=soon"], "a date such as"),
        (["--answers", "no.toml"], "must be a TOML file"),
        (["--answers", "list.toml", "--set", "basic.name=x"], "must be a table"),
        (["--out", "old.yaml"], "--force"),
    ],
)
def test_refused(call, release, options, fix):
    Path("old.yaml").write_text("precious")
    Path("list.toml").write_text("basic = 3\n")
    before = sorted(Path().iterdir())
    assert fix in call("registry", "release.json", *options, code=2).stderr
    assert sorted(Path().iterdir()) == before
    assert Path("old.yaml").read_text() == "precious"


def test_a_seeded_release(call, trips, bounds):
    call("fit", trips, "--clusters", 3, "--epsilon", 2, "--bounds", bounds, "--quiet", "--seed", 1)
    done = call("registry", "release.json", code=2)
    assert "seeded: do not publish" in done.stderr
    assert not Path("entry.yaml").exists()


def test_not_a_release(call):
    assert "must be a release file" in call("registry", "no.json", code=6).stderr
