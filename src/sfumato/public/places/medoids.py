"""k-medoids with free centres: choose a few points as centres, in addition to given ones.

Private source-target clustering [1]_ needs this as its last, public step. The centres chosen among the target
points serve them together with the sanitised source, whose points are already centres. The cost is the sum of
Euclidean distances. The search has a greedy start, with gains evaluated lazily [2]_, and swaps as in
FasterPAM [3]_. Further searches start from random points.

We do not use the package ``kmedoids``, for two reasons. Free centres are not medoids: they are not
candidates, are never dropped, and may be many. Here they only cap the cost of a point. And a matrix of all
distances takes 3.2 GB for 20,000 points. The leaves of a k-d tree show which few points a candidate could
serve at all, so distances are cheaper to compute than to store.

Everything here is public: the points, the free centres and the result.

References
----------
.. [1] Differentially private source-target clustering (anonymous, under review), after A. de Mathelin,
   F. Deheeger, M. Mougeot, N. Vayatis. Discrepancy-based active learning for domain adaptation. ICLR 2022.
.. [2] M. Minoux. Accelerated greedy algorithms for maximizing submodular set functions. Optimization
   Techniques, Springer, 1978.
.. [3] E. Schubert, P. Rousseeuw. Fast and eager k-medoids clustering: O(k) runtime improvement of the PAM,
   CLARA, and CLARANS algorithms. Information Systems 101, 2021.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike

from sfumato.domain import LARGEST_BOUND, FloatArray, IntArray
from sfumato.errors import ParameterError

_LEAF_SIZE = 40  # leaves hold up to twice as many points; only the time depends on it
_LEAST_SAVING = 1e-10  # of the cost: a swap that saves less is rounding
_MOST_ROUNDS = 10**6  # a limit


class Medoids(NamedTuple):
    """Points chosen as centres.

    Parameters
    ----------
    indices : int array of shape (k,)
        The chosen points, all different.
    cost : float
        Sum of the weighted distances of all points to their nearest centres, free ones included.
    labels : int array of shape (n,)
        Position in `indices` of the centre that serves each point, or -1 if a free centre is as near. With
        several caps, the first decides that is as likely exceeded as not.
    """

    indices: IntArray
    cost: float
    labels: IntArray


class Space(NamedTuple):
    """Points in the order of a k-d tree, and the boxes of its leaves."""

    columns: FloatArray  # (d, n)
    weights: FloatArray  # (n,)
    caps: FloatArray  # (n,); maximum cost of a point: its distance from the nearest free centre
    starts: IntArray  # (n_leaves + 1,); first point of each leaf, and the number of points
    low: FloatArray  # (d, n_leaves)
    high: FloatArray  # (d, n_leaves)


class Service(NamedTuple):
    """The two nearest medoids of each point: their slots and distances.

    The slot after the last stands for the free centres; it may be both the nearest and the second.

    Parameters
    ----------
    medoids : int array of shape (k,)
        Point in each slot.
    first, second : float arrays of shape (n,)
    first_slot, second_slot : int arrays of shape (n,)
    first_reach, second_reach : float arrays of shape (n_leaves,)
        Largest squared distance in a leaf. A candidate farther from its box changes nothing in it.
    """

    medoids: IntArray
    first: FloatArray
    second: FloatArray
    first_slot: IntArray
    second_slot: IntArray
    first_reach: FloatArray
    second_reach: FloatArray


def k_medoids(
    points: ArrayLike,
    k: int,
    *,
    free_centres: ArrayLike | None = None,
    caps: ArrayLike | None = None,
    cap_shares: Sequence[float] | None = None,
    weights: ArrayLike | None = None,
    n_init: int = 2,
    max_iter: int = 100,
) -> Medoids:
    """Choose k points so that all points are near a chosen one or a free centre.

    Points are chosen greedily, each time the one that saves most, and then swapped for others while a swap
    saves anything. The result may cost a per cent or two more than the minimum, so further searches start
    from random points. Their seed is fixed: the same input gives the same choice.

    Parameters
    ----------
    points : array-like of shape (n, d)
        The points to serve and to choose from.
    k : int
        From 1 to n.
    free_centres : array-like of shape (m, d), optional
        Centres that are given in advance.
    caps : array-like of shape (n, q), optional
        In place of free centres whose places are known: q likely distances of each point from the nearest
        free centre, increasing. Its cost is the mean over them.
    cap_shares : sequence of q floats, optional
        How likely the distances are. They add up to 1, and by default are all the same.
    weights : array-like of shape (n,), optional
        Weight of each point, at least 0; 1 by default.
    n_init : int
        Number of searches, of which the best is returned. 1 uses the greedy start alone.
    max_iter : int
        Maximum number of rounds in which a search tries every point as a replacement; 0 keeps the start. A
        search usually ends by itself after about ten rounds.

    Returns
    -------
    Medoids
        Indices, cost, labels.

    Examples
    --------
    >>> from sfumato.public.places.medoids import k_medoids
    >>> points = [[0, 0], [0, 1], [0, 3], [5, 0], [5, 1], [5, 2]]
    >>> k_medoids(points, 2).indices.tolist()
    [4, 1]
    >>> found = k_medoids(points, 1, free_centres=[[6, 1]])
    >>> found.indices.tolist(), found.labels.tolist()
    ([1], [0, 0, 0, -1, -1, -1])
    """
    rows = _table("points", points)
    n, d = rows.shape
    _check_integer("k", k, 1, n, ", the number of points")
    _check_integer("n_init", n_init, 1, _MOST_ROUNDS)
    _check_integer("max_iter", max_iter, 0, _MOST_ROUNDS)
    sizes = np.ones(n) if weights is None else _checked_weights(weights, n)
    if caps is None:
        free = _caps(rows, None if free_centres is None else _table("free_centres", free_centres, d))[:, None]
    else:
        free = _checked_caps(caps, n)
    # A point is there once for each cap, with a share of its weight. Its first copy is the candidate.
    n_caps = free.shape[1]
    shares = np.full(n_caps, 1 / n_caps) if cap_shares is None else _checked_shares(cap_shares, caps, n_caps)
    order, space = arrange(np.repeat(rows, n_caps, axis=0), np.outer(sizes, shares).ravel(), free.ravel())
    position = np.argsort(order)
    candidates = np.ascontiguousarray(position[::n_caps])
    rng = np.random.default_rng(0)
    starts = [None, *(rng.choice(n, k, replace=False) for _ in range(n_init - 1))]
    searches = (_search(space, k, candidates, start, max_iter) for start in starts)
    service = min(searches, key=lambda found: float(space.weights @ found.first))
    middle = int(np.searchsorted(np.cumsum(shares), 0.5))
    labels = np.where(service.first_slot < k, service.first_slot, -1)[position[middle::n_caps]]
    return Medoids(order[service.medoids] // n_caps, float(space.weights @ service.first), labels)


def _search(space: Space, k: int, position: IntArray, start: IntArray | None, max_iter: int) -> Service:
    service = unserved(space, k)
    if start is None:
        _take_greedily(space, service, position)
    else:
        for slot, c in enumerate(start):
            take(space, service, slot, position[c])
    _swap(space, service, position, max_iter)
    return service


def arrange(points: FloatArray, weights: FloatArray, caps: FloatArray) -> tuple[IntArray, Space]:
    """Order the points by the leaves of a k-d tree."""
    from sklearn.neighbors import KDTree

    _, order, nodes, (low, high) = (np.asarray(part) for part in KDTree(points, _LEAF_SIZE).get_arrays())
    leaves = np.flatnonzero(nodes["is_leaf"])
    leaves = leaves[np.argsort(nodes["idx_start"][leaves])]
    starts = np.append(nodes["idx_start"][leaves], len(points)).astype(np.int64)
    boxes = np.ascontiguousarray(low[leaves].T), np.ascontiguousarray(high[leaves].T)
    order = order.astype(np.int64)
    columns = np.ascontiguousarray(points[order].T)
    return order, Space(columns, weights[order], caps[order], starts, *boxes)


def unserved(space: Space, k: int) -> Service:
    """Nothing chosen yet: free centres serve all points."""
    n, n_leaves = len(space.caps), len(space.starts) - 1
    slots = np.full((2, n), k, dtype=np.int64)
    reach = np.empty((2, n_leaves))
    service = Service(np.full(k, -1, np.int64), space.caps.copy(), space.caps.copy(), *slots, *reach)
    set_reach(space, service)
    return service


def _caps(points: FloatArray, free_centres: FloatArray | None) -> FloatArray:
    if free_centres is not None and len(free_centres):
        from sklearn.neighbors import KDTree

        caps: FloatArray = KDTree(free_centres).query(points)[0][:, 0]
        return caps
    # No centre is as far away as this, so the first medoid serves all points.
    return np.full(len(points), 2 * float(np.linalg.norm(np.ptp(points, axis=0))) or 1.0)


def _table(name: str, value: ArrayLike, n_features: int | None = None) -> FloatArray:
    try:
        table = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ParameterError(f"`{name}` must be a table of numbers, got {type(value).__name__}") from None
    if table.ndim != 2 or not table.shape[1] or (n_features is None and not len(table)):
        raise ParameterError(f"`{name}` must have rows and columns, got shape {table.shape}")
    if n_features is not None and table.shape[1] != n_features:
        raise ParameterError(
            f"`{name}` must have {n_features} columns like `points`, got shape {table.shape}"
        )
    if not (np.abs(table) <= LARGEST_BOUND).all():
        raise ParameterError(
            f"`{name}` must be finite and at most {LARGEST_BOUND:g} in size. Drop or rescale the others"
        )
    return table


def _checked_weights(weights: ArrayLike, n: int) -> FloatArray:
    try:
        values = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"`weights` must be numbers, got {type(weights).__name__}") from None
    if values.shape != (n,):
        raise ParameterError(f"`weights` must be one number for each of {n} points, got shape {values.shape}")
    if not ((values >= 0) & (values <= LARGEST_BOUND)).all():
        raise ParameterError(
            f"`weights` must be from 0 to {LARGEST_BOUND:g}. Drop points that should not count"
        )
    return values


def _checked_caps(caps: ArrayLike, n: int) -> FloatArray:
    try:
        values = np.array(caps, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"`caps` must be numbers, got {type(caps).__name__}") from None
    if values.ndim != 2 or len(values) != n or not values.shape[1]:
        raise ParameterError(f"`caps` must have a row for each of {n} points, got shape {values.shape}")
    if not ((values >= 0) & (values <= LARGEST_BOUND)).all():
        raise ParameterError(f"`caps` must be from 0 to {LARGEST_BOUND:g}, got others")
    return values


def _checked_shares(shares: Sequence[float], caps: ArrayLike | None, n_caps: int) -> FloatArray:
    values = np.array(shares, dtype=np.float64)
    if caps is None or values.shape != (n_caps,) or not (values >= 0).all() or abs(values.sum() - 1) > 1e-9:
        raise ParameterError(
            f"`cap_shares` must be shares of 1, one for each column of `caps`, got {shares!r}"
        )
    return values


def _check_integer(name: str, value: int, least: int, most: int, why: str = "") -> None:
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or not least <= value <= most:
        raise ParameterError(f"`{name}` must be an integer from {least} to {most}{why}, got {value!r}")


@numba.njit(cache=True, nogil=True)
def set_reach(space: Space, service: Service) -> None:
    """Set the largest squared distance of each leaf."""
    for leaf in range(space.starts.shape[0] - 1):
        first = second = 0.0
        for i in range(space.starts[leaf], space.starts[leaf + 1]):
            first = max(first, service.first[i])
            second = max(second, service.second[i])
        service.first_reach[leaf] = first * first
        service.second_reach[leaf] = second * second


@numba.njit(cache=True, nogil=True)
def _box_squares(space: Space, c: int, out: FloatArray) -> None:
    """Squared distance of a point from the box of each leaf."""
    n_features, n_leaves = space.low.shape
    for leaf in range(n_leaves):
        out[leaf] = 0.0
    for j in range(n_features):
        value = space.columns[j, c]
        for leaf in range(n_leaves):
            gap = max(space.low[j, leaf] - value, value - space.high[j, leaf], 0.0)
            out[leaf] += gap * gap


@numba.njit(cache=True, nogil=True)
def _squares(space: Space, c: int, begin: int, end: int, out: FloatArray) -> None:
    """Squared distance of a point from each point of a range."""
    for i in range(end - begin):
        out[i] = 0.0
    for j in range(space.columns.shape[0]):
        value = space.columns[j, c]
        column = space.columns[j, begin:end]
        for i in range(end - begin):
            gap = column[i] - value
            out[i] += gap * gap


@numba.njit(cache=True, nogil=True)
def _gain(space: Space, service: Service, c: int, boxes: FloatArray, squares: FloatArray) -> float:
    """Savings from one more medoid."""
    gain = 0.0
    _box_squares(space, c, boxes)
    for leaf in range(boxes.shape[0]):
        if boxes[leaf] < service.first_reach[leaf]:
            begin, end = space.starts[leaf], space.starts[leaf + 1]
            _squares(space, c, begin, end, squares)
            for i in range(begin, end):
                if squares[i - begin] < service.first[i] * service.first[i]:
                    gain += space.weights[i] * (service.first[i] - math.sqrt(squares[i - begin]))
    return gain


@numba.njit(cache=True, nogil=True)
def _take_greedily(space: Space, service: Service, position: IntArray) -> None:
    # Gains only fall as medoids are added, so a gain computed earlier is an upper bound. A candidate whose
    # up-to-date gain is still on top is the best. Ties go to the smallest index.
    k, n = service.medoids.shape[0], position.shape[0]
    boxes, squares = np.empty(space.starts.shape[0] - 1), np.empty(space.caps.shape[0])
    heap = [(-_gain(space, service, position[c], boxes, squares), c) for c in range(n)]
    heapq.heapify(heap)
    computed_at = np.zeros(n, dtype=np.int64)
    for slot in range(k):
        while computed_at[heap[0][1]] < slot:
            c = heap[0][1]
            computed_at[c] = slot
            heapq.heapreplace(heap, (-_gain(space, service, position[c], boxes, squares), c))
        take(space, service, slot, position[heapq.heappop(heap)[1]])


@numba.njit(cache=True, nogil=True)
def take(space: Space, service: Service, slot: int, c: int) -> None:
    """Put a point into a slot and update how all points are served."""
    service.medoids[slot] = c
    squares = np.empty(space.caps.shape[0])
    _squares(space, c, 0, space.caps.shape[0], squares)
    for i in range(space.caps.shape[0]):
        if service.first_slot[i] == slot or service.second_slot[i] == slot:
            _serve_anew(space, service, i)
        elif squares[i] < service.second[i] * service.second[i]:
            _offer(service, i, slot, math.sqrt(squares[i]))
    set_reach(space, service)


@numba.njit(cache=True, nogil=True)
def _offer(service: Service, i: int, slot: int, distance: float) -> None:
    if distance < service.first[i]:
        service.second[i], service.second_slot[i] = service.first[i], service.first_slot[i]
        service.first[i], service.first_slot[i] = distance, slot
    elif distance < service.second[i]:
        service.second[i], service.second_slot[i] = distance, slot


@numba.njit(cache=True, nogil=True)
def _serve_anew(space: Space, service: Service, i: int) -> None:
    k = service.medoids.shape[0]
    service.first[i] = service.second[i] = space.caps[i]
    service.first_slot[i] = service.second_slot[i] = k
    for slot in range(k):
        square = 0.0
        for j in range(space.columns.shape[0]):
            gap = space.columns[j, i] - space.columns[j, service.medoids[slot]]
            square += gap * gap
        _offer(service, i, slot, math.sqrt(square))


@numba.njit(cache=True, nogil=True)
def removal_losses(space: Space, service: Service, losses: FloatArray) -> float:
    """Return the cost; fill `losses` with its rise if each slot's medoid is dropped, 0 for free centres."""
    cost, losses[:] = 0.0, 0.0
    for i in range(space.caps.shape[0]):
        cost += space.weights[i] * service.first[i]
        losses[service.first_slot[i]] += space.weights[i] * (service.second[i] - service.first[i])
    return cost


@numba.njit(cache=True, nogil=True)
def add_candidate(
    space: Space, service: Service, c: int, losses: FloatArray, boxes: FloatArray, squares: FloatArray
) -> None:
    """Turn each slot's removal loss into the change in cost if a candidate takes the slot."""
    # A candidate saves the same whichever medoid leaves, except on that medoid's points.
    gain = 0.0
    _box_squares(space, c, boxes)
    for leaf in range(boxes.shape[0]):
        if boxes[leaf] < service.second_reach[leaf]:
            begin, end = space.starts[leaf], space.starts[leaf + 1]
            _squares(space, c, begin, end, squares)
            for i in range(begin, end):
                first, second = service.first[i], service.second[i]
                if squares[i - begin] < second * second:
                    distance = math.sqrt(squares[i - begin])
                    gain += space.weights[i] * max(first - distance, 0.0)
                    losses[service.first_slot[i]] -= space.weights[i] * (second - max(first, distance))
    losses -= gain


@numba.njit(cache=True, nogil=True)
def _swap(space: Space, service: Service, position: IntArray, max_iter: int) -> None:
    # Every swap that saves is made at once. The search ends when no candidate has saved since the last swap.
    n, k = position.shape[0], service.medoids.shape[0]
    boxes, squares = np.empty(space.starts.shape[0] - 1), np.empty(space.caps.shape[0])
    losses = np.empty(k + 1)
    cost = removal_losses(space, service, losses)
    is_medoid = np.zeros(space.caps.shape[0], dtype=np.bool_)
    for slot in range(k):
        is_medoid[service.medoids[slot]] = True
    last_swap = 0
    for trial in range(n * max_iter):
        c = position[trial % n]
        if trial - last_swap >= n:
            break
        if is_medoid[c]:
            continue
        changes = losses.copy()
        add_candidate(space, service, c, changes, boxes, squares)
        slot = int(np.argmin(changes[:k]))
        if changes[slot] < -_LEAST_SAVING * cost:
            is_medoid[service.medoids[slot]], is_medoid[c] = False, True
            take(space, service, slot, c)
            cost = removal_losses(space, service, losses)
            last_swap = trial
