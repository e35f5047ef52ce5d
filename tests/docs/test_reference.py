"""The pages of docs/api name everything that is public."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import sfumato
from sfumato import cluster

DOCS = Path(__file__).parents[2] / "docs"
PAGES = "\n".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "api").glob("*.md")))
BLOCK = re.compile(r"\.\. auto(\w+):: ([\w.]+)((?:\n {3,}\S.*)*)")
MODULES = [
    "audit",
    "budget",
    "cluster",
    "datasets",
    "metrics",
    "public.mixtures",
    "plot",
    "planner",
    "report",
]


def documented():
    """Full names of what autodoc is told to show; a bare ``:members:`` shows what ``__all__`` lists."""
    found = set()
    for kind, name, options in BLOCK.findall(PAGES):
        if kind != "module":
            found.add(name)
            continue
        listed = re.search(r":members:([^:]*)", options)
        names = re.findall(r"\w+", listed[1]) if listed else []
        found |= {f"{name}.{member}" for member in names or importlib.import_module(name).__all__}
    return found


def resolved(name):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


@pytest.fixture(scope="module")
def shown():
    return [resolved(name) for name in documented()]


def test_all_names_on_the_pages_exist(shown):
    assert len(shown) > 100


@pytest.mark.parametrize("module", ["sfumato", *(f"sfumato.{module}" for module in MODULES)])
def test_every_public_name_is_on_a_page(shown, module):
    names = importlib.import_module(module).__all__
    public = {name: getattr(importlib.import_module(module), name) for name in names if name[0] != "_"}
    missing = [
        name
        for name, value in public.items()
        if not inspect.ismodule(value) and not any(value is other for other in shown)
    ]
    assert missing == []


def test_modules_of_the_package_are_on_a_page():
    modules = [name for name in sfumato.__all__ if inspect.ismodule(getattr(sfumato, name))]
    assert modules
    assert all(f"automodule:: sfumato.{name}\n" in PAGES for name in modules)


def test_every_method_has_a_page_with_a_plan_a_picture_and_a_proof():
    pages = [page.read_text(encoding="utf-8") for page in (DOCS / "methods").glob("*.md")]
    titles = {page.splitlines()[0].removeprefix("# "): page for page in pages}
    methods = {name for name in cluster.__all__ if hasattr(getattr(cluster, name), "predict")}
    needed = [".plan(", "](../pictures/method_", "](../proofs/", "](../api/", "python -m benchmarks"]
    for name in methods - {"PrivateClusterer"}:
        text = " ".join(titles[name].split())
        assert [part for part in needed if part not in text] == [], name
