"""The page of guarantees names code, proofs and tests that exist, and every aggregate and mechanism."""

import ast
import importlib
import inspect
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

from sfumato.private import aggregates, mechanisms
from sfumato.private.aggregates.base import Aggregate

ROOT = Path(__file__).parents[2]
PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in ("guarantees", "hazards")}
ENTRIES = dict(re.findall(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", PAGES["guarantees"], re.MULTILINE | re.DOTALL))
NAMED = re.compile(r"`((?:src|tests|benchmarks)/[\w./]+?\.(?:py|js))(?:::([\w.]+))?`")
LINK = re.compile(r"\]\(([\w/]+\.md)(?:#([^)]+))?\)")
PARTS = ("- code: ", "- proof: ", "- tests: ")


def anchor(heading):
    """The anchor of a heading, as Sphinx and GitHub make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@cache
def anchors(page):
    text = (ROOT / "docs" / page).read_text("utf-8")
    return {anchor(heading) for heading in re.findall(r"^#{1,3} (.+)$", text, re.MULTILINE)}


@cache
def names(path):
    """Functions, classes and methods of a file."""
    found = set()
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return found


def members(package):
    modules = [
        importlib.import_module(f"{package.__name__}.{m.name}")
        for m in pkgutil.iter_modules(package.__path__)
    ]
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    }


def cited(text):
    return {name for _, name in NAMED.findall(text)}


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_name_exists(page):
    listed = NAMED.findall(PAGES[page])
    assert len(listed) > 30
    wrong = [
        (path, name)
        for path, name in listed
        if not (ROOT / path).is_file() or (name and name not in names(path))
    ]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES)
def test_every_section_exists(page):
    listed = LINK.findall(PAGES[page])
    assert len(listed) > 20
    wrong = [
        (file, part)
        for file, part in listed
        if not (ROOT / "docs" / file).is_file() or (part and part not in anchors(file))
    ]
    assert wrong == []


@pytest.mark.parametrize("title", ENTRIES)
def test_every_entry_is_complete(title):
    claim, code, rest = re.fullmatch(r"(.*?)```text\n(.*?)```\n(.*)", ENTRIES[title], re.DOTALL).groups()
    assert claim.strip().endswith(".")
    assert 3 <= len(code.splitlines()) <= 8
    lines = [line for line in rest.splitlines() if line]
    assert [line.startswith(part) for line, part in zip(lines, PARTS, strict=True)] == [True] * 3
    assert all(path.startswith("src/") for path, _ in NAMED.findall(lines[0]))
    assert "](proofs/" in lines[1] or title in ("Post-processing", "Control flow")
    assert all(path.startswith("tests/") and "test_" in name for path, name in NAMED.findall(lines[2]))


def test_every_aggregate_has_an_entry_with_its_proof():
    found = {
        name: kind
        for name, kind in members(aggregates).items()
        if inspect.isclass(kind)
        and Aggregate in kind.__mro__
        and kind is not Aggregate
        and not inspect.isabstract(kind)
    }
    assert len(found) > 15
    for name, kind in found.items():
        assert name in cited(ENTRIES[name])
        pages = re.findall(r"docs/proofs/(\w+)\.md", inspect.getdoc(kind))
        assert pages, name
        linked = {file for file, _ in LINK.findall(ENTRIES[name])}
        assert linked & {f"proofs/{page}.md" for page in pages}, name


def test_every_mechanism_is_cited():
    """A mechanism states its privacy in its docstring; all that does is on the page."""
    found = {
        name
        for name, value in members(mechanisms).items()
        if "\nPrivacy\n-------\n" in (inspect.getdoc(value) or "")
    }
    assert {"discrete_laplace", "exponential", "sparse_histogram", "thresholded_counts"} <= found
    assert found <= cited(PAGES["guarantees"])


def test_every_proof_is_linked():
    pages = {f"proofs/{page.name}" for page in (ROOT / "docs" / "proofs").glob("*.md")} - {"proofs/index.md"}
    assert pages <= {file for file, _ in LINK.findall(PAGES["guarantees"])}


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Box: |u_j| <= R", "box-u_j--r"),
        ("(a) The marginals", "a-the-marginals"),
        ("The counts: `SparseCells`", "the-counts-sparsecells"),
    ],
)
def test_anchors(heading, expected):
    assert anchor(heading) == expected
