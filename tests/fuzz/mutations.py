"""Damage: to the bytes of a file, and to a tree of JSON values."""

import copy
import json
import math

from hypothesis import strategies as st

NUMBERS = [
    0,
    1,
    -1,
    2,
    0.5,
    -0.0,
    5e-324,
    1e-160,
    1e140,
    1e160,
    -1e308,
    2**31,
    2**63,
    -(2**63),
    10**30,
    10**400,
]
TEXTS = [
    "",
    "0",
    "1/0",
    "-1",
    "nan",
    "1e999999",
    "array",
    "Domain",
    "CentreModel",
    "\ud800",
    "é\0",
    "x" * 10_000,
]
SHAPES = [None, True, [], {}, [0], [[0]], [1, 2, 3], {"type": "array"}, {"type": "Grid"}, float("nan")]
ODD = st.sampled_from([*NUMBERS, *TEXTS, *SHAPES]) | st.integers() | st.floats()


@st.composite
def damaged_bytes(draw, content):
    """The bytes with a few places flipped, cut out, doubled, overwritten or cut off."""
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, max(len(content) - 1, 0)))
        stop = start + draw(st.sampled_from([1, 1, 2, 8, 100, 4096]))
        part = content[start:stop]
        match draw(st.sampled_from(["flip", "drop", "double", "write", "insert", "truncate"])):
            case "flip" if part:
                content[start] ^= 1 << draw(st.integers(0, 7))
            case "drop":
                del content[start:stop]
            case "double":
                content[start:start] = part
            case "write":
                content[start : start + len(part)] = draw(st.binary(max_size=len(part)))
            case "insert":
                content[start:start] = draw(st.binary(max_size=20))
            case "truncate":
                del content[start:]
    return bytes(content)


@st.composite
def damaged_content(draw, content):
    """The tree with one or two values dropped, replaced, moved or doubled."""
    content = copy.deepcopy(content)
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        parent, key = draw(_places(content))
        value = parent[key]
        match draw(st.sampled_from(["alike", "alike", "replace", "drop", "move", "double", "nest"])):
            case "alike":
                parent[key] = draw(_alike(value))
            case "drop":
                del parent[key]
            case "move":
                other, its_key = draw(_places(content))
                parent[key] = copy.deepcopy(other[its_key])
            case "double" if isinstance(parent, list):
                parent.insert(key, copy.deepcopy(value))
            case "nest":
                parent[key] = json.loads("[" * 50 + "]" * 50)
            case _:
                parent[key] = copy.deepcopy(draw(ODD))
    return content


@st.composite
def _places(draw, content):
    """A container of the tree and a key in it: near the root, or deep in it."""
    parent, key, node = None, None, content
    while isinstance(node, dict | list) and node and (parent is None or draw(st.integers(0, 5))):
        keys = sorted(node) if isinstance(node, dict) else range(len(node))
        # Most of what can go wrong later is in the model, which is one of many fields.
        in_model = parent is None and draw(st.booleans())
        parent, key = node, "model" if in_model and "model" in node else draw(st.sampled_from(keys))
        node = node[key]
    return parent, key


def _alike(value):
    """Values that pass for one of the same type."""
    if isinstance(value, bool):
        return st.just(not value)
    if isinstance(value, int | float):
        scaled = [value * factor for factor in (-1, 2, 1000, 10**12)]
        return st.sampled_from([*scaled, value + 1, value - 1, *NUMBERS])
    if isinstance(value, str):
        return st.sampled_from([*TEXTS, value + "0", value[1:]])
    if isinstance(value, dict) and {"shape", "values"} <= set(value):
        return _arrays(value)
    return ODD


@st.composite
def _arrays(draw, array):
    """An array of another shape or dtype, or of other numbers, that is well formed."""
    shape = draw(st.lists(st.integers(0, 4), max_size=4) | st.sampled_from([array["shape"]]))
    size = math.prod(side for side in shape if isinstance(side, int) and side < 1000)
    values = [draw(st.sampled_from(NUMBERS))] if draw(st.booleans()) else array["values"] or [0]
    repeated = (list(values) * size)[:size]
    return array | {"shape": shape, "values": repeated, "dtype": draw(st.sampled_from(["float64", "int64"]))}
