"""No method walks around the curator: whatever it computes, it computes from released values."""

import ast
from pathlib import Path

import pytest

import sfumato

HERE = Path(sfumato.__file__).parent
PRIVATE = {"_rows", "_engine", "_entropy", "_open_engine"}  # rows, and the noise that hides them


def private_names(source):
    """Private attributes that a module touches, by name or by text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in PRIVATE:
            yield node.attr
        if isinstance(node, ast.Constant) and node.value in PRIVATE:  # getattr(curator, "_rows")
            yield node.value


@pytest.mark.parametrize("room", ["cluster", "public", "planner", "report", "plot"])
def test_rows_and_noise_stay_behind_the_curator(room):
    modules = sorted((HERE / room).rglob("*.py"))
    assert modules
    found = {path.name: list(private_names(path.read_text(encoding="utf-8"))) for path in modules}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text", ["curator._engine.fold(a)", "x = table._rows", "getattr(table, '_open_engine')"]
)
def test_a_way_around_would_be_seen(text):
    assert list(private_names(text))
