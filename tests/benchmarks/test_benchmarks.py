"""The page of benchmarks is what the kept results render, and figures of papers are what the papers print."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.cells import Value, row, verdict

from benchmarks import __main__ as benchmarks
from benchmarks import cells, kept, paper_tables, papers, pictures
from sfumato.datasets import data_home


@pytest.mark.parametrize("name", [*benchmarks.TABLES, *benchmarks.STUDIES])
def test_every_table_has_a_module_that_measures_and_renders(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    assert callable(module.measure)
    assert callable(module.render)


def test_pages_are_what_the_kept_results_render(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)
    for path, text in benchmarks.rendered().items():
        assert text == path.read_text(), (
            f"{path.name} must be rendered from the kept results, run `python -m benchmarks --render`"
        )


def test_papers_are_compared_with_what_is_kept_now() -> None:
    found = kept.kept("paper_tables")
    assert found is not None
    assert found["measured"] == paper_tables.measure(quick=False), (
        "another table was measured since, run `python -m benchmarks paper_tables`"
    )


def test_figures_of_papers_are_those_at_hand() -> None:
    home = data_home()
    path = home.parent / "papers" / "tables.json" if home else None
    if path is None or not path.exists():
        pytest.skip("needs the papers' tables beside the folder that SFUMATO_DATA names")
    for paper, tables in json.loads(path.read_text()).items():
        assert papers.published(paper) | {"source": ""} == tables | {"source": ""}


def test_quick_results_stay_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kept, "RESULTS", tmp_path)
    benchmarks.run(["paper_tables"], quick=True)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")] == [
        "quick/paper_tables.json"
    ]
    assert kept.kept("paper_tables") is None
    assert "== paper_tables" in capsys.readouterr().out
    (table,) = benchmarks.rendered(quick=True).values()
    assert table.startswith("# The papers and peers, cell by cell")


def test_times_are_taken_alone_and_the_comparison_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(benchmarks, "measure", lambda name, **_: calls.append(f"here {name}"))
    monkeypatch.setattr(benchmarks, "measure_apart", lambda name, **_: calls.append(name))
    monkeypatch.setattr(benchmarks, "prepare_peers", lambda names: calls.append("peers"))
    benchmarks.run(list(benchmarks.TABLES), quick=False)
    assert calls.pop(0) == "peers", "two tables that run side by side must not both make their environment"
    n_times = len(benchmarks.TIMES)
    assert calls[:n_times] == [name for name in benchmarks.TABLES if name in benchmarks.TIMES]
    assert [call for call in calls if call.startswith("here")] == calls[-1:] == ["here paper_tables"]
    assert len(calls) == len(benchmarks.TABLES)


def test_one_table_is_measured_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(benchmarks, "measure", lambda name, **_: calls.append(name))
    benchmarks.run(["places"], quick=True)
    assert calls == ["places"]


def test_quick_pictures_stay_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "RESULTS", tmp_path)
    monkeypatch.setattr(pictures, "PICTURES", pictures.PICTURES)
    (tmp_path / "quick").mkdir()
    monkeypatch.setattr("sys.argv", ["benchmarks", "--quick", "--render"])
    benchmarks.main()
    assert tmp_path in pictures.PICTURES.parents


def test_no_table_is_imported_before_the_folder_for_pictures_is_chosen() -> None:
    """Tables take the folder when they are imported; a quick run would draw over the published pictures."""
    program = (
        "import sys; from benchmarks.__main__ import TABLES; "
        "print([name for name in TABLES if f'benchmarks.{name}' in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=benchmarks.ROOT
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("ours", "is_higher_better", "expected"),
    [(0.8, False, "better"), (1.2, False, "worse"), (1.2, True, "better"), (1.05, True, "equal")],
)
def test_verdict(ours: float, is_higher_better: bool, expected: str) -> None:
    theirs = Value(1.0, error=0.03, rounding=0.01)
    assert verdict(theirs, Value(ours, error=0.04), is_higher_better=is_higher_better) == expected


def test_row_without_ours_says_why() -> None:
    found = row("data", "setting", {"theirs": Value(1.0)}, {}, missing=cells.NO_DATA)
    assert found["verdicts"] == {"theirs": cells.NO_DATA}


def test_row_takes_the_best_of_ours() -> None:
    ours = {"one": Value(0.9), "other": Value(0.5)}
    found = row("data", "setting", {"theirs": Value(0.7)}, ours)
    assert (found["which"], found["verdicts"]) == ("other", {"theirs": "better"})


def test_worst_loss_is_the_largest_and_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    section = paper_tables.Section("A peer", "peer", "")
    rows = [
        row("one", f"k {k}", {"peer": Value(1.0)}, {"ours": Value(mean)}) for k, mean in ((2, 1.5), (4, 1.2))
    ]
    monkeypatch.setitem(paper_tables.REASONS, ("peer", ""), "it is a test")
    assert paper_tables.worst(section, rows) == "one, k 2: 1.500 (ours) against 1.000 (peer); it is a test"
    assert paper_tables.worst(section, []) == ""


def test_every_paper_and_peer_is_counted() -> None:
    found = kept.kept("paper_tables")
    assert found is not None
    for section in paper_tables.SECTIONS:
        assert int(paper_tables.totals(section, found["measured"][section.key])[1]) > 0, section.title
