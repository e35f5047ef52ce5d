"""Release files: exact round trips, and refusals of everything that is not one."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato import DPDBSCAN, Ball, DensityTree, GridKMeans, Release
from sfumato import release as release_module
from sfumato.errors import DataError, ParameterError, ReleaseError

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def model(rows):
    return GridKMeans(3, bounds=(-1, 1), max_cells=25, epsilon=2, random_state=0).fit(rows)


@pytest.fixture
def path(model, tmp_path):
    return model.release_.save(tmp_path / "release.json")


def rewrite(path, change, *, sign=True):
    """Change the content of a file, with a checksum that fits."""
    content = json.loads(path.read_text())
    content.pop("sha256")
    change(content)
    if sign:
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        content["sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
    path.write_text(json.dumps(content))


BUDGETS = [{"epsilon": "1/3"}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.1}]
WORLDS = [(-1, 1), ([-1, -2], [1, 2]), Ball(1.5)]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("bounds", WORLDS)
def test_round_trip(rows, tmp_path, budget, bounds):
    table = pd.DataFrame(rows, columns=["age", "länge"])
    model = GridKMeans(np.int64(3), bounds=bounds, max_cells=25, n_public=300, **budget).fit(table)
    saved = model.release_
    path = saved.save(tmp_path / "release.json")
    loaded = Release.load(path)
    assert json.dumps(loaded.to_dict()) == json.dumps(saved.to_dict())
    assert loaded.privacy == saved.privacy
    assert loaded.domain == saved.domain
    assert loaded.columns == ("age", "länge")
    assert loaded.method == "GridKMeans"
    own = {"n_clusters": 3, "rule": "rugnik", "n_public": 300, "max_cells": 25}
    shared = {"scale": "bounds", "weights": None, "missing": "error", "outside": "clip", "profiles": "auto"}
    assert loaded.parameters == own | shared
    assert (loaded.model.cluster_centers == model.cluster_centers_).all()
    assert (loaded.predict(rows) == model.predict(table)).all()
    assert loaded.save(tmp_path / "again.json").read_text() == path.read_text()


def test_predict_equals_the_estimator(model, path):
    rows = np.random.default_rng(1).uniform(-2, 2, size=(500, 2))
    loaded = Release.load(str(path))
    for table in (rows, rows.tolist(), rows.astype(np.float32), np.asfortranarray(rows), pd.DataFrame(rows)):
        assert (loaded.predict(table) == model.predict(np.asarray(table))).all()
    assert loaded.predict(np.empty((0, 2))).shape == (0,)


@pytest.mark.parametrize("table", [np.zeros((3, 1)), np.zeros((3, 3)), np.zeros(2), np.zeros((3, 2, 1)), 5.0])
def test_predict_refuses_other_shapes_without_telling_rows(path, table):
    with pytest.raises(DataError, match="`X` must have rows of 2 columns, got") as error:
        Release.load(path).predict(table)
    assert "(3," not in str(error.value)


def test_the_file_is_plain_json_that_anyone_can_read(path):
    content = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert content["format"] == "sfumato release"
    assert content["privacy"]["budget"] == {"epsilon": "2"}
    assert {"method", "parameters", "domain", "model", "privacy", "created", "library", "sha256"} < set(
        content
    )


@pytest.mark.parametrize("keep", [0, 1, 10, 0.5, -1])
def test_a_truncated_file(path, keep):
    text = path.read_text()
    path.write_text(text[: int(keep * len(text)) if keep == 0.5 else keep])
    with pytest.raises(ReleaseError, match="truncated"):
        Release.load(path)


def test_an_altered_value(path):
    text = path.read_text()
    assert '"epsilon": "2"' in text
    path.write_text(text.replace('"epsilon": "2"', '"epsilon": "1"'))
    with pytest.raises(ReleaseError, match="altered"):
        Release.load(path)


def test_any_altered_number_is_seen(path):
    text = path.read_text()
    digits = [i for i, c in enumerate(text) if c.isdigit() and i < text.index('"sha256"')]
    seen = 0
    for i in np.random.default_rng(0).choice(digits, size=60, replace=False):
        changed = str((int(text[i]) + 1) % 10)
        path.write_text(text[:i] + changed + text[i + 1 :])
        try:
            same = json.loads(path.read_text()) == json.loads(text)
        except ValueError:
            same = False
        if same:  # a digit beyond float precision
            continue
        with pytest.raises(ReleaseError):
            Release.load(path)
        seen += 1
    assert seen > 50


@pytest.mark.parametrize("checksum", ["", "0" * 64, None, 5])
def test_an_altered_checksum(path, checksum):
    rewrite(path, lambda content: content.update(sha256=checksum), sign=False)
    with pytest.raises(ReleaseError, match="altered"):
        Release.load(path)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_an_unknown_version(path, version):
    rewrite(path, lambda content: content.update(version=version))
    with pytest.raises(ReleaseError, match=r"has version .*, this library reads 1: update sfumato"):
        Release.load(path)


@pytest.mark.parametrize(
    "text",
    ["{}", "[]", "5", "null", '"sfumato release"', '{"format": "geojson"}', "[" * 100_000, "\x00\x01", "nan"],
)
def test_other_files(path, text):
    path.write_text(text)
    with pytest.raises(ReleaseError, match="not a release file"):
        Release.load(path)


def test_binary_files(path):
    path.write_bytes(bytes(range(256)))
    with pytest.raises(ReleaseError, match="not a release file"):
        Release.load(path)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
def test_numbers_that_json_does_not_know(path, number):
    text = path.read_text()
    start = text.index('"noise_std": ') + len('"noise_std": ')
    end = text.index(",", start)
    path.write_text(text[:start] + number + text[end:])
    with pytest.raises(ReleaseError, match="truncated or not a release file"):
        Release.load(path)


TOP = ["method", "parameters", "domain", "columns", "model", "privacy", "created", "library"]
DAMAGES = {f"no {key}": lambda content, key=key: content.pop(key) for key in TOP} | {
    "no centres": lambda content: content["model"].pop("cluster_centers"),
    "no type": lambda content: content["model"].pop("type"),
    "unknown type": lambda content: content["model"].update(type="Engine"),
    "a domain as model": lambda content: content.update(model=content["domain"]),
    "a model as domain": lambda content: content.update(domain=content["model"]),
    "a number as model": lambda content: content.update(model=5),
    "a number as name": lambda content: content.update(method=5),
    "a list of parameters": lambda content: content.update(parameters=[]),
    "a domain as table": lambda content: content.update(table=content["domain"]),
    "more columns": lambda content: content.update(columns=["x"] * 7),
    "extra field": lambda content: content["model"].update(extra=1),
    "wrong shape": lambda content: content["model"]["cluster_centers"].update(shape=[7, 7]),
    "strange dtype": lambda content: content["model"]["cluster_centers"].update(dtype="object"),
    "NaN as text": lambda content: content["model"]["cluster_centers"]["values"].__setitem__(0, "nan"),
    "huge integer": lambda content: content["model"]["synopsis"]["noisy_counts"]["values"].__setitem__(
        0, 10**30
    ),
    "bounds reversed": lambda content: content["domain"].update(low=content["domain"]["high"]),
    "no steps": lambda content: content["privacy"].pop("steps"),
    "scale of text": lambda content: content["privacy"]["steps"][0].update(scale="x"),
    "scale over zero": lambda content: content["privacy"]["steps"][0].update(scale="1/0"),
    "negative budget": lambda content: content["privacy"]["budget"].update(epsilon="-1"),
    "privacy as text": lambda content: content.update(privacy="very private"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_incomplete_files_with_a_fitting_checksum(path, name):
    rewrite(path, DAMAGES[name])
    with pytest.raises(ReleaseError, match="not a complete release"):
        Release.load(path)


def test_a_rewritten_file_without_damage_loads(path, model, rows):
    rewrite(path, lambda content: None)
    assert (Release.load(path).predict(rows) == model.labels_).all()


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError):
        Release.load(tmp_path / "missing.json")
    with pytest.raises(OSError, match="directory"):
        Release.load(tmp_path)


def test_saving_into_nowhere_leaves_nothing(model, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    with pytest.raises(OSError):  # noqa: PT011
        model.release_.save(tmp_path / "missing" / "release.json")
    with pytest.raises(OSError):  # noqa: PT011
        model.release_.save(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_saving_into_a_read_only_folder(model, tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(PermissionError):
        model.release_.save(tmp_path / "release.json")


@pytest.mark.parametrize("fault", ["chmod", "fsync", "replace"])
def test_a_fault_while_saving_leaves_the_old_file_and_no_other(model, path, monkeypatch, fault):
    before = path.read_bytes()

    def crash(*arguments, **keywords):
        raise OSError("disk full")

    place = {"chmod": (Path, "chmod"), "fsync": (os, "fsync"), "replace": (Path, "replace")}[fault]
    monkeypatch.setattr(*place, crash)
    with pytest.raises(OSError, match="disk full"):
        model.release_.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_release_that_cannot_be_json_leaves_no_file(model, tmp_path):
    object.__setattr__(model.release_, "parameters", {"n_clusters": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        model.release_.save(tmp_path / "release.json")
    assert list(tmp_path.iterdir()) == []


def test_saving_replaces_in_one_step(model, path, monkeypatch):
    """The name points to a complete file at every moment: it changes by a rename only."""
    states = []
    chmod = Path.chmod
    monkeypatch.setattr(
        Path, "chmod", lambda p, mode: states.append((p != path, path.read_bytes())) or chmod(p, mode)
    )
    before = path.read_bytes()
    object.__setattr__(model.release_, "created", "later")
    model.release_.save(path)
    assert states == [(True, before)]
    assert path.read_bytes() != before
    assert Release.load(path).created == "later"
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_relative_path(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert model.release_.save("release.json") == Path("release.json")
    assert Release.load("release.json").method == "GridKMeans"


def test_the_format_is_pinned():
    assert (release_module.FORMAT, release_module.FORMAT_VERSION) == ("sfumato release", 1)


def hills(n=3000):
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(c, 0.1, size=(n, 2)) for c in ([-0.5, -0.5], [0.5, 0.3])])


@pytest.mark.parametrize(
    "make", [DensityTree, lambda **options: DPDBSCAN(0.2, 400, **options)], ids=["DensityTree", "DPDBSCAN"]
)
def test_strengths_of_arrays(make, tmp_path):
    model = make(bounds=(-1, 1), epsilon=2, random_state=0).fit(hills())
    loaded = Release.load(model.release_.save(tmp_path / "release.json"))
    rows = np.concatenate([hills(300), np.random.default_rng(1).uniform(-1, 1, size=(500, 2))])
    found = loaded.strengths(rows)
    assert found.shape == (len(rows),)
    assert ((found >= 0) & (found <= 1)).all()
    assert (found[loaded.predict(rows) == -1] == 0).all()
    np.testing.assert_array_equal(found, model.strengths(rows))
    np.testing.assert_array_equal(found, loaded.strengths(rows.tolist()))
    np.testing.assert_array_equal(found, loaded.strengths(pd.DataFrame(rows)))
    assert loaded.strengths(rows[:0]).shape == (0,)
    assert loaded.strengths([[-0.5, -0.5]])[0] > 0.5
    with pytest.raises(DataError, match="`X` must have rows of 2 columns, got 3 columns"):
        loaded.strengths(np.zeros((4, 3)))


def test_strengths_fall_off_towards_the_edge():
    model = DensityTree(bounds=(-1, 1), epsilon=2, random_state=0).fit(hills())
    angle = np.linspace(0, 2 * np.pi, 100)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    found = [model.strengths([-0.5, -0.5] + radius * circle).mean() for radius in (0.05, 0.12, 0.2, 0.45)]
    assert found[0] > found[1] > found[2] > found[3] >= 0


def test_strengths_of_frames_find_their_columns_by_name(tmp_path):
    """In the units of the columns, in any order, with columns that are not used, and in files."""
    table = pd.DataFrame(hills() * [10.0, 1000.0], columns=["x", "y"]).assign(name="a")
    bounds = {"x": (-10, 10), "y": (-1000, 1000)}
    release = DensityTree(bounds=bounds, epsilon=2, random_state=0).fit(table).release_
    found = release.strengths(table)
    assert found.mean() > 0.4
    assert (found[release.predict(table) == -1] == 0).all()
    np.testing.assert_array_equal(release.strengths(table[["name", "y", "x"]]), found)
    table.to_parquet(tmp_path / "table.parquet")
    np.testing.assert_array_equal(release.strengths(tmp_path / "table.parquet"), found)
    (batch, *others) = release.predict_files(tmp_path / "table.parquet", strengths="strength")
    assert not others
    assert batch.schema.names == ["cluster", "strength"]
    np.testing.assert_array_equal(batch["strength"].to_numpy(), found)


def test_rows_that_a_fit_drops_have_no_strength():
    rows = hills()
    model = DensityTree(bounds=(-1, 1), epsilon=2, missing="drop", random_state=0).fit(rows)
    odd = np.array([[-0.5, -0.5], [np.nan, -0.5], [40.0, 40.0]])
    assert model.release_.predict(odd).tolist() == [model.predict(odd[:1])[0], -1, -1]
    assert model.release_.strengths(odd).tolist() == [model.strengths(odd[:1])[0], 0, 0]
    assert model.strengths(odd[:1])[0] > 0.5


def test_a_release_without_spans_has_no_strengths(model, rows, tmp_path):
    pd.DataFrame(rows).rename(columns=str).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ParameterError, match="GridKMeans has no spans: use DensityTree or DPDBSCAN"):
        model.release_.strengths(rows)
    with pytest.raises(ParameterError, match="GridKMeans has no spans"):
        model.release_.predict_files(tmp_path / "rows.parquet", strengths="strength")
