"""The tutorials run from the first cell to the last, without Sphinx. Warnings are errors here, too."""

import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt

from sfumato import Ledger, datasets

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.stem != "index")
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# The ledger of a page that works by the command alone, which is not a variable of Python.
LEDGERS = {"hospital": ("budget.db", "patients")}

needs_data = pytest.mark.skipif(datasets.data_home() is None, reason="SFUMATO_DATA is not set")


def run(cell, name, names):
    """Run a cell as a notebook does: Python, a script of the shell, or a file to write."""
    first, _, body = cell.partition("\n")
    if first == "%%bash":
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        subprocess.run(["bash", "-e", "-c", body], env=os.environ | {"PATH": path}, check=True)
    elif first.startswith("%%writefile "):
        Path(first.removeprefix("%%writefile ")).write_text(body, "utf-8")
    else:
        exec(compile(cell, name, "exec"), names)


def test_there_are_pages():
    assert len(PAGES) >= 3
    assert set(LEDGERS) <= {page.stem for page in PAGES}


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_runs_from_the_ledger_to_the_report(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells, names = CELL.findall(page.read_text("utf-8")), {}
    assert cells
    for number, cell in enumerate(cells, 1):
        run(cell, f"{page.name}, cell {number}", names)
    plt.close("all")
    by_command = page.stem in LEDGERS  # which charges no seeded run
    charges = (Ledger(*LEDGERS[page.stem]) if by_command else names["ledger"]).history()
    assert charges
    assert all(charge.seeded != by_command and charge.outcome == "released" for charge in charges)
    assert list(tmp_path.glob("*.html"))
