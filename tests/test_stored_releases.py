"""Release files of every format that was ever released are read, and mean what they meant."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.data.make_releases import FOLDER, array, fitted, sparse_rows, table

from sfumato import Release
from sfumato.public.models import codec
from sfumato.release import FORMAT_VERSION

FILES = sorted(FOLDER.glob("format-*/*.json"))
NAMES = [f"{path.parent.name}-{path.stem}" for path in FILES]
EARLY = "early-"  # of versions in development, which had fewer fields
PLACES = [[-0.6, -0.6], [0.6, -0.5], [0.0, 0.7]]
LABELS = {
    "dbscan": [2, 1, 0],
    "early-grid": [2, 1, 0],
    "early-lloyd": [1, 0, 2],
    "early-mixture": [2, 1, 0],
    "grid": [2, 1, 0],
    "lloyd": [1, 0, 2],
    "mixture": [2, 1, 0],
    "morse": [1, 0, 0],
    "places": [-1, -1, -1],
    "tree": [1, 2, 0],
}


def rows_for(release):
    if release.sparse is not None:
        return sparse_rows()
    return array() if release.reading is None else table()


def test_there_are_files_of_every_format():
    folders = {path.parent.name for path in FILES}
    assert folders == {f"format-{number}" for number in range(1, FORMAT_VERSION + 1)}


def test_files_of_the_newest_format_hold_every_model():
    found = [Release.load(path).model for path in FILES if path.parent.name == f"format-{FORMAT_VERSION}"]
    models = {name for name in codec.PUBLISHABLE if name.endswith("Model")}
    assert {type(model).__name__ for model in found} == models


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_stored_file(path, tmp_path):
    release = Release.load(path)
    content = json.loads(path.read_text())
    assert release.privacy.spent.to_dict() == content["privacy"]["spent"]
    labels = release.predict(rows_for(release))
    again = Release.load(release.save(tmp_path / "again.json"))
    np.testing.assert_array_equal(again.predict(rows_for(release)), labels)
    if not path.stem.startswith(EARLY):
        assert release.checksum() == content["sha256"]  # what is read is written as it was
    if release.reading is None and release.sparse is None:
        assert release.predict(PLACES).tolist() == LABELS[path.stem]


@pytest.mark.slow
def test_the_script_makes_files_of_all_names():
    assert {path.stem for path in FILES if not path.stem.startswith(EARLY)} == set(fitted())
    assert Path(FOLDER).is_dir()
