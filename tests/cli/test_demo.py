import matplotlib as mpl
import numpy as np

mpl.use("Agg")

from sfumato import Ledger, Release
from sfumato.cli import city

FILES = ("ledger.db", "picture.png", "release.json", "report.html")


def run(folder):
    city.show(folder, n=3_000)
    return Release.load(folder / "release.json")


def test_from_nothing_to_files(tmp_path, capsys):
    release = run(tmp_path / "new" / "demo")
    said = capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "new" / "demo").iterdir()) == sorted(FILES)
    assert "noise scale" in said
    assert "Differential privacy with epsilon=1" in said
    assert "cluster" in said
    assert all(name in said for name in FILES)
    assert release.columns == ("east_km", "north_km")
    assert not release.privacy.seeded


def test_runs_until_the_budget_is_spent_and_then_goes_on_without(tmp_path, capsys):
    first, second = run(tmp_path), run(tmp_path)
    assert not np.array_equal(first.model.cluster_sizes, second.model.cluster_sizes)
    assert not Ledger(tmp_path / "ledger.db", "city").remaining()
    (tmp_path / "report.html").unlink()
    capsys.readouterr()
    third = run(tmp_path)
    said = capsys.readouterr().out
    assert "Refused: The budget of 'city'" in said
    assert "deleting the ledger" in said
    np.testing.assert_array_equal(third.model.cluster_centers, second.model.cluster_centers)
    assert (tmp_path / "report.html").exists()

    (tmp_path / "release.json").unlink()
    city.show(tmp_path, n=3_000)


def test_a_file_is_not_a_folder(call, tmp_path):
    (tmp_path / "note.txt").write_text("kept")
    assert "`--out` must be a folder" in call("demo", "--out", tmp_path / "note.txt", code=2).stderr
