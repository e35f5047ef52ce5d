"""Every tuned constant is measured, has a line in the notes, and names that page where it is declared."""

from importlib import import_module
from inspect import getsource
from pathlib import Path

import pytest
from benchmarks.constant_list import TUNED, Tuned
from benchmarks.constant_trials import TRIALS

NOTES = (Path(__file__).parents[2] / "docs" / "notes" / "constants.md").read_text()


@pytest.mark.parametrize("tuned", TUNED, ids=lambda tuned: tuned.key)
def test_tuned_constant_is_measured_and_cites_the_notes(tuned: Tuned) -> None:
    assert set(tuned.trials) <= set(TRIALS)
    assert all(other != tuned.value for other in tuned.others)
    assert f"`{tuned.name}`" in NOTES
    assert "docs/notes/constants.md#" in getsource(import_module(tuned.module))


def test_cited_sections_exist() -> None:
    sections = {line[3:].lower().replace(" ", "-") for line in NOTES.splitlines() if line.startswith("## ")}
    for module in {tuned.module for tuned in TUNED}:
        for cited in getsource(import_module(module)).split("docs/notes/constants.md#")[1:]:
            assert cited.split()[0].rstrip(")") in sections
