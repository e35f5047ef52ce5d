"""Two hospitals and a curator on the command line: the release of a fit on all rows."""

import json
from pathlib import Path

import pandas as pd
import pytest

from sfumato import Budget, Ledger
from sfumato.holders import State, Transcript

FIT = ["--method", "grid-kmeans", "--clusters", 3, "--epsilon", 1]
LEDGERS = ("curator", "north", "south")


@pytest.fixture
def tables(frame):
    frame.to_parquet("all.parquet")
    frame[:1000].to_parquet("north.parquet")
    frame[1000:].to_csv("south.csv", index=False, sep=";")
    return {"north": ["north.parquet"], "south": ["south.csv", "--delimiter", ";"]}


def rounds(call, tables, *of_curator, **of_holders):
    """Run both commands until the transcript is complete."""
    n_rounds = 0
    while not Transcript.load("joint.json").is_complete:
        for name, table in tables.items():
            call("fold", "joint.json", *table, "--as", name, *of_holders.get(name, ()))
        call("combine", "joint.json", "north.state", "south.state", *of_curator)
        n_rounds += 1
    return n_rounds


def content(path):
    found = json.loads(Path(path).read_text())
    return {name: value for name, value in found.items() if name not in ("created", "sha256")}


def test_two_holders_get_the_release_of_all_rows(call, tables, bounds):
    said = call("declare", "--holders", "north,south", *FIT, "--bounds", bounds, "--seed", 3).stdout
    assert "send joint.json to all holders" in said
    assert rounds(call, tables) > 1
    call("fit", "all.parquet", *FIT, "--bounds", bounds, "--seed", 3, "--out", "pooled.json")
    assert content("release.json") == content("pooled.json")


def test_people_and_one_pair_of_bounds(call, tables, frame):
    whole = frame.sort_values("cab", ignore_index=True)
    cut = int(whole.index[whole.cab == 500][0])
    whole[:cut].to_parquet("north.parquet")
    whole[cut:].to_csv("south.csv", index=False, sep=";")
    shared = [*FIT, "--bounds", "0,40", "--columns", "east,north", "--unit", "cab", "--seed", 3]
    assert "--max-holders-per-unit 1" in call("declare", "--holders", "north,south", *shared, code=2).stderr
    call("declare", "--holders", "north,south", *shared, "--max-holders-per-unit", 1)
    rounds(call, tables)
    call("fit", "all.parquet", *shared, "--out", "pooled.json")
    assert content("release.json") == content("pooled.json")


def test_one_line_in_each_ledger(call, tables, bounds):
    for name in LEDGERS:
        Ledger.create(f"{name}.db", "stays", Budget(1))
    own = {name: ["--ledger", f"{name}.db", "--dataset", "stays"] for name in LEDGERS}
    call("declare", "--holders", "north,south", *FIT, "--bounds", bounds, *own["curator"])
    rounds(call, tables, *own["curator"], north=own["north"], south=own["south"])
    for name, table in tables.items():
        assert "complete" in call("fold", "joint.json", *table, "--as", name, *own[name]).stdout
    for name in LEDGERS:
        (charge,) = Ledger(f"{name}.db", "stays").history()
        assert (charge.spend, charge.outcome) == (Budget(1), "released")


def test_a_drop_out_is_noticed_before_anything_is_released(call, tables, bounds):
    call("declare", "--holders", "north,south", *FIT, "--bounds", bounds)
    call("fold", "joint.json", *tables["north"], "--as", "north")
    before = content("joint.json")
    said = call("combine", "joint.json", "north.state", code=2).stderr
    assert "'south' is missing" in said
    assert "Nothing was released" in said
    said = call("combine", "joint.json", "north.state", "south.state", code=2).stderr
    assert "south.state must be a state of a holder" in said
    assert content("joint.json") == before


def test_a_lost_release_is_made_again_from_the_transcript(call, tables, bounds):
    call("declare", "--holders", "north,south", *FIT, "--bounds", bounds)
    rounds(call, tables)
    call("combine", "joint.json", "--out", "again.json")
    assert content("again.json") == content("release.json")


def test_a_state_says_nothing_on_the_screen(call, tables, bounds):
    call("declare", "--holders", "north,south", *FIT, "--bounds", bounds)
    done = call("fold", "joint.json", *tables["north"], "--as", "north")
    assert "send it to the curator alone" in done.stderr
    assert str(int(State.load("north.state").values[0])) not in done.stdout + done.stderr


def test_files_that_are_something_else(call, tables, bounds):
    call("declare", "--holders", "north,south", *FIT, "--bounds", bounds)
    assert "exists already" in call("declare", "--holders", "a,b", *FIT, "--bounds", bounds, code=2).stderr
    assert "`--bounds` must be given" in call("declare", "--holders", "a,b", *FIT, "--force", code=2).stderr
    own = [*tables["north"], "--as", "north"]
    assert "must be a transcript" in call("fold", "nothing.json", *own, code=6).stderr
    assert "not a state file" in call("fold", "joint.json", *own, "--out", bounds, code=6).stderr
    assert "east" in Path(bounds).read_text()
    pd.DataFrame({"a": [1]}).to_parquet("other.parquet")
    assert "column" in call("fold", "joint.json", "other.parquet", "--as", "north", code=2).stderr
