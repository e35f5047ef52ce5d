"""The command on damaged files and odd options: an exit code that is documented, and no traceback."""

import os
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from tests.fuzz.cases import fuzz
from tests.fuzz.mutations import damaged_bytes
from tests.fuzz.tables import SECRET, SPELLED
from typer.testing import CliRunner

from sfumato import Budget, GridKMeans, Ledger
from sfumato.cli.app import app
from sfumato.cli.methods import BUILT_IN

pytestmark = pytest.mark.usefixtures("quick")

CODES = (0, 2, 3, 4, 5, 6)  # of docs/cli.md, without those of interrupts, audits and surprises
BOUNDS = 'east = [0, 40]\nnorth = [0, 30]\nward = { levels = ["icu", "er"] }\n'
CONFIG = """method = "lloyd-kmeans"
clusters = 2
epsilon = 0.5
columns = ["east", "north"]
max_rows_per_unit = 1
quiet = true

[bounds]
east = [0, 40]
north = [0, 30]

[set]
n_iter = 2
"""


@cache
def files():
    """What a user of the command has: tables, bounds, a configuration, a ledger and a release."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"east": rng.normal(20, 4, 60), "north": rng.normal(10, 2, 60), "who": np.arange(60)}
    )
    frame["ward"], frame["secret"] = "icu", SECRET
    with tempfile.TemporaryDirectory() as folder:
        frame.to_csv(Path(folder, "table.csv"), index=False)
        frame.to_parquet(Path(folder, "table.parquet"))
        frame.to_feather(Path(folder, "table.feather"))
        Path(folder, "bounds.toml").write_text(BOUNDS)
        Path(folder, "config.toml").write_text(CONFIG)
        Ledger.create(Path(folder, "ledger.db"), "trips", Budget(9))
        model = GridKMeans(2, bounds=(0, 40), max_cells=9).fit(frame[["east", "north"]])
        model.release_.save(Path(folder, "release.json"))
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


names = [
    "table.csv",
    "table.parquet",
    "table.feather",
    "bounds.toml",
    "config.toml",
    "ledger.db",
    "release.json",
]
tables = st.sampled_from(names[:3] * 3 + [*names[3:], "missing.csv", ".", "*.csv", "", "table.*"])
numbers = st.sampled_from(["1", "0.5", "2", "1", "0", "-1", "nan", "inf", "1e-300", "1e400", "x", "1/3", ""])
marks = st.sampled_from([",", ";", ".", "tab", "|", "", "ab", "é", "1", "\n", '"', " "])
few = st.sampled_from(["1", "2", "3", "3", "0", "-1", "1.5", "x", "99999999999999999999"])
OPTIONS = {
    "--epsilon": numbers,
    "--delta": st.sampled_from(["0", "1e-6", "1", "nan", "x"]),
    "--rho": numbers,
    "--clusters": few,
    "--bounds": st.sampled_from(
        [
            "0,40",
            "0,40",
            "bounds.toml",
            "bounds.toml",
            "private",
            "1,0",
            "0",
            "x,y",
            "config.toml#bounds",
            "bounds.toml#x",
            ".",
        ]
    ),
    "--estimate-bounds": numbers,
    "--columns": st.sampled_from(["east,north", "east", "ward", "none", ",", "secret,east", "east,east"]),
    "--unit": st.sampled_from(["who", "none", "east"]),
    "--max-rows-per-unit": few,
    "--missing": st.sampled_from(
        ["drop", "error", "x", "east=3", "ward=icu", "ward=x", "=", "east=", "a=1,b"]
    ),
    "--outside": st.sampled_from(["drop", "clip", "x"]),
    "--delimiter": marks,
    "--decimal": marks,
    "--thousands": marks,
    "--quote": marks,
    "--encoding": st.sampled_from(["utf-8", "latin-1", "utf-16", "cp1252", "utf-7", "base64", "x", ""]),
    "--names": st.sampled_from(["east,north,who,ward,secret", "east", "east,east", ",", "1,2"]),
    "--date-format": st.sampled_from(["%d.%m.%Y", "%Y", "%", "%Q", ""]),
    "--missing-values": st.sampled_from(["icu", "?,", ",", "20"]),
    "--set": st.sampled_from(
        ["n_iter=1", "max_cells=9", "t=x", "=", "epsilon=1", "base=5", "max_depth=[1]", "n_clusters=\\"]
    ),
    "--config": st.sampled_from(["config.toml", "bounds.toml", "missing.toml"]),
    "--seed": few,
    "--ledger": st.sampled_from(["ledger.db", "table.csv", "missing.db", "."]),
    "--dataset": st.sampled_from(["trips", "none", ""]),
}
methods = st.sampled_from([*BUILT_IN, "x"])
outs = st.sampled_from(["out.csv", "out.parquet", "x", "."])


@st.composite
def commands(draw):
    """Arguments of a command that reads files."""
    table, some = draw(tables), draw(st.lists(st.sampled_from(sorted(OPTIONS)), max_size=2))
    odd = [part for name in some for part in (name, draw(OPTIONS[name]))]
    fit = ["fit", table, "--method", draw(methods), "--out", "out.json", *odd]
    chosen = [*fit, "--bounds", "0,40", "--columns", "east,north", "--epsilon", "1"]
    kinds = [
        chosen,
        chosen,
        ["fit", table, "--config", "config.toml", "--out", "out.json", *odd],
        [*fit, "--bounds", "bounds.toml", "--epsilon", "1"],
        [*chosen, "--ledger", "ledger.db", "--dataset", "trips"],
        [
            "predict",
            "release.json",
            table,
            "--out",
            draw(outs),
        ],
        ["predict", "release.json", table, "--out", "out.csv", "--keep", draw(OPTIONS["--columns"])],
        ["export", "release.json", "--geojson", "out.geojson", "--geoparquet", "out.parquet"],
        ["export", draw(st.sampled_from(["release.json", table])), "--csv", draw(outs), "--force"],
        ["check", table, *odd, "--bounds", draw(st.sampled_from(["bounds.toml", "0,40", "private"]))],
        ["check", table, "--config", "config.toml", *odd],
        ["ledger", "show", draw(st.sampled_from(["ledger.db", table])), "--json"],
        ["ledger", "history", "ledger.db", "trips"],
        ["ledger", "create", "ledger.db", draw(OPTIONS["--dataset"]), "--epsilon", draw(numbers)],
        [
            "plan",
            "--method",
            draw(methods),
            "--columns-number",
            draw(few),
            "--epsilon",
            draw(numbers),
            "--rows",
            draw(few),
        ],
    ]
    return draw(st.sampled_from(kinds))


@fuzz(few=25, share=0.08, data=st.data())
def test_commands(shard, data):
    arguments = data.draw(commands())
    damaged = data.draw(st.sampled_from([None, *names]))
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files().items():
            Path(folder, name).write_bytes(data.draw(damaged_bytes(content)) if name == damaged else content)
        before = Path.cwd()
        os.chdir(folder)
        try:
            done = CliRunner().invoke(app, arguments)
        finally:
            os.chdir(before)
    assert done.exit_code in CODES, (arguments, done.output, done.exception)
    assert isinstance(done.exception, SystemExit | None)
    assert "Traceback" not in done.output
    assert not any(secret in done.output for secret in SPELLED)
