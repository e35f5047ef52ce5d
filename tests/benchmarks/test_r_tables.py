"""Tables of R packages: which columns count, how bounds are written, and what is counted as bad."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import r_data, r_tables


@pytest.mark.parametrize(
    ("low", "high", "bounds"),
    [
        (17.0, 84.0, (0.0, 90.0)),
        (1912.0, 1984.0, (1910.0, 1990.0)),
        (-3.2, 1430.0, (-1000.0, 2000.0)),
        (0.031, 0.047, (0.03, 0.05)),
    ],
)
def test_bounds_are_round_and_hold_the_range(low: float, high: float, bounds: tuple[float, float]) -> None:
    assert r_data.rounded(low, high) == pytest.approx(bounds)


def test_bounds_hold_every_row() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.lognormal(0, 3, (50, 40)) * rng.choice([-1, 1], 40))
    for name, (low, high) in r_data.bounds_of(table).items():
        assert low <= table[name].min() < table[name].max() <= high


def test_codes_names_and_sparse_columns_are_left_out() -> None:
    table = pd.DataFrame(
        {
            "age": [20.0, 31.0, 42.0, 53.0, 64.0, np.nan],
            "sex": [0, 1, 0, 1, 0, 1],
            "personID": range(6),
            "rare": [1.0, 2.0, 3.0, np.nan, np.nan, np.nan],
            "town": list("abcdef"),
            "days": [1, 2, 3, 4, 5, 6],
        }
    )
    found = r_data.numeric(table)
    assert list(found.columns) == ["age", "days"]
    assert len(found) == 5


def row(n: int, ratio: float, bad: int, told: int) -> dict[str, object]:
    return {
        "shape": [n, 2],
        "k": 4,
        "epsilon": 1.0,
        "ratio": [ratio, 0.0],
        "seeds": 10,
        "bad": bad,
        "bad_and_warned": told,
        r_tables.PEER: [2 * ratio, 0.0],
    }


def test_settings_are_summed_up_by_rows_per_cluster() -> None:
    rows = [row(800, 1.0, 0, 0), row(900, 1.1, 2, 1), row(1_000, 1.5, 9, 9), row(9_000, 1.01, 0, 0)]
    found = r_tables.summary(rows, 150, 300)
    assert found == ["150 to 300", "3", "**1.100**, 1.200", "1.500", "2.20", "11 of 30", "10 of 11"]
    assert r_tables.summary(rows, 300, 600) == ["300 to 600", "0", *[""] * 5]
