import inspect

import pytest

from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.noise import discrete_gaussian, discrete_laplace
from sfumato.private.mechanisms.selection import exponential, permute_and_flip
from sfumato.private.mechanisms.sparse_histogram import sparse_histogram, threshold_for
from sfumato.private.mechanisms.thresholded import thresholded_counts

MECHANISMS = [Entropy, discrete_gaussian, discrete_laplace, exponential, permute_and_flip]
MECHANISMS += [sparse_histogram, threshold_for, thresholded_counts]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_states_its_privacy(mechanism):
    doc = inspect.getdoc(mechanism)
    assert "\nPrivacy\n-------\n" in doc
    assert "Examples\n--------\n" in doc
