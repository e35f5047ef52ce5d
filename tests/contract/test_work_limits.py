"""Work that would take too much time or memory is refused before anything is charged."""

import numpy as np
import pytest

import sfumato
from sfumato import (
    DPM,
    Budget,
    DensityTree,
    DPMoG,
    GridKMeans,
    Ledger,
    LloydKMeans,
    LocalSearchKMeans,
    MorseClustering,
)
from sfumato.errors import ParameterError

SECRET = 0.123456789
TOO_MUCH = [
    (DensityTree(), 9, "9 columns needs more memory than `max_memory`=1e\\+09 bytes"),
    (GridKMeans(max_cells=200), 8, "at least 2\\^8 cells, above `max_cells`=200"),
    (GridKMeans(), 24, "a grid over 24 columns"),
    (DPMoG(50), 256, "`n_components`=50 components in 256 columns are 3,276,800 numbers"),
    (DPMoG(8, covariance="full"), 768, "`n_components`=8 components in 768 columns"),
    (MorseClustering(), 384, "`n_components`=20 components in 384 columns"),
    (MorseClustering(n_clusters=50), 200, "`n_components`=150 components in 200 columns"),
    (MorseClustering(LloydKMeans(40)), 256, "`n_clusters`=40 components in 256 columns"),
    (MorseClustering(DPM()), 384, "`n_clusters`=20 components in 384 columns"),
    (LloydKMeans(50, covariances=True), 384, "`n_clusters`=50 components in 384 columns"),
    (LocalSearchKMeans(50, covariances=True), 384, "`n_clusters`=50 components in 384 columns"),
    (DPM(), 2049, "128 leaves in 2049 columns need 33,570,816 counts"),
]
ENOUGH = [
    (DensityTree(), 8),
    (GridKMeans(), 8),
    (DPMoG(8), 512),
    (MorseClustering(), 300),
    (LloydKMeans(50), 2048),
    (LloydKMeans(8, covariances=True), 512),
    (LocalSearchKMeans(50), 2048),
    (DPM(), 2048),
    (DPM(max_depth=5), 4096),
    (DPM(max_depth=12), 2),
]


@pytest.mark.parametrize(("method", "d", "message"), TOO_MUCH)
def test_refusals_come_before_the_charge_and_name_a_way_out(method, d, message, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "rows", Budget(1, 1e-6))
    method.set_params(bounds=(-1, 1), epsilon=1, delta=1e-7, ledger=ledger)
    with pytest.raises(ParameterError, match=message) as refusal:
        method.fit(np.full((50, d), SECRET))
    assert not ledger.spent()
    assert "use" in str(refusal.value)
    assert any(name in str(refusal.value) for name in ("PrivatePCA", "LocalSearchKMeans"))
    assert str(SECRET) not in str(refusal.value)


@pytest.mark.parametrize(("method", "d"), ENOUGH)
def test_tables_up_to_the_limit_have_a_plan(method, d):
    assert method.set_params(bounds=(-1, 1), epsilon=1, delta=1e-7).plan(d)


def test_refusals_name_methods_that_exist():
    assert {"PrivatePCA", "RandomProjection", "LocalSearchKMeans"} <= set(sfumato.__all__)


def test_a_grid_never_has_more_cells_than_fit_into_memory():
    rows = np.random.default_rng(0).uniform(-1, 1, size=(100, 8))
    huge = {"n_public": 10**12, "epsilon": 1000, "bounds": (-1, 1), "random_state": 0}
    assert GridKMeans(2, max_cells=10**5, **huge).fit(rows).grid_.shape == (4,) * 8
