"""The page on messy files: what each prints without options, and the commands that then work."""

import re
import shlex
from pathlib import Path

import pytest

from sfumato import Release, datasets

PAGE = Path(__file__).parents[2] / "docs" / "files.md"
SECTIONS = [
    part for part in re.split(r"\n## ", PAGE.read_text(encoding="utf-8"))[1:] if "sfumato check" in part
]

pytestmark = pytest.mark.skipif(datasets.data_home() is None, reason="SFUMATO_DATA is not set")


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.splitlines()[0])
def test_from_file_to_report(call, section):
    blocks = re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
    assert [kind for kind, _ in blocks][:4] == ["toml", "console", "text", "console"]
    bounds, without, says, commands = (content for _, content in blocks[:4])
    Path("bounds.toml").write_text(bounds, encoding="utf-8")
    for path in (datasets.data_home() / "csv").iterdir():
        Path(path.name).symlink_to(path)

    done = call(*shlex.split(without)[1:], code=0 if says.startswith("Everything") else 3)
    for line in says.splitlines():
        assert line in done.output
    for command in commands.splitlines():
        call(*shlex.split(command)[1:])
    assert Release.load("release.json").privacy.budget.epsilon == 1
    assert "<html" in Path("report.html").read_text(encoding="utf-8")


def test_all_files_have_a_section():
    named = {re.search(r"sfumato check (\S+)", section)[1] for section in SECTIONS}
    assert named == {path.name for path in (datasets.data_home() / "csv").iterdir()}


def test_options_beside_the_bounds(call):
    section = SECTIONS[0]
    columns, options = (
        content for kind, content in re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL) if kind == "toml"
    )
    Path("bounds.toml").write_text(columns + options)
    table = datasets.data_home() / "csv" / "semicolon_decimal_comma.csv"
    assert "uses 500" in call("check", table, "--bounds", "bounds.toml").stdout
