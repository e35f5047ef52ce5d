"""Which kept tables are older than their code."""

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import kept, stale

ROOT = Path(__file__).parents[2]
SOURCE = (
    '"""A benchmark."""\n\nfrom sfumato import Thing\n\n\ndef measure(*, quick):\n    return Thing().value\n'
)


def run(folder: Path, *arguments: str) -> str:
    name = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    return subprocess.run(
        ["git", "-C", str(folder), *name, *arguments], check=True, capture_output=True, text=True
    ).stdout


def commit(folder: Path) -> str:
    run(folder, "add", "-A")
    run(folder, "commit", "-qm", "change")
    return run(folder, "rev-parse", "HEAD").strip()[: stale.DIGITS]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose package passes a thing on from one of its two modules."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    files = {
        "benchmarks/table.py": SOURCE,
        "src/sfumato/__init__.py": "from sfumato.things import Thing\nfrom sfumato.others import Other\n",
        "src/sfumato/things.py": "class Thing:\n    value = 1\n",
        "src/sfumato/others.py": "class Other:\n    value = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    run(tmp_path, "init", "-q")
    monkeypatch.setattr(stale, "ROOT", tmp_path)
    monkeypatch.setattr(stale, "ROOTS", {"benchmarks": tmp_path, "sfumato": tmp_path / "src"})
    monkeypatch.setattr(kept, "RESULTS", tmp_path / "benchmarks" / "results")
    for cached in (stale.imported, stale.imports_of, stale.code_before, stale.code_now):
        cached.cache_clear()
    at = commit(tmp_path)
    kept.keep("table", {"machine": {"commit": at}, "quick": False, "measured": []})
    return tmp_path


def test_table_of_unchanged_code_is_not_stale(project: Path) -> None:
    assert stale.report(["table"]) == ["No kept table is older than its code."]


@pytest.mark.parametrize("file", ["benchmarks/table.py", "src/sfumato/things.py"])
def test_table_is_stale_once_its_code_changes(project: Path, file: str) -> None:
    at = stale.commit_of("table")
    path = project / file
    path.write_text(path.read_text() + "\nMORE = 1\n")
    assert stale.report(["table"]) == [f"table, measured at {at}: {file}"]


def test_code_that_a_table_does_not_import_does_not_count(project: Path) -> None:
    (project / "src/sfumato/others.py").write_text("class Other:\n    value = 2\n")
    assert stale.changed("table") == []


@pytest.mark.parametrize(("readers", "n_changed"), [(("table",), 1), (("another",), 0)])
def test_code_counts_for_the_tables_that_measure_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, readers: tuple[str, ...], n_changed: int
) -> None:
    path = project / "src/sfumato/things.py"
    monkeypatch.setattr(stale, "READ_BY", {path: readers})
    path.write_text("class Thing:\n    value = 2\n")
    assert len(stale.changed("table") or []) == n_changed


def test_comments_and_docstrings_do_not_count(project: Path) -> None:
    (project / "src/sfumato/things.py").write_text(
        '"""Things."""\n\n\nclass Thing:\n    # one\n    value = 1\n'
    )
    assert stale.changed("table") == []


def test_deleted_code_counts(project: Path) -> None:
    path = project / "benchmarks/table.py"
    path.write_text(path.read_text().replace("Thing().value", "1").replace("from sfumato import Thing\n", ""))
    (project / "src/sfumato/things.py").unlink()
    assert stale.changed("table") == ["benchmarks/table.py"]


def test_commit_that_is_gone_is_said(project: Path) -> None:
    kept.keep("table", {"machine": {"commit": "0" * stale.DIGITS}, "quick": False, "measured": []})
    assert "not in the history" in stale.report(["table"])[0]


def test_table_without_a_commit_has_that_of_its_results(project: Path) -> None:
    kept.keep("table", {"machine": {}, "quick": False, "measured": []})
    at = commit(project)
    assert stale.commit_of("table") == at


def test_head_marks_code_that_is_not_committed(project: Path) -> None:
    commit(project)
    clean = stale.head()
    (project / "src/sfumato/things.py").write_text("class Thing:\n    value = 2\n")
    assert stale.head() == clean + "+"


def test_results_carry_the_commit() -> None:
    assert benchmarks.machine()["commit"] == stale.head()


def test_benchmarks_count_what_they_import() -> None:
    files = {str(path.relative_to(ROOT)) for path in stale.sources("samplers")}
    assert {"benchmarks/samplers.py", "src/sfumato/private/mechanisms/samplers.py"} <= files
    assert not any("density" in file for file in files)


def test_what_runs_tables_does_not_count() -> None:
    files = {str(path.relative_to(ROOT)) for path in stale.sources("wide_tables")}
    assert "benchmarks/wide_cases.py" in files
    assert not {"benchmarks/__main__.py", "benchmarks/page.py"} & files


def test_code_is_syntax_without_docstrings() -> None:
    assert stale.code('def f():\n    """A."""\n    return 1\n') == stale.code(
        'def f():\n    """B."""\n    return 1  # c\n'
    )
    assert stale.code(None) == ast.dump(ast.parse(""))


def test_option_lists_what_is_stale(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stale, "report", lambda names: [f"{len(names)} tables"])
    monkeypatch.setattr("sys.argv", ["benchmarks", "--stale"])
    benchmarks.main()
    assert (
        capsys.readouterr().out
        == f"{sum(kept.kept(name) is not None for name in benchmarks.TABLES)} tables\n"
    )
