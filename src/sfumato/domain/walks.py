"""Walks of rows down a binary tree of public splits, many rows at a time."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from sfumato.domain.arrays import FloatArray, IntArray
from sfumato.domain.few_blocks import quickest

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


def walk(rows: FloatArray, steps: Steps, starts: IntArray | None = None) -> IntArray:
    """Leaf of each row: it goes left where its column is below the threshold.

    Parameters
    ----------
    rows : float array of shape (n, d)
    steps : Steps
    starts : int array of shape (n,), optional
        Node at which each row begins, with `steps.depth` steps to the farthest leaf. By default, the first.
    """
    out = np.zeros(len(rows), dtype=np.int64) if starts is None else starts.copy()
    quickest(_fill_leaves, _leaves_with_numpy)(rows, *steps, out)
    return out


def steps_below(steps: Steps, nodes: IntArray) -> Steps:
    """The same steps, as many as rows take that begin at some of the nodes."""
    left = np.zeros(len(steps.columns), dtype=np.int64)
    for node in range(steps.n_inner - 1, -1, -1):  # children come after their parents
        left[node] = 1 + max(left[steps.children[2 * node]], left[steps.children[2 * node + 1]])
    return steps._replace(depth=int(left[nodes].max()))


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
    """Move each of a few rows on from its node. There is no branch: a row that is at its leaf stays there."""
    for _ in range(depth):
        for i in range(out.size):
            node = np.uint64(out[i])
            is_right = rows[i, np.uint64(columns[node])] >= thresholds[node]
            out[i] = children[node + node + np.uint64(is_right)]


def _leaves_with_numpy(
    rows: FloatArray,
    columns: IntArray,
    thresholds: FloatArray,
    children: IntArray,
    depth: int,
    n_inner: int,
    out: IntArray,
) -> None:
    values, firsts, nodes = rows.ravel(), np.arange(len(rows)) * rows.shape[1], out
    for _ in range(depth):
        is_right = values[firsts + columns[nodes]] >= thresholds[nodes]
        nodes = children[nodes + nodes + is_right]
    out[:] = nodes - n_inner
