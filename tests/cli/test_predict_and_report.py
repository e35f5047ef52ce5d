import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato import DensityTree, GridKMeans, Release
from sfumato.release import whole_file

BOUNDS = {"east": (0, 40), "north": (0, 30)}


@pytest.fixture(scope="session")
def model(frame):
    return GridKMeans(3, bounds=BOUNDS).fit(frame)


@pytest.fixture
def release(model, tmp_path):
    return model.release_.save(tmp_path / "release.json")


def test_labels_only(call, release, stays, model, frame, silent_about):
    done = call("predict", release, stays, "--out", "labels.parquet")
    assert "not private" in done.stderr
    silent_about(done.output)
    labels = pd.read_parquet("labels.parquet")
    assert labels.columns.tolist() == ["cluster"]
    np.testing.assert_array_equal(labels.cluster, model.predict(frame))
    assert Path("labels.parquet").stat().st_mode & 0o077 == 0


def test_columns_that_are_kept(call, release, trips, model, frame):
    call(
        "predict", release, trips, "--out", "labels.csv", "--keep", "cab,east", "--column", "place", "--quiet"
    )
    labels = pd.read_csv("labels.csv")
    assert labels.columns.tolist() == ["cab", "east", "place"]
    assert labels.cab.tolist() == frame.cab.tolist()
    np.testing.assert_array_equal(labels.place, model.predict(frame))


def test_rows_with_missing_values_have_no_label(call, release, frame):
    frame.assign(east=frame.east.where(frame.index % 2 > 0)).to_parquet("missing.parquet")
    call("predict", release, "missing.parquet", "--out", "labels.parquet")
    missing = pd.read_parquet("labels.parquet").cluster.isna()
    assert missing.tolist() == (frame.index % 2 == 0).tolist()


def test_many_files_in_order(call, release, model, frame, tmp_path):
    (tmp_path / "parts").mkdir()
    for part in range(4):
        frame.iloc[part * 1000 : (part + 1) * 1000].to_parquet(tmp_path / "parts" / f"{part}.parquet")
    call("predict", release, "parts/*.parquet", "--out", "labels.parquet")
    np.testing.assert_array_equal(pd.read_parquet("labels.parquet").cluster, model.predict(frame[:4000]))


def test_releases_of_arrays(call, frame, tmp_path):
    places = frame[["east", "north"]]
    model = GridKMeans(3, bounds=(0, 40)).fit(places.to_numpy())
    model.release_.save("release.json")
    places.to_parquet("places.parquet")
    call("predict", "release.json", "places.parquet", "--out", "labels.parquet")
    labels = pd.read_parquet("labels.parquet").cluster
    np.testing.assert_array_equal(labels, model.predict(places.to_numpy()))
    frame.to_parquet("stays.parquet")
    assert (
        "must have 2 columns"
        in call("predict", "release.json", "stays.parquet", "--out", "more.parquet", code=3).stderr
    )


@pytest.mark.parametrize("out", ["labels.parquet", "labels.csv"])
def test_strengths(call, stays, frame, out, silent_about):
    model = DensityTree(bounds=BOUNDS, epsilon=2).fit(frame)
    model.release_.save("tree.json")
    done = call("predict", "tree.json", stays, "--out", out, "--strengths", "firm", "--keep", "cab")
    silent_about(done.output)
    labels = pd.read_parquet(out) if out.endswith("parquet") else pd.read_csv(out)
    assert labels.columns.tolist() == ["cab", "cluster", "firm"]
    np.testing.assert_array_equal(labels.cluster.fillna(-1), model.predict(frame))
    np.testing.assert_allclose(labels.firm.fillna(0), model.strengths(frame))
    assert labels.firm.max() == 1


def test_strengths_without_spans(call, release, stays):
    done = call("predict", release, stays, "--out", "labels.csv", "--strengths", "firm", code=2)
    assert "GridKMeans has no spans: use DensityTree or DPDBSCAN" in done.stderr
    assert not Path("labels.csv").exists()


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        (["--out", "labels.txt"], "must end in .parquet or .csv"),
        (["--out", "labels.csv", "--keep", "age"], "column 'age' must be in the table"),
        (["--out", "labels.csv", "--keep", "cab", "--column", "cab"], "must differ"),
        (["--out", "labels.csv", "--strengths", "cluster"], "must differ"),
        (["--out", "labels.csv", "--keep", "cab", "--strengths", "cab"], "must differ"),
        (["--out", "release.csv"], "--force"),
    ],
)
def test_refused_predictions(call, release, trips, options, fix):
    Path("release.csv").write_text("precious")
    before = sorted(Path().iterdir())
    assert fix in call("predict", release, trips, *options, code=2).stderr
    assert sorted(Path().iterdir()) == before


def test_tables_that_do_not_fit(call, release, frame):
    frame[["cab", "north"]].to_csv("few.csv", index=False)
    assert "column 'east'" in call("predict", release, "few.csv", "--out", "labels.csv", code=2).stderr
    assert not Path("labels.csv").exists()


def test_tables_without_rows(call, release, frame):
    frame[:0].to_parquet("empty.parquet")
    frame[:0].to_csv("empty.csv")
    for table in ("empty.parquet", "empty.csv"):
        call("predict", release, table, "--out", f"labels.{table}")
    assert len(pd.read_parquet("labels.empty.parquet")) == len(pd.read_csv("labels.empty.csv")) == 0


def test_files_are_written_whole_or_not_at_all(tmp_path):
    def write_half():
        with whole_file(tmp_path / "labels.csv") as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert not list(tmp_path.iterdir())


def test_report(call, release):
    assert call("report", release).stdout == "report: report.html\n"
    assert "<html" in Path("report.html").read_text()
    assert "--force" in call("report", release, code=2).stderr
    assert call("report", release, "--force", "--quiet").output == ""


@pytest.mark.parametrize("command", [["report"], ["predict", "trips.csv", "--out", "labels.csv"]])
def test_bad_release_files(call, release, trips, command):
    name, *others = command
    content = json.loads(release.read_text())
    bad = {"no.json": None, "text.json": "text", "altered.json": json.dumps(content | {"method": "DPM"})}
    for path, text in bad.items():
        if text is not None:
            Path(path).write_text(text)
        done = call(name, path, *others, code=6)
        assert done.stderr.startswith(f"error: {path}")
        assert len(done.stderr.splitlines()) == 1
    assert Release.load(release).method == "GridKMeans"


def test_a_report_without_matplotlib_says_what_to_install(call, release, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = call("report", release, code=70)
    assert done.stderr == "error: pictures need matplotlib: pip install 'sfumato[report]'\n"
