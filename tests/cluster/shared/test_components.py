"""Private principal components: where rows are, and along which directions they vary."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.budget import Budget, Plan, Step, calibrate
from sfumato.cluster.shared.components import ask_components, ask_frame, component_steps, frame_steps
from sfumato.curator import Curator
from sfumato.domain import Domain
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.mechanisms.entropy import Entropy

SHARE = Fraction(3, 5)
ENORMOUS = Budget(rho=10**12)


def curator_over(rows, budget=ENORMOUS, seed=0, bounds=(-1, 1), steps=component_steps):
    domain = Domain.from_bounds(bounds, rows.shape[1])
    plan = Plan(*steps(domain, SHARE), Step("rest", 1 - SHARE))
    return Curator(MemoryEngine(rows, domain), domain, calibrate(plan, budget, 1), Entropy(seed))


def stretched(n=20_000, d=10):
    """Rows that vary along two slanted directions, and little along all others."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(d, 2)))[0].T
    rows = 0.1 + rng.normal(scale=[0.2, 0.1], size=(n, 2)) @ directions + rng.normal(scale=0.01, size=(n, d))
    return rows, directions


@pytest.mark.parametrize("steps", [frame_steps, component_steps])
def test_steps_have_the_share(steps):
    assert sum(step.share for step in steps(Domain.from_bounds((-1, 1), 7), SHARE)) == SHARE


@pytest.mark.parametrize("budget", [ENORMOUS, Budget(1, 1e-6)], ids=["enormous", "usual"])
def test_the_frame_holds_most_rows(budget):
    rows, _ = stretched()
    for bounds in ((-1, 1), (-16, 16)):
        frame = ask_frame(curator_over(rows, budget, bounds=bounds))
        inside = (np.linalg.norm(rows - frame.middle, axis=1) < frame.reach).mean()
        assert inside > 0.85
        assert frame.reach < 4 * np.linalg.norm(rows - rows.mean(axis=0), axis=1).mean()
        assert frame.rows == pytest.approx(len(rows), rel=0.1)


@pytest.mark.parametrize("budget", [ENORMOUS, Budget(1, 1e-6)], ids=["enormous", "usual"])
def test_directions_are_those_along_which_rows_vary(budget):
    rows, directions = stretched()
    asked = curator_over(rows, budget)
    found = ask_components(asked, ask_frame(asked), 4)
    assert found.directions @ found.directions.T == pytest.approx(np.eye(4))
    assert np.linalg.norm(found.directions[:2] @ directions.T) ** 2 > 1.95  # the same plane
    assert (np.diff(found.variances) <= 0).all()
    assert (found.variances > found.noise).sum() >= (4 if budget == ENORMOUS else 2)
    if budget != ENORMOUS:  # the others are noise, or hardly stand out of it
        assert (found.variances[2:] < 2 * found.noise).all()
    assert found.trace == pytest.approx(rows.var(axis=0).sum(), rel=0.25)


def test_the_noise_is_what_no_rows_show():
    """Rows in one place vary along no direction: what is seen is about the stated noise."""
    seen = []
    for seed in range(20):
        asked = curator_over(np.zeros((3000, 20)), Budget(1, 1e-6), seed)
        found = ask_components(asked, ask_frame(asked), 20)
        seen.append(found.variances[0] / found.noise)
    assert 0.7 < np.median(seen) < 1.2


@pytest.mark.parametrize("rows", [np.empty((0, 9)), np.zeros((1, 9)), np.full((300, 9), 0.4)])
@pytest.mark.parametrize("budget", [Budget("0.01"), Budget(1), Budget(1, 1e-6), ENORMOUS], ids=str)
def test_no_table_breaks_it(rows, budget):
    for seed in range(3):
        asked = curator_over(rows, budget, seed)
        frame = ask_frame(asked)
        assert frame.reach > 0
        found = ask_components(asked, frame, 9)
        for value in found:
            assert np.isfinite(value).all()
        assert [record.step for record in asked.records] == ["mean", "distances", "moments"]
