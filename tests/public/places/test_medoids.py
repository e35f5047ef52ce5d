"""Greedy start, swaps and their kernels against the obvious loops over a matrix of distances."""

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from sfumato.errors import ParameterError
from sfumato.public.places import medoids
from sfumato.public.places.medoids import k_medoids

CASES = {
    "plain": {},
    "free": {"n_free": 7},
    "weights": {"weighted": True},
    "free and weights": {"n_free": 3, "weighted": True},
    "one column": {"d": 1, "n_free": 2},
    "many columns": {"d": 9, "weighted": True},
    "more than one leaf": {"n": 300, "n_free": 5},
}


def world(n=40, d=2, n_free=0, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d)) * rng.choice([0.2, 1.0], size=(n, 1))
    free = rng.normal(size=(n_free, d)) if n_free else None
    return points, free, rng.integers(0, 5, size=n).astype(float) if weighted else None


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request):
    return world(**request.param)


def caps_of(points, free):
    return cdist(points, free).min(axis=1) if free is not None else np.full(len(points), np.inf)


def cost_of(points, chosen, free, weights=None):
    nearest = np.minimum(cdist(points, points[chosen]).min(axis=1), caps_of(points, free))
    return float(np.sum(nearest if weights is None else weights * nearest))


def greedy(points, k, free, weights):
    chosen = []
    for _ in range(k):
        rest = [c for c in range(len(points)) if c not in chosen]
        chosen.append(min(rest, key=lambda c: cost_of(points, [*chosen, c], free, weights)))
    return chosen


def swap_costs(points, chosen, free, weights):
    """Cost after each exchange of a chosen point for one that is not, shape (k, n - k)."""
    rest = np.setdiff1d(np.arange(len(points)), chosen)
    others = [np.delete(chosen, slot) for slot in range(len(chosen))]
    return rest, np.array([[cost_of(points, [*other, c], free, weights) for c in rest] for other in others])


def run(points, k, free, weights, **more):
    return k_medoids(points, k, free_centres=free, weights=weights, **more)


def test_the_start_is_greedy(case):
    points, free, weights = case
    k = 6 if len(points) < 100 else 3
    found = run(points, k, free, weights, n_init=1, max_iter=0)
    assert found.indices.tolist() == greedy(points, k, free, weights)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_no_swap_saves_anything(case, k):
    points, free, weights = (part if part is None else part[:60] for part in case)
    found = run(points, k, free, weights)
    _, costs = swap_costs(points, found.indices, free, weights)
    assert costs.min() >= found.cost * (1 - 1e-9)
    assert found.cost <= run(points, k, free, weights, n_init=1, max_iter=0).cost * (1 + 1e-12)


def test_cost_and_labels_are_those_of_the_indices(case):
    points, free, weights = case
    found = run(points, 4, free, weights)
    assert found.cost == pytest.approx(cost_of(points, found.indices, free, weights))
    assert found.indices.dtype == found.labels.dtype == np.int64
    distances, caps = cdist(points, points[found.indices]), caps_of(points, free)
    is_free = caps <= distances.min(axis=1)
    assert np.array_equal(found.labels, np.where(is_free, -1, distances.argmin(axis=1)))


def test_more_searches_never_cost_more():
    points, free, weights = world(n=150, n_free=4, weighted=True)
    costs = [run(points, 8, free, weights, n_init=n_init).cost for n_init in (1, 2, 4)]
    assert costs == sorted(costs, reverse=True)


def served(points, chosen, free, weights):
    n, k = len(points), len(chosen)
    limits = medoids._caps(points, free)
    order, space = medoids.arrange(points, np.ones(n) if weights is None else weights, limits)
    position = np.argsort(order)
    service = medoids.unserved(space, k)
    for slot in range(k):
        medoids.take(space, service, slot, position[chosen[slot]])
    return space, service, position


def test_removal_losses(case):
    points, free, weights = case
    chosen = [3, 8, 13, 21]
    space, service, _ = served(points, chosen, free, weights)
    losses = np.empty(5)
    medoids.removal_losses(space, service, losses)
    before = cost_of(points, chosen, free, weights)
    expected = [cost_of(points, np.delete(chosen, s), free, weights) - before for s in range(4)]
    assert losses == pytest.approx([*expected, 0.0])


def test_changes_of_every_swap(case):
    points, free, weights = (part if part is None else part[:100] for part in case)
    chosen = np.array([3, 8, 13, 21])
    space, service, position = served(points, chosen, free, weights)
    losses = np.empty(5)
    medoids.removal_losses(space, service, losses)
    rest, costs = swap_costs(points, chosen, free, weights)
    boxes, squares = np.empty(len(space.starts) - 1), np.empty(len(points))
    for c, after in zip(rest, costs.T, strict=True):
        changes = losses.copy()
        medoids.add_candidate(space, service, position[c], changes, boxes, squares)
        expected = after - cost_of(points, chosen, free, weights)
        assert changes[:4] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_service_after_many_swaps(case):
    points, free, weights = case
    rng = np.random.default_rng(1)
    chosen = [3, 8, 13, 21]
    space, service, position = served(points, chosen, free, weights)
    for slot in rng.integers(4, size=50):
        chosen[slot] = rng.choice(np.setdiff1d(np.arange(40), chosen))
        medoids.take(space, service, slot, position[chosen[slot]])
    columns = np.column_stack([cdist(points, points[chosen]), *[medoids._caps(points, free)] * 2])
    slots, ranked = np.argsort(columns, axis=1, kind="stable")[:, :2], np.sort(columns, axis=1)
    assert service.first[position] == pytest.approx(ranked[:, 0])
    assert service.second[position] == pytest.approx(ranked[:, 1])
    assert np.array_equal(service.first_slot[position], np.minimum(slots[:, 0], 4))
    assert np.array_equal(service.second_slot[position], np.minimum(slots[:, 1], 4))


def test_weights_are_repeated_points():
    points, free, weights = world(n=60, n_free=4, weighted=True)
    repeats = weights.astype(int)
    weighted = run(points, 5, free, weights)
    repeated = run(np.repeat(points, repeats, axis=0), 5, free, None)
    assert weighted.cost == pytest.approx(repeated.cost)
    of_repeated = np.repeat(np.arange(60), repeats)[repeated.indices]
    assert sorted(weighted.indices) == sorted(of_repeated)


def test_free_centres_only_help():
    points, free, _ = world(n=200, n_free=20)
    costs = [run(points, 5, free[:m] if m else None, None).cost for m in (0, 1, 5, 20)]
    assert costs == sorted(costs, reverse=True)
    assert run(points, 5, free, None).cost <= np.sum(caps_of(points, free))
    far = run(points, 5, np.full((1, 2), 1e6), None)
    assert far.indices.tolist() == run(points, 5, None, None).indices.tolist()
    assert run(points, 5, np.empty((0, 2)), None).cost == run(points, 5, None, None).cost


def test_several_caps_cost_their_mean():
    """A point with several caps costs the mean over them, for the best choice too."""
    points, _, weights = world(n=40, weighted=True)
    caps = np.sort(np.random.default_rng(0).uniform(0, 2, size=(40, 3)), axis=1)
    found = k_medoids(points, 2, caps=caps, weights=weights)

    def cost(chosen):
        to_chosen = np.linalg.norm(points[:, None] - points[list(chosen)], axis=2).min(axis=1)
        return weights @ np.minimum(to_chosen[:, None], caps).mean(axis=1)

    assert found.cost == pytest.approx(cost(found.indices))
    assert found.cost <= min(cost(pair) for pair in combinations(range(40), 2)) * 1.02
    to_chosen = np.linalg.norm(points[:, None] - points[found.indices], axis=2)
    assert ((found.labels >= 0) == (to_chosen.min(axis=1) < caps[:, 1])).all()


def test_caps_with_shares():
    points = world(n=30)[0]
    caps = np.sort(np.random.default_rng(0).uniform(0, 2, size=(30, 2)), axis=1)
    twice = k_medoids(points, 3, caps=caps[:, [0, 1, 1, 1]])
    found = k_medoids(points, 3, caps=caps, cap_shares=(0.25, 0.75))
    assert found.cost == pytest.approx(twice.cost)
    assert sorted(found.indices) == sorted(twice.indices)
    assert (found.labels == twice.labels).all()


def test_one_cap_is_a_distance_from_free_centres():
    points, free, weights = world(n=150, n_free=5, weighted=True)
    capped = k_medoids(points, 6, caps=caps_of(points, free)[:, None], weights=weights)
    assert capped.indices.tolist() == run(points, 6, free, weights).indices.tolist()


def test_copies_of_a_point_are_no_candidates():
    found = k_medoids(np.eye(3), 3, caps=np.full((3, 7), 0.1))
    assert sorted(found.indices.tolist()) == [0, 1, 2]


def test_is_deterministic_and_leaves_its_input_alone():
    points, free, weights = world(n=150, n_free=5, weighted=True)
    copies = points.copy(), free.copy(), weights.copy()
    one, two = (run(points, 8, free, weights) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip((points, free, weights), copies, strict=True))


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_units_do_not_matter(scale):
    points, free, _ = world(n=100, n_free=3)
    found = run(points * scale, 4, free * scale, None)
    assert np.array_equal(found.indices, run(points, 4, free, None).indices)


def test_duplicates_still_give_distinct_indices():
    points = np.repeat(world(n=4)[0], 10, axis=0)
    found = k_medoids(points, 9)
    assert len(set(found.indices.tolist())) == 9
    assert found.cost == 0
    assert k_medoids(np.ones((5, 2)), 3).indices.tolist() == [0, 1, 2]


def test_every_point_may_be_chosen():
    points, free, _ = world(n=30, n_free=2)
    found = run(points, 30, free, None)
    assert sorted(found.indices.tolist()) == list(range(30))
    assert found.cost == 0


def test_one_point():
    assert k_medoids([[2.0, 3.0]], 1).indices.tolist() == [0]
    assert k_medoids([[2.0, 3.0]], 1, free_centres=[[2.0, 4.0]]).labels.tolist() == [0]


def test_all_points_are_free_centres():
    points = np.tile([[1.0, 2.0]], (7, 1))
    found = k_medoids(points, 3, free_centres=points[:1])
    assert (found.indices.tolist(), found.cost, found.labels.tolist()) == ([0, 1, 2], 0.0, [-1] * 7)


def test_points_without_weight_cost_nothing():
    found = k_medoids(world()[0], 2, weights=np.zeros(40))
    assert found.cost == 0
    assert len(set(found.indices.tolist())) == 2


GOOD = {"points": np.eye(4), "k": 2}
BAD = {
    "k of 0": {"k": 0},
    "k above n": {"k": 5},
    "k not an integer": {"k": 2.0},
    "k a bool": {"k": True},
    "n_init of 0": {"n_init": 0},
    "max_iter negative": {"max_iter": -1},
    "points not finite": {"points": [[np.nan], [1.0]]},
    "points infinite": {"points": [[np.inf], [1.0]]},
    "points too large": {"points": [[1e200], [1.0]]},
    "points of one dimension": {"points": [1.0, 2.0]},
    "points ragged": {"points": [[1.0], [1.0, 2.0]]},
    "points not numbers": {"points": [["a"], ["b"]]},
    "points none": {"points": np.empty((0, 3))},
    "points without columns": {"points": np.empty((3, 0))},
    "free_centres of other columns": {"free_centres": [[1.0, 2.0]]},
    "free_centres not finite": {"free_centres": [[np.nan] * 4]},
    "free_centres of one dimension": {"free_centres": [1.0, 2.0]},
    "caps negative": {"caps": [[-1.0]] * 4},
    "caps infinite": {"caps": [[np.inf]] * 4},
    "caps of another length": {"caps": [[1.0]] * 3},
    "caps of one dimension": {"caps": [1.0] * 4},
    "caps without columns": {"caps": np.empty((4, 0))},
    "caps not numbers": {"caps": [["a"]] * 4},
    "cap_shares of another length": {"caps": [[1.0]] * 4, "cap_shares": (0.5, 0.5)},
    "cap_shares that are not shares": {"caps": [[1.0, 2.0]] * 4, "cap_shares": (0.5, 0.6)},
    "cap_shares without caps": {"cap_shares": (1.0,)},
    "weights negative": {"weights": [1, 1, 1, -1]},
    "weights not finite": {"weights": [1, 1, 1, np.nan]},
    "weights of another length": {"weights": [1, 1, 1]},
    "weights not numbers": {"weights": ["a"] * 4},
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    arguments = GOOD | BAD[name]
    with pytest.raises(ParameterError, match=rf"^`{name.split()[0]}` must "):
        k_medoids(arguments.pop("points"), arguments.pop("k"), **arguments)
