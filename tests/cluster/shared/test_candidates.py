"""Private candidates: what is asked, how boxes are divided and counted, and how centres are recovered."""

from fractions import Fraction

import numpy as np
import pytest
from tests.worlds import curate

from sfumato import Ball
from sfumato.budget import Budget, Plan, Step, calibrate
from sfumato.cluster.shared.candidates import (
    N_LEVELS,
    candidate_steps,
    find_candidates,
    max_candidates,
    recovered,
    recovery_steps,
)
from sfumato.cluster.shared.candidates import _Boxes as Boxes
from sfumato.domain import Domain
from sfumato.domain.partitions import Tree


def curator_over(rows, k, bounds=(-1, 1), epsilon=1.0, seed=0):
    domain = Domain.from_bounds(bounds, rows.shape[1])
    half = Fraction(1, 2)
    plan = Plan(*candidate_steps(domain, k, half), *recovery_steps(domain, half))
    return curate(rows, domain, calibrate(plan, Budget(epsilon)), seed)


def blobs(n=4000, d=3, k=5, seed=0):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-0.8, 0.8, size=(k, d))
    return np.clip(centers[rng.integers(k, size=n)] + rng.normal(scale=0.02, size=(n, d)), -1, 1), centers


@pytest.mark.parametrize("share", [Fraction(1), Fraction(1, 3), Fraction(9, 40)])
def test_steps_take_exactly_their_share(share):
    domain = Domain.from_bounds((0, 1), 30)
    for steps in (candidate_steps(domain, 7, share), recovery_steps(domain, share)):
        assert sum(Fraction(step.share) for step in steps) == share
        assert not any(step.selection for step in steps)


@pytest.mark.parametrize("k", [1, 2, 9, 600])
@pytest.mark.parametrize("d", [1, 2, 40])
def test_all_that_is_declared_is_asked_and_enough_is_found(k, d):
    rows = np.random.default_rng(0).uniform(-1, 1, size=(50, d))
    curator = curator_over(rows, k)
    found = find_candidates(curator, k)
    assert [r.step for r in curator.records] == ["middle", "reach", *["boxes"] * N_LEVELS, "box means"]
    assert k <= len(found.points) <= max_candidates(k)
    assert found.points.shape[1] == (d if found.projection is None else len(found.projection)) <= d
    assert np.isfinite(found.points).all()
    assert (found.weights > 0).all()


def test_candidates_stand_at_clusters():
    rows, centers = blobs()
    found = find_candidates(curator_over(rows, 5, epsilon=20), 5)
    gaps = np.linalg.norm(centers[:, None] - found.points, axis=2).min(axis=1)
    assert gaps.max() < 0.1
    assert found.weights.sum() == pytest.approx(len(rows), rel=0.1)


def test_candidates_in_many_columns_and_back():
    rows, centers = blobs(d=60)
    curator = curator_over(rows, 5, epsilon=50)
    found = find_candidates(curator, 5)
    projected = centers @ found.projection.T
    nearest = np.linalg.norm(projected[:, None] - found.points, axis=2).argmin(axis=1)
    assert len(set(nearest)) == 5
    model = recovered(curator, found, found.points[nearest], refine=False)
    assert np.linalg.norm(model.cluster_centers - centers, axis=1).max() < 0.3
    assert model.cluster_sizes.sum() == pytest.approx(len(rows), rel=0.1)


def test_lifted_points_project_to_where_they_come_from():
    found = find_candidates(curator_over(blobs(d=30)[0], 3), 3)
    lifted = found.lifted(found.points)
    assert lifted.shape == (len(found.points), 30)
    assert np.allclose(lifted @ found.projection.T, found.points)


@pytest.mark.parametrize(
    "bounds", [(-1e139, 1e139), (-1e-139, 1e-139), (1e9, 1e9 + 1), Ball(2.0, 0.5)], ids=str
)
@pytest.mark.parametrize("d", [2, 20])
def test_extreme_bounds(bounds, d):
    rows = np.random.default_rng(0).normal(size=(40, d))
    curator = curator_over(rows, 4, bounds)
    found = find_candidates(curator, 4)
    centers = recovered(curator, found, found.points[:4], refine=False).cluster_centers
    assert np.isfinite(found.points).all()
    low, high = np.array(curator.domain.low), np.array(curator.domain.high)
    assert ((centers >= low) & (centers <= high)).all()


def one_box(d=2):
    return Boxes(Tree.root(), np.zeros((1, d)), np.ones((1, d)), np.array([100.0]), np.array([4.0]))


def test_boxes_are_halved_across_their_longest_sides_and_match_the_tree():
    boxes = one_box()
    for _ in range(5):
        boxes = boxes.cut(np.arange(boxes.tree.n_cells))
    assert boxes.tree.n_cells == 32
    assert np.allclose(boxes.high - boxes.low, [1 / 8, 1 / 4])
    assert (boxes.tree.index(boxes.middles) == np.arange(32)).all()
    assert np.prod(boxes.high - boxes.low, axis=1).sum() == pytest.approx(1)


def test_counts_are_combined_by_least_squares():
    boxes = one_box().cut(np.array([0])).counted(np.array([0, 0]), np.array([70.0, 50.0]), 6.0)
    # Minimise (a + b - 100)^2 / 4 + (a - 70)^2 / 6 + (b - 50)^2 / 6.
    system = np.array([[1 / 4 + 1 / 6, 1 / 4], [1 / 4, 1 / 4 + 1 / 6]])
    assert np.allclose(boxes.rows, np.linalg.solve(system, [25 + 70 / 6, 25 + 50 / 6]))
    assert np.allclose(boxes.variance, np.linalg.inv(system).diagonal())
    again = boxes.counted(np.arange(2), np.array([60.0, 40.0]), 6.0)
    weights = boxes.variance / (boxes.variance + 6)
    assert np.allclose(again.rows, boxes.rows + weights * (np.array([60.0, 40.0]) - boxes.rows))


def test_a_count_without_history_is_taken_as_it_is():
    boxes = Boxes(Tree.root(), np.zeros((1, 1)), np.ones((1, 1)), np.zeros(1), np.full(1, np.inf))
    counted = boxes.counted(np.array([0]), np.array([33.0]), 2.0)
    assert (counted.rows, counted.variance) == (33.0, 2.0)


def test_the_division_depends_on_answers_alone(monkeypatch):
    """The same noisy answers give the same candidates, whatever the table."""
    rows, _ = blobs()
    other = curator_over(np.zeros((7, 3)), 5)
    first = curator_over(rows, 5)
    answers = []

    def remember(name):
        ask = getattr(first, name)
        return lambda *args: answers.append(ask(*args)) or answers[-1]

    for name in ("sums", "distances", "cells"):
        monkeypatch.setattr(first, name, remember(name))
    found = find_candidates(first, 5)
    replay = iter(answers)
    for name in ("sums", "distances", "cells"):
        monkeypatch.setattr(other, name, lambda *_: next(replay))
    again = find_candidates(other, 5)
    assert (again.points == found.points).all()
    assert (again.weights == found.weights).all()


def test_an_undeclared_step_is_refused():
    domain = Domain.from_bounds((0, 1), 2)
    plan = calibrate(Plan(Step("other", 1)), Budget(1))
    with pytest.raises(RuntimeError, match="not in the plan"):
        find_candidates(curate(np.zeros((3, 2)), domain, plan, 0), 3)
