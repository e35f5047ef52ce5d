"""Tables of any shape and type, some of which hold a secret that no message may tell."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
from hypothesis import strategies as st

SECRET = 987654.321
SPELLED = ("987654", "Lovelace")  # what a message must not hold
DTYPES = [
    "f8",
    "f4",
    "f2",
    "g",
    "?",
    "i1",
    "i2",
    "i4",
    "i8",
    "u1",
    "u2",
    "u4",
    "u8",
    ">f8",
    "O",
    "M8[s]",
    "m8[s]",
]
DTYPES += ["U20", "S20", "c16"]
VALUES = [SECRET, np.nan, np.inf, -np.inf, 5e-324, -1e-310, 1e308, -1e308, 1e154, 0.0, -0.0, 1e-160]


@st.composite
def arrays(draw, n_features=None):
    """An array, mostly of numbers in [-1, 1], some of them replaced."""
    n = draw(st.sampled_from([0, 1, 2, 7, 40, 40, 60]))
    d = n_features or draw(st.sampled_from([1, 2, 2, 2, 3, 5, 12]))
    rows = np.random.default_rng(draw(st.integers(0, 9))).normal(scale=0.4, size=(n, d)).clip(-1, 1)
    if draw(st.booleans()):
        rows[:] = rows[:1]
    for value in draw(st.lists(st.sampled_from(VALUES), max_size=2)):
        if rows.size:
            rows.flat[draw(st.integers(0, rows.size - 1))] = value
    return rows


@st.composite
def tables(draw, n_features=None):
    """The same in any container that a caller may hold it in."""
    rows = draw(arrays(n_features))
    return draw(st.sampled_from(CONTAINERS))(rows, draw)


def _cast(rows, draw):
    with np.errstate(all="ignore"):
        return np.nan_to_num(rows).astype(draw(st.sampled_from(DTYPES)), casting="unsafe")


def _frame(rows, draw):
    return pd.DataFrame(rows, columns=[f"c{j}" for j in range(rows.shape[1])])


def _arrow(rows, draw):
    named = {f"c{j}": pa.array(column, from_pandas=True) for j, column in enumerate(rows.T)}
    return pa.table(named) if named else pa.table({"c0": []})


def _people(rows, draw):
    """With a person, a category, a date and a decimal beside the numbers."""
    n = len(rows)
    who = draw(st.sampled_from([list(range(n)), [1] * n, [None] * n, ["Lovelace"] * n, [np.nan] * n]))
    table = _arrow(rows, draw).append_column("who", pa.array(who, from_pandas=True))
    table = table.append_column(
        "ward", pa.array(["icu", "er", None] * n, pa.string())[:n].dictionary_encode()
    )
    day = pa.array(
        [datetime.datetime(2026, 1, 1)] * n, pa.timestamp(draw(st.sampled_from(["s", "us", "ns"])))
    )
    return table.append_column("day", day)


def _odd(rows, draw):
    odd = [None, 5, "text.csv", "", {}, [], [[]], np.array(SECRET), [[1, 2], [3]], rows.tolist(), rows[:, 0]]
    odd += [
        np.zeros((2, 2, 2)),
        [["Lovelace", SECRET]],
        {"c0": [1.0]},
        object(),
        [[10**400]],
        pd.Series([1.0]),
    ]
    return draw(st.sampled_from(odd))


CONTAINERS = [
    lambda rows, draw: rows,
    lambda rows, draw: rows,
    lambda rows, draw: rows,
    _cast,
    _cast,
    _frame,
    _arrow,
    _people,
    _people,
    _odd,
    lambda rows, draw: rows.tolist(),
    lambda rows, draw: np.asfortranarray(rows),
    lambda rows, draw: np.repeat(rows, 2, axis=0)[::-2],
    lambda rows, draw: np.ma.masked_invalid(rows),
    lambda rows, draw: _frame(rows, draw).convert_dtypes(),
    lambda rows, draw: _frame(rows, draw).astype("category"),
    lambda rows, draw: pl.DataFrame(rows, schema=[f"c{j}" for j in range(rows.shape[1])]),
    lambda rows, draw: scipy.sparse.csr_array(rows),
    lambda rows, draw: _people(rows, draw).to_pandas(),
    lambda rows, draw: _arrow(rows, draw).to_batches()[0] if len(rows) else rows,
]
