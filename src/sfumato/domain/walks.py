"""Walks of rows down a binary tree of public splits, many rows at a time."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from sfumato.domain.arrays import FloatArray, IntArray

TOGETHER = 64  # rows that walk side by side: none waits for the others' reads


class Steps(NamedTuple):
    """A tree as the kernel walks it: inner nodes, then leaves, each of which is its own child."""

    columns: IntArray  # (n_nodes,)
    thresholds: FloatArray  # (n_nodes,)
    children: IntArray  # (2 n_nodes,); left and right child of each node, side by side
    depth: int  # steps after which every row is at a leaf
    n_inner: int


def steps_of(columns: IntArray, thresholds: FloatArray, children: IntArray) -> Steps:
    """Steps of a tree whose inner nodes come before their children. A child is a node, or ``-1 - leaf``."""
    n_inner = len(columns)
    leaves = np.arange(n_inner, 2 * n_inner + 1)
    inner = np.where(children < 0, n_inner - 1 - children, children)
    depths = np.zeros(2 * n_inner + 1, dtype=np.int64)
    for node, pair in enumerate(inner):
        depths[pair] = depths[node] + 1
    return Steps(
        np.concatenate([columns, np.zeros(n_inner + 1, dtype=np.int64)]),
        np.concatenate([thresholds, np.zeros(n_inner + 1)]),
        np.concatenate([inner.ravel(), np.repeat(leaves, 2)]),
        int(depths.max()),
        n_inner,
    )


def walk(rows: FloatArray, steps: Steps) -> IntArray:
    """Leaf of each row: it goes left where its column is below the threshold."""
    out = np.empty(len(rows), dtype=np.int64)
    _fill_leaves(rows, *steps, out)
    return out


@numba.njit(cache=True, nogil=True)
def _fill_leaves(
    rows: FloatArray,
    columns: IntArray,
    thresholds: FloatArray,
    children: IntArray,
    depth: int,
    n_inner: int,
    out: IntArray,
) -> None:
    for first in range(0, rows.shape[0], TOGETHER):
        some = out[first : first + TOGETHER]
        take_steps(rows[first : first + TOGETHER], columns, thresholds, children, depth, some)
        for i in range(some.size):
            some[i] -= n_inner


@numba.njit(cache=True, nogil=True)
def take_steps(
    rows: FloatArray,
    columns: IntArray,
    thresholds: FloatArray,
    children: IntArray,
    depth: int,
    out: IntArray,
) -> None:
    """Node at which each of a few rows ends. There is no branch: a row that is at its leaf stays there."""
    for i in range(out.size):
        out[i] = 0
    for _ in range(depth):
        for i in range(out.size):
            node = np.uint64(out[i])
            is_right = rows[i, np.uint64(columns[node])] >= thresholds[node]
            out[i] = children[node + node + np.uint64(is_right)]
