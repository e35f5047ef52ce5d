"""The tutorials run from the first cell to the last, without Sphinx. Warnings are errors here, too."""

import re
from pathlib import Path

import matplotlib as mpl
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt

from sfumato import datasets

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.stem != "index")
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```$", re.MULTILINE | re.DOTALL)

needs_data = pytest.mark.skipif(datasets.data_home() is None, reason="SFUMATO_DATA is not set")


def test_there_are_pages():
    assert len(PAGES) >= 3


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_runs_from_the_ledger_to_the_report(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells, names = CELL.findall(page.read_text("utf-8")), {}
    assert cells
    for number, cell in enumerate(cells, 1):
        exec(compile(cell, f"{page.name}, cell {number}", "exec"), names)
    plt.close("all")
    charges = names["ledger"].history()
    assert charges
    assert all(charge.seeded and charge.outcome == "released" for charge in charges)
    assert list(tmp_path.glob("*.html"))
