"""`__all__` is exactly what can be imported."""

import importlib
import inspect
import subprocess
import sys

import pytest

import sfumato

PACKAGES = ["sfumato", "sfumato.budget", "sfumato.cluster", "sfumato.curator", "sfumato.domain"]
PACKAGES += ["sfumato.public.models"]


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_what_is_importable(package):
    """Submodules are attributes as soon as anything imports them: they count only if `__all__` lists them."""
    module = importlib.import_module(package)
    loaded = [getattr(module, name) for name in module.__all__]  # `sfumato` loads names when they are used
    assert len(loaded) == len(module.__all__)
    public = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and (not inspect.ismodule(value) or name in module.__all__)
    }
    dunder = {name for name in module.__all__ if name.startswith("__")}
    assert public | dunder == set(module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_without_repeats(package):  # the linter keeps it sorted
    names = importlib.import_module(package).__all__
    assert len(names) == len(set(names))


def test_a_star_import_gives_everything_that_is_promised():
    found = {}
    exec("from sfumato import *", found)
    assert set(sfumato.__all__) <= set(found)
    assert {"GridKMeans", "Budget", "Ledger", "Release", "grid_size"} <= set(found)


def test_the_version():
    assert sfumato.__version__.count(".") == 2


def test_importing_prints_and_warns_nothing():
    run = [
        sys.executable,
        "-W",
        "error",
        "-c",
        "import sfumato; sfumato.GridKMeans, sfumato.metrics, sfumato.datasets",
    ]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""
