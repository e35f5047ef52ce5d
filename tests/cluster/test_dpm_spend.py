"""DPM's plan: what it declares is asked, every step once, and costs the budget.

The spend is computed anew from the records: exact sums for pure and zCDP budgets, and for (epsilon, delta)
Rényi orders or, where all steps are pure, the exact divergence.
"""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from sfumato.cluster.dpm import DPM, EXTRA_LEVELS, _level_shares
from sfumato.datasets import separated_gaussians
from sfumato.domain import Domain

BUDGETS = {"pure": {"epsilon": 1}, "approximate": {"epsilon": 1, "delta": 1e-6}, "zcdp": {"rho": 0.05}}
every_budget = pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)


def model(**parameters):
    return DPM(**{"bounds": (-1, 1), "random_state": 0, **parameters})


def clusters(d, n=4000):
    return separated_gaussians(n, 3, d, random_state=0)[0]


def size(record):
    """Sensitivity over scale, exact: the pure cost of Laplace noise and of selections."""
    moved = record.sensitivity.l1 if record.mechanism == "discrete Laplace" else record.sensitivity.spread
    return Fraction(moved) / record.scale


def rho_of(record):
    if record.mechanism == "discrete Gaussian":
        return Fraction(record.sensitivity.l2_squared) / (2 * record.scale**2)
    return size(record) ** 2 / (8 if record.mechanism == "exponential" else 2)


def renyi_epsilon(records, delta):
    """Bound by Rényi orders (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    order, rho = np.geomspace(1.0001, 1e9, 20_000), sum(float(rho_of(record)) for record in records)
    return float((order * rho + np.log1p(-1 / order) - np.log(delta * order) / (order - 1)).min())


def exact_delta(records, epsilon):
    """Delta of pure steps: each is dominated by randomised response, so sum over all pairs of outcomes."""
    losses, probabilities = np.zeros(1), np.ones(1)
    for cost in (float(size(record)) for record in records):
        likely = 1 / (1 + math.exp(-cost))
        losses = np.concatenate([losses + cost, losses - cost])
        probabilities = np.concatenate([likely * probabilities, (1 - likely) * probabilities])
    return float(probabilities @ np.maximum(-np.expm1(epsilon - losses), 0))


def check_spend(records, *, epsilon=None, delta=None, rho=None):
    """What was recorded costs what was promised: not more, and hardly less."""
    nearly = 1 - Fraction(1, 10**8)
    if rho is not None:
        assert Fraction(str(rho)) * nearly <= sum(map(rho_of, records)) <= Fraction(str(rho))
    elif delta is None:
        assert all(record.mechanism != "discrete Gaussian" for record in records)
        assert Fraction(epsilon) * nearly <= sum(map(size, records)) <= Fraction(epsilon)
    elif any(record.mechanism == "discrete Gaussian" for record in records):
        assert 0.98 * epsilon < renyi_epsilon(records, delta) <= epsilon * (1 + 1e-6)
    else:
        assert exact_delta(records, epsilon) <= delta * (1 + 1e-6)
        assert exact_delta(records, 0.98 * epsilon) > delta


def tree_steps(max_depth):
    levels = range(1, max_depth + EXTRA_LEVELS + 1)
    return ["rows", *(f"{name} {level}" for level in levels for name in ("splits", "sizes")), "leaves"]


@pytest.mark.parametrize("max_depth", [1, 7, 10, 12])
@pytest.mark.parametrize("refine", [True, False])
@pytest.mark.parametrize("d", [1, 2, 10, 100, 1000])
def test_shares_sum_to_one(d, max_depth, refine):
    plan = DPM(max_depth=max_depth, refine=refine)._plan(Domain.from_bounds((-1, 1), d))
    names = [step.name for step in plan.steps]
    wanted = tree_steps(max_depth)
    assert names[: len(wanted)] == wanted
    assert {name.split()[0] for name in names[len(wanted) :]} == (
        {"distances", "displacements"} if refine else set()
    )
    assert sum(Fraction(step.share) for step in plan.steps) == 1
    assert all(step.repeats == 1 for step in plan.steps)
    assert [step.name for step in plan.steps if step.selection] == [n for n in wanted if "splits" in n]


def test_level_shares():
    """Proportional to the square root of the number of nodes: levels with smaller leaves get more."""
    for n_levels in (1, 2, 9, 14):
        shares = _level_shares(n_levels)
        assert sum(shares) == 1
        ratios = [float(b / a) for a, b in pairwise(shares)]
        assert ratios == pytest.approx([math.sqrt(2)] * (n_levels - 1), rel=1e-3)


@every_budget
@pytest.mark.parametrize("max_depth", [1, 7, 10])
@pytest.mark.parametrize("d", [2, *(pytest.param(d, marks=pytest.mark.slow) for d in (1, 10, 100))])
def test_what_is_recorded_is_what_was_promised(d, max_depth, budget):
    """Every declared step is asked once, however the tree grows, and together they cost the budget."""
    for rows in (np.empty((0, d)), clusters(d, 600)):
        fitted = model(max_depth=max_depth, **budget).fit(rows)
        declared = fitted.plan(d).records()
        records = fitted.privacy_.steps
        assert sorted(r.step for r in records) == sorted(r.step for r in declared)
        assert set(records) == set(declared)
        check_spend(records, **budget)


@every_budget
def test_without_refinement_the_leaves_get_the_rest(budget):
    fitted = model(refine=False, **budget).fit(clusters(2))
    assert set(fitted.privacy_.steps) == set(fitted.plan(2).records())
    check_spend(fitted.privacy_.steps, **budget)


def test_a_wrong_scale_would_be_seen():
    records = model().fit(clusters(2)).privacy_.steps
    check_spend(records, epsilon=1)
    for wrong in (records[:-1], (*records, records[0])):
        with pytest.raises(AssertionError):
            check_spend(wrong, epsilon=1)
