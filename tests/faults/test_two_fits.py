import re
from pathlib import Path

import pytest
from tests.faults.kills import CHARGED, FIT, PRICE, make_world

from sfumato import LloydKMeans, Release
from sfumato.cli import fit
from sfumato.errors import ReleaseError


def test_two_fits_and_a_budget_for_one(warm, tmp_path):
    ledger = make_world(tmp_path, total=PRICE.epsilon)
    fits = [[*FIT, *CHARGED, "--out", name] for name in ("a.json", "b.json")]
    done = warm.run_together(tmp_path, *fits)
    assert sorted(fit.code for fit in done) == [0, 4]
    (refused,) = [fit for fit in done if fit.code]
    assert refused.said.startswith("error: The budget of 'people' does not cover")
    (released,) = tmp_path.glob("*.json")
    assert Release.load(released).privacy.spent == ledger.spent() == PRICE
    assert not ledger.remaining()


def test_a_release_that_came_in_the_meantime_is_kept(rows, tmp_path):
    other, ours = (LloydKMeans(3, bounds=(-1, 1), random_state=i).fit(rows).release_ for i in range(2))
    path = other.save(tmp_path / "release.json")
    with pytest.raises(ReleaseError, match="could not be written: File exists") as caught:
        fit.write_release(ours, path, None, force=False)
    kept = Path(re.search(r"the release is in (\S+): move it", str(caught.value))[1])
    assert Release.load(path).checksum() == other.checksum()
    assert Release.load(kept).checksum() == ours.checksum()
    kept.unlink()
