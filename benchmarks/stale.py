"""Which code a kept table was measured with, and what of it has changed since."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from benchmarks.kept import kept

ROOT = Path(__file__).parents[1]
ROOTS = {"benchmarks": ROOT, "tests": ROOT, "sfumato": ROOT / "src"}  # where the packages lie that count
# What no table measures: what runs them, and sentences about what was released or is told to the holder alone.
UNMEASURED = {
    ROOT / "benchmarks" / "__main__.py",
    ROOT / "src/sfumato/curator/findings.py",
    ROOT / "src/sfumato/curator/inspection.py",
    ROOT / "src/sfumato/public/doubts.py",
    ROOT / "src/sfumato/public/profiles/sentences.py",
    ROOT / "src/sfumato/public/profiles/wording.py",
}
# What reads the counts of a profile after they were released, by the tables that measure it.
READ_BY = {
    ROOT / "src/sfumato/public/profiles/quantiles.py": ("profiles",),
    ROOT / "src/sfumato/public/profiles/readable.py": ("profiles",),
}
DIGITS, SHOWN = 12, 4


def git(*arguments: str) -> str | None:
    """What git prints, or None where there is no git, no history, or no such commit."""
    try:
        return subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def head() -> str:
    """The commit that is checked out; with a + if code differs from it. Empty without a history."""
    commit = (git("rev-parse", "HEAD") or "")[:DIGITS]
    changes = git("status", "--porcelain", "--", "src", "benchmarks/*.py")
    return commit + "+" if changes else commit


def commit_of(name: str) -> str:
    """The commit that a kept table records; of tables kept before they did so, the one that brought the results."""
    found = kept(name)
    recorded = (found or {}).get("machine", {}).get("commit", "")
    return (
        recorded or (git("log", "-1", "--format=%H", "--", f"benchmarks/results/{name}.json") or "")[:DIGITS]
    )


def sources(name: str) -> list[Path]:
    """The file of a benchmark and what it imports of this project, directly or not."""
    found: set[Path] = set()
    waiting = [Path(file_of(f"benchmarks.{name}") or "")]
    while waiting:
        path = waiting.pop()
        if path not in found | UNMEASURED and name in READ_BY.get(path, (name,)):
            found.add(path)
            waiting += imported(path)
    return sorted(found)


@cache
def imported(path: Path) -> tuple[Path, ...]:
    """Files that a file imports. A name that a package only passes on stands for the file that defines it."""
    return tuple(file for node in imports_of(path) for file in files_of(node))


@cache
def imports_of(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def files_of(node: ast.Import | ast.ImportFrom) -> Iterator[Path]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            found = file_of(alias.name)
        else:
            found = home_of(node.module or "", alias.name)
        if found:
            yield found


def home_of(module: str, name: str) -> Path | None:
    """The file that `from module import name` comes from."""
    path = file_of(f"{module}.{name}") or file_of(module)
    if path is None or path.name != "__init__.py" or path == file_of(f"{module}.{name}"):
        return path
    for node in imports_of(path):
        if isinstance(node, ast.ImportFrom) and name in {a.asname or a.name for a in node.names}:
            return home_of(node.module or "", name) if node.module != module else path
    return path


def file_of(module: str) -> Path | None:
    """The file of a module of this project."""
    first = module.partition(".")[0]
    if first not in ROOTS:
        return None
    path = ROOTS[first].joinpath(*module.split("."))
    files = path.with_suffix(".py"), path / "__init__.py"
    return next((file for file in files if file.is_file()), None)


def changed(name: str) -> list[str] | None:
    """Sources of a kept table whose code is another now than at its commit; None if that commit is not in the history."""
    commit = commit_of(name).removesuffix("+")
    files = [str(path.relative_to(ROOT)) for path in sources(name)]
    listed = git("diff", "--raw", "--no-abbrev", commit, "--", *files) if commit else None
    if listed is None:
        return None
    found = []
    for line in listed.splitlines():
        facts, _, file = line.partition("\t")
        if code_before(facts.split()[2]) != code_now(file):
            found.append(file)
    return found


@cache
def code_before(blob: str) -> str:
    return code(git("cat-file", "blob", blob))


@cache
def code_now(file: str) -> str:
    path = ROOT / file
    return code(path.read_text() if path.exists() else None)


def code(text: str | None) -> str:
    """What a file does: its syntax without comments and docstrings. A file that is not there does nothing."""
    tree = ast.parse(text or "")
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and is_text(body[0]):
            del body[0]
    return ast.dump(tree)


def is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def report(names: list[str]) -> list[str]:
    """A line for each kept table whose code has changed since."""
    lines = []
    for name in names:
        files = changed(name)
        about = f"{name}, measured at {commit_of(name) or 'an unknown commit'}"
        if files is None:
            lines.append(f"{about}: this commit is not in the history")
        elif files:
            more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
            lines.append(f"{about}: {', '.join(files[:SHOWN])}{more}")
    return lines or ["No kept table is older than its code."]
