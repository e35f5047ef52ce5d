"""A table whose values would be recognised if the command printed them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app

N_ROWS = 4327
COMMAND = Path(sys.executable).with_name("sfumato")


@pytest.fixture(autouse=True)
def in_scratch_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture(scope="session")
def frame():
    """Three places, 1500 cabs, two wards."""
    rng = np.random.default_rng(0)
    centers = np.array([[8, 8], [30, 9], [20, 24]])
    homes = centers[rng.integers(3, size=N_ROWS)] + rng.normal(scale=1.5, size=(N_ROWS, 2))
    return pd.DataFrame(
        {
            "cab": rng.integers(0, 1500, N_ROWS),
            "east": homes[:, 0],
            "north": homes[:, 1],
            "ward": rng.choice(["icu", "er"], N_ROWS),
            "day": np.datetime64("2026-01-01", "us") + rng.integers(0, 180, N_ROWS) * np.timedelta64(1, "D"),
        }
    )


@pytest.fixture
def trips(frame, tmp_path):
    """The table in a CSV file that the docs can do with: two columns of numbers, and the cab."""
    frame[["cab", "east", "north"]].to_csv(tmp_path / "trips.csv", index=False)
    return "trips.csv"


@pytest.fixture
def stays(frame, tmp_path):
    frame.to_parquet(tmp_path / "stays.parquet")
    return "stays.parquet"


@pytest.fixture
def bounds(tmp_path):
    (tmp_path / "bounds.toml").write_text("east = [0, 40]\nnorth = [0, 30]\n")
    return "bounds.toml"


@pytest.fixture
def call():
    """Run a command in this process, and check its exit code."""

    def run(*arguments, code=0, **options):
        done = CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
        assert done.exit_code == code, done.output
        return done

    return run


@pytest.fixture
def shell():
    """Run the installed command in a process of its own, and check its exit code."""

    def run(*arguments, code=0):
        done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done

    return run


@pytest.fixture
def silent_about(frame):
    """Check that a text holds neither a value of the table nor its number of rows."""

    def check(text):
        values = frame[["east", "north"]].to_numpy().ravel()
        assert not any(f"{value:.4f}"[:-1] in text for value in values if abs(value) > 1)
        assert str(N_ROWS) not in text
        assert f"{N_ROWS:,}" not in text

    return check
