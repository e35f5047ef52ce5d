"""How states travel through Spark."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sfumato.private.engines.spark_states import MOST_BYTES, MOST_RECEIVED, decode, encode, widths

INT64 = np.iinfo(np.int64)
VALUES = st.sampled_from([0, 0, 0, 0, 1, -1, 127, 128, -129, 2**15, 2**31, INT64.min, INT64.max])


@given(
    hnp.arrays(np.int64, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=40), elements=VALUES)
)
def test_a_state_is_the_same_after_its_journey(state):
    found = decode(encode(state))
    assert found.dtype == np.int64
    assert found.shape == state.shape
    assert (found == state).all()


@pytest.mark.parametrize(("n_occupied", "most"), [(0, 1000), (1000, 6000), (10**6, 1_001_000)])
def test_sparse_and_small_counts_take_few_bytes(n_occupied, most):
    state = np.zeros(10**6, dtype=np.int64)
    state[np.random.default_rng(0).choice(10**6, n_occupied, replace=False)] = 100
    assert len(encode(state)) < most


@pytest.mark.parametrize("n_states", [0, 1, 16, 17, 200, 10**4, 10**6])
@pytest.mark.parametrize("n_bytes", [8, 10**6, 80 * 10**6, 10**10])
def test_the_driver_gets_few_states(n_states, n_bytes):
    levels = widths(n_states, n_bytes)
    left = levels[-1] if levels else n_states
    assert left <= MOST_RECEIVED
    assert left <= 1 or left * n_bytes <= MOST_BYTES
    assert all(below * below <= above for above, below in zip([n_states, *levels], levels, strict=False))
