"""Examples in documents and docstrings run in a scratch folder, so that they may write files."""

import pytest


@pytest.fixture(autouse=True)
def _examples_in_scratch_folder(request, monkeypatch, tmp_path):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)
