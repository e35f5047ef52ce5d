"""`sfumato profile`: the sentences and numbers of a release, and nothing else."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sfumato import Release
from sfumato.public.profiles import wording
from sfumato.public.terms import Terms


@pytest.fixture
def release(call, stays):
    Path("b.toml").write_text(
        'east = [0, 40]\nnorth = [0, 30]\n[describe]\nward = { levels = ["icu", "er"] }\n'
    )
    call("fit", stays, "--clusters", 3, "--epsilon", 5, "--delta", 1e-6, "--bounds", "b.toml", "--quiet")
    return Release.load("release.json")


def test_a_sentence_and_a_table_for_each_cluster(call, release):
    pages = call("profile", "release.json").stdout.split("\n\nCluster ")
    assert len(pages) == release.profiles.n_clusters
    for number, page in enumerate(pages):
        sentence, _, head, size, *lines = page.removeprefix("Cluster ").splitlines()
        assert sentence == f"{number}. {release.profiles.sentence(number)}"
        assert head.split() == ["column", "statistic", "value", "95", "%", "interval", "whole", "table"]
        assert size.split()[1] == f"{release.profiles.size(number).value:,.0f}"
        median = release.profiles.quantile(number, "east", 0.5)
        (line,) = [line for line in lines if line.startswith("east") and "median" in line]
        unit = wording.unit_for((median.high - median.low) / 10)
        shown, low, high = (wording.number(value, unit) for value in median)
        assert f" {shown} " in line
        assert f" {low} to {high} " in line
        share = release.profiles.share(number, "ward")["icu"]
        (line,) = [line for line in lines if line.startswith("ward") and " icu " in line]
        assert f"{100 * share.value:.1f} %" in line


def test_a_share_that_noise_explains_is_not_told_as_a_number(call, stays):
    """No row misses a value: whatever the noise says, no share of missing values is read off it."""
    bounds = 'east = [0, 40]\nnorth = [0, 30]\n[describe]\nward = { levels = ["icu", "er", "never"] }\n'
    Path("b.toml").write_text(bounds)
    fit = ["--clusters", 3, "--epsilon", 0.5, "--delta", 1e-6, "--bounds", "b.toml", "--quiet"]
    for seed in range(3):
        call("fit", stays, *fit, "--seed", seed, "--force")
        entries = Release.load("release.json").profiles.rows()
        assert not any(entry["readable"] for entry in entries if entry["low"] == 0)
        lines = call("profile", "release.json").stdout.splitlines()
        noise = [line for line in lines if " missing " in line or " never " in line]
        assert len(noise) == 3 * 2, "rows that miss east or north are left out: no share is told"
        assert all(line.startswith("ward") for line in noise)
        for line in noise:
            if " 0.0 % to " in line:
                assert "under " in line or "unknown" in line


def test_a_time_of_day_is_told_as_one(call):
    rng = np.random.default_rng(0)
    hours = (rng.normal(np.repeat([8, 20], 2000), 1) % 24).round(3)
    Path("t.csv").write_text("x,hour\n" + "".join(f"{h > 14:d},{h}\n" for h in hours))
    Path("b.toml").write_text("x = [0, 1]\nhour = { cycle = [0, 24] }\n")
    call("fit", "t.csv", "--clusters", 2, "--epsilon", 5, "--delta", 1e-6, "--bounds", "b.toml", "--quiet")
    lines = call("profile", "release.json").stdout.splitlines()
    told = [line.split() for line in lines if "mean direction" in line]
    assert sorted(words[3][:2] for words in told) in (["07", "19"], ["07", "20"], ["08", "19"], ["08", "20"])
    assert all(words[3][2] == ":" for words in told)


def test_numbers_have_the_digits_that_their_noise_leaves(call):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(-73.95, 0.05, 4000).round(5), rng.integers(2011, 2016, 4000)])
    np.savetxt("t.csv", rows, "%.5f,%d", header="lon,year", comments="")
    Path("b.toml").write_text("lon = [-74.3, -73.65]\nyear = [2011, 2015]\n")
    call("fit", "t.csv", "--clusters", 1, "--epsilon", 5, "--bounds", "b.toml", "--quiet")
    lines = [line.split() for line in call("profile", "release.json").stdout.splitlines() if "median" in line]
    (_, _, value, low, _, high, whole), (_, _, year, *_) = lines
    assert float(low) <= float(value) <= float(high)
    assert float(low) < float(high)
    assert whole == value
    assert year == "2013"


def test_one_cluster_in_other_words(call, release):
    Path("l.toml").write_text("[labels]\neast = 'km east'\n")
    done = call("profile", "release.json", "--cluster", 1, "--noun", "stays", "--labels", "l.toml")
    assert done.stdout.startswith(
        f"Cluster 1. {release.profiles.sentence(1, 'stays', {'east': 'km east'})}\n"
    )
    assert "Cluster 0" not in done.stdout


def test_numbers_for_programs(call, release):
    said = json.loads(call("profile", "release.json", "--json").stdout)
    assert [one["sentence"] for one in said["clusters"]] == [release.profiles.sentence(c) for c in range(3)]
    assert said["clusters"][0]["distinct"][0]["column"] in release.profiles.names
    assert said["numbers"] == json.loads(json.dumps(release.profiles.rows()))
    done = call("profile", "release.json", "--csv", "p.csv")
    assert done.stdout == "profiles: p.csv\n"
    with Path("p.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(release.profiles.rows())
    assert rows[0]["cluster"] == "table"
    assert float(rows[0]["value"]) == release.profiles.size().value
    call("profile", "release.json", "--csv", "p.csv", code=2)
    call("profile", "release.json", "--csv", "p.csv", "--force", "--quiet", "--cluster", 2)
    with Path("p.csv").open(newline="") as file:
        assert {row["cluster"] for row in csv.DictReader(file)} == {"2"}


def test_what_is_refused(call, release, stays):
    assert "must be from 0 to 2, got 3" in call("profile", "release.json", "--cluster", 3, code=2).stderr
    fit = ["--epsilon", 5, "--bounds", "b.toml", "--profiles", 0, "--out", "plain.json", "--quiet"]
    call("fit", stays, "--clusters", 3, *fit)
    done = call("profile", "plain.json", code=2)
    assert "plain.json must have profiles, got none" in done.stderr
    assert "must be a release file" in call("profile", "no.json", code=6).stderr


def with_terms(release, **changes):
    counts, sizes = np.array([[300, 1], [2, 300], [5, 4]]), np.array([500, 500, 500])
    terms = Terms(("cat", "bank"), counts, sizes, "discrete Gaussian", 5.0, 4, 1.0)
    replace(release, terms=terms, **changes).save("texts.json")
    return terms


def test_typical_words_stand_above_the_table(call, release):
    terms = with_terms(release)
    done = call("profile", "texts.json", "--cluster", 0).stdout.splitlines()
    assert done[1] == f"Typical words: {terms.sentence(0)}"
    as_json = json.loads(call("profile", "texts.json", "--json").stdout)
    assert as_json["terms"] == terms.rows()


def test_words_alone(call, release):
    terms = with_terms(release, profiles=None)
    lines = call("profile", "texts.json").stdout.splitlines()
    assert lines == [f"Cluster {c}. Typical words: {terms.sentence(c)}" for c in range(3)]
    call("profile", "texts.json", "--csv", "words.csv")
    with Path("words.csv").open() as file:
        assert [row["term"] for row in csv.DictReader(file)] == ["cat", "bank"]
    assert json.loads(call("profile", "texts.json", "--cluster", 2, "--json").stdout) == {"terms": []}
    assert call("profile", "texts.json", "--cluster", 3, code=2).stdout == ""
