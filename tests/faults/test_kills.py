import signal

import pytest
from tests.faults.kills import FIT_AND_REPORT, FIT_ONLY, LEFT_OVER, N_KILLS, Disk, kill_fits
from tests.faults.warm import FEW_BYTES, Fault


def test_killed_fits_lose_nothing(warm, tmp_path):
    assert kill_fits(warm, tmp_path, N_KILLS).startswith(f"{N_KILLS} kills of ")


@pytest.mark.usefixtures("ledger")
def test_a_death_in_the_middle_of_a_file(warm, tmp_path):
    assert warm.run(tmp_path, *FIT_AND_REPORT).code == 0
    for command, name in ((FIT_ONLY, "release.json"), (FIT_AND_REPORT, "report.html")):
        before = Disk.of(tmp_path)
        done = warm.run(tmp_path, *command, fault=Fault("cut", at=name))
        assert done.code == -signal.SIGXFSZ
        disk = Disk.of(tmp_path)
        assert disk.check_after(before) == (name == "report.html")
        (left,) = disk.left_over - before.left_over
        assert LEFT_OVER.fullmatch(left)
        assert (tmp_path / left).stat().st_size == FEW_BYTES
