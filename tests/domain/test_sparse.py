"""The declaration of sparse rows, and its sketch against an obvious twin."""

import numpy as np
import pytest

from sfumato import Sparse
from sfumato.domain import Domain
from sfumato.domain.sparse import hashed
from sfumato.errors import ParameterError


def active_rows(sparse, n, seed=0):
    """Random unit rows, with all their active columns in use."""
    rng, kept = np.random.default_rng(seed), sparse.n_kept
    columns = np.sort([rng.choice(sparse.n_columns, kept, replace=False) for _ in range(n)], axis=1)
    values = rng.normal(size=(n, kept))
    return np.hstack([columns, values / np.linalg.norm(values, axis=1, keepdims=True)])


def sketch_by_hand(sparse):
    """The matrix of signs, of shape (n_columns, n_components)."""
    p, matrix = sparse.n_components, np.zeros((sparse.n_columns, sparse.n_components))
    for column in range(sparse.n_columns):
        bits = int(hashed(column, sparse.seed))
        for copy in range(4):
            part, bits = bits & 0xFFFF, bits >> 16
            first, after = p * copy // 4, p * (copy + 1) // 4
            matrix[column, first + ((part >> 1) * (after - first) >> 15)] = 0.5 if part & 1 else -0.5
    return matrix


@pytest.mark.parametrize("p", [16, 30, 257])
def test_the_sketch_is_a_matrix_of_signs(p):
    sparse = Sparse(max_active=20, n_components=p, n_columns=300, seed=7)
    active = active_rows(sparse, 50)
    rows = np.zeros((50, 300))
    np.put_along_axis(rows, active[:, :20].astype(int), active[:, 20:], axis=1)
    expected = rows @ sketch_by_hand(sparse)
    expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1)
    assert np.allclose(sparse.coordinates(active), expected, atol=1e-12)


def test_the_sketch_keeps_products_and_stays_in_the_ball():
    sparse = Sparse(max_active=64, n_components=512, n_columns=20_000)
    active = active_rows(sparse, 400)
    points = sparse.coordinates(active)
    lengths = np.linalg.norm(points, axis=1)
    assert lengths.max() <= 1 + 1e-12
    assert lengths.min() > 0.8
    products = points @ points.T
    others = products[~np.eye(400, dtype=bool)]
    assert abs(others.mean()) < 0.002
    assert others.std() == pytest.approx(1 / np.sqrt(512), rel=0.1)


def test_few_columns_are_not_sketched():
    sparse = Sparse(max_active=3, n_components=16, n_columns=5)
    active = np.array([[1.0, 4.0, -1.0, 0.6, -0.8, 0.0]])
    assert sparse.coordinates(active).tolist() == [[0.0, 0.6, 0.0, 0.0, -0.8]]


def test_the_domain_is_a_ball_of_the_coordinates():
    domain = Domain.from_bounds(Sparse(n_components=64, norm=3.0), 10**6)
    assert (domain.n_features, domain.radius, domain.low[0]) == (64, 3.0, -3.0)
    assert Domain.from_bounds(Sparse(), 30).n_features == 30


def test_the_hash_is_one_to_one_and_fixed():
    """Releases of other versions are read with the same hash: it must never change."""
    assert [int(hashed(column, seed)) for column, seed in [(0, 0), (1, 0), (0, 1)]] == [
        16294208416658607535,
        10451216379200822465,
        7960286522194355700,
    ]
    assert len({int(hashed(column, 3)) for column in range(10_000)}) == 10_000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_active": 0}, "`max_active` must be"),
        ({"n_components": 8}, "`n_components` must be"),
        ({"n_components": 100.5}, "`n_components` must be"),
        ({"norm": "l1"}, "`norm` must be"),
        ({"norm": 0.0}, "`norm` must be"),
        ({"n_columns": 0}, "`n_columns` must be"),
        ({"lists": ("a", "b", "c")}, "`lists` must be"),
        ({"lists": 3}, "`lists` must be"),
        ({"feature_names": ["a"], "n_columns": 2}, "`feature_names` must be"),
        ({"seed": -1}, "`seed` must be"),
    ],
)
def test_a_wrong_declaration_is_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        Sparse(**options)


def test_the_number_of_columns_must_be_known_and_agree():
    with pytest.raises(ParameterError, match="`n_columns` of `Sparse`"):
        Sparse().of_columns(None)
    with pytest.raises(ParameterError, match="the 3 columns that `Sparse` declares, got 4"):
        Sparse(feature_names=["a", "b", "c"]).of_columns(4)
    assert Sparse(feature_names=["a", "b", "c"]).of_columns(None).n_columns == 3
