"""Compiled sums over the components of a mixture: densities, strings and Newton's method, point by point.

Factors are upper triangular, with the components last so that the inner loops run over them. Shares leave out
components below exp(-60) of the largest: a float cannot tell the difference.
"""

import math
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

_NEGLIGIBLE = -60.0  # log of a share that is lost in rounding
_TINY = 1e-300  # no division by zero
_POINT = 1e-16  # squared length in the local scale below which a tangent has no direction
_MOST_HALVINGS = 50  # of a step: less is rounding
_NO_CURVATURE = 1e-12  # in the local scale: less is rounding


class Sums(NamedTuple):
    """Constants for sums over L components. Points are given relative to a common centre.

    Rows before `factor_starts` and `precision_starts` are zero in all components: diagonal covariances cost d
    products instead of d^2.
    """

    factors: Floats  # (d, d, L); upper triangular; the precision of component k is F_k F_k^T
    factor_starts: Integers  # (d,); first row i of column j with factors[i, j] other than zero
    whitened: Floats  # (d, L); F_k^T mean_k
    tops: Floats  # (L,); logarithm of weight times density at each mean
    precisions: Floats  # (L, d, d)
    precision_starts: Integers  # (d,); first column j of row i with precisions[:, i, j] other than zero


@njit(cache=True, nogil=True)
def join(point: Floats, sums: Sums, deviations: Floats, logs: Floats) -> None:
    """Whitened deviations (d, L) from the means, and log joint densities (L)."""
    d, n_components = deviations.shape
    logs[:] = 0.0
    for j in range(d):
        for k in range(n_components):
            deviations[j, k] = -sums.whitened[j, k]
        for i in range(sums.factor_starts[j], j + 1):
            for k in range(n_components):
                deviations[j, k] += point[i] * sums.factors[i, j, k]
        for k in range(n_components):
            logs[k] += deviations[j, k] * deviations[j, k]
    for k in range(n_components):
        logs[k] = sums.tops[k] - 0.5 * logs[k]


@njit(cache=True, nogil=True)
def share(logs: Floats, shares: Floats) -> float:
    """Shares in the sum of the exponentials, and the logarithm of the sum. May work in place."""
    top = logs.max()
    total = 0.0
    for k in range(len(logs)):
        below = logs[k] - top
        shares[k] = math.exp(below) if below > _NEGLIGIBLE else 0.0
        total += shares[k]
    for k in range(len(logs)):
        shares[k] /= total
    return float(top + math.log(total))


@njit(cache=True, nogil=True)
def climb_rate(point: Floats, sums: Sums, deviations: Floats, shares: Floats, gradient: Floats) -> float:
    """Shares and gradient of the log density at a point, and the log density."""
    join(point, sums, deviations, shares)
    log_density = share(shares, shares)
    gradient[:] = 0.0
    for k in range(len(shares)):
        if shares[k] > 0.0:
            for j in range(len(point)):
                part = shares[k] * deviations[j, k]
                for i in range(sums.factor_starts[j], j + 1):
                    gradient[i] -= part * sums.factors[i, j, k]
    return log_density


@njit(cache=True, nogil=True)
def mean_precision(sums: Sums, shares: Floats, precision: Floats) -> None:
    """Precisions weighted by shares."""
    precision[:] = 0.0
    d = len(precision)
    for k in range(len(shares)):
        if shares[k] > 0.0:
            for i in range(d):
                for j in range(sums.precision_starts[i], i + 1):
                    precision[i, j] += shares[k] * sums.precisions[k, i, j]
    for i in range(d):
        for j in range(i):
            precision[j, i] = precision[i, j]


@njit(cache=True, nogil=True)
def squared_length(vector: Floats, scale: Floats) -> float:
    """v^T A v."""
    total = 0.0
    for i in range(len(vector)):
        for j in range(len(vector)):
            total += vector[i] * scale[i, j] * vector[j]
    return total


@njit(cache=True, nogil=True)
def solve(matrix: Floats, vector: Floats) -> None:
    """Solve a linear system in place, with pivoting. A singular one gives a huge solution, not an error."""
    d = len(vector)
    for i in range(d):
        pivot = i
        for row in range(i + 1, d):
            if abs(matrix[row, i]) > abs(matrix[pivot, i]):
                pivot = row
        for j in range(i, d):
            matrix[i, j], matrix[pivot, j] = matrix[pivot, j], matrix[i, j]
        vector[i], vector[pivot] = vector[pivot], vector[i]
        if abs(matrix[i, i]) < _TINY:
            matrix[i, i] = _TINY
        for row in range(i + 1, d):
            ratio = matrix[row, i] / matrix[i, i]
            if ratio == 0.0:
                continue
            for j in range(i + 1, d):
                matrix[row, j] -= ratio * matrix[i, j]
            vector[row] -= ratio * vector[i]
    for i in range(d - 1, -1, -1):
        for j in range(i + 1, d):
            vector[i] -= matrix[i, j] * vector[j]
        vector[i] /= matrix[i, i]


@njit(cache=True, nogil=True)
def invert_lower(lower: Floats, inverse: Floats) -> None:
    """Fill zeros with the inverses of lower triangular matrices (n, d, d)."""
    for n in range(len(lower)):
        for j in range(lower.shape[1]):
            inverse[n, j, j] = 1 / lower[n, j, j]
            for i in range(j + 1, lower.shape[1]):
                for k in range(j, i):
                    inverse[n, i, j] -= lower[n, i, k] * inverse[n, k, j]
                inverse[n, i, j] /= lower[n, i, i]


@njit(cache=True, nogil=True)
def fill_densities(points: Floats, sums: Sums, log_density: Floats) -> None:
    """Log density at n points."""
    deviations, shares = np.empty(sums.whitened.shape), np.empty(len(sums.tops))
    for n in range(len(points)):
        join(points[n], sums, deviations, shares)
        log_density[n] = share(shares, shares)


@njit(cache=True, nogil=True)
def fill_leaders(points: Floats, sums: Sums, log_density: Floats, leaders: Integers) -> None:
    """Log density at n points, and the component with the largest share."""
    deviations, shares = np.empty(sums.whitened.shape), np.empty(len(sums.tops))
    for n in range(len(points)):
        join(points[n], sums, deviations, shares)
        leaders[n] = shares.argmax()
        log_density[n] = share(shares, shares)


@njit(cache=True, nogil=True)
def fill_slopes(
    points: Floats, sums: Sums, log_density: Floats, shares: Floats, gradient: Floats, precision: Floats
) -> None:
    """Log density (n), shares (n, L), gradient (n, d) and mean precision (n, d, d) at n points."""
    deviations = np.empty(sums.whitened.shape)
    for n in range(len(points)):
        log_density[n] = climb_rate(points[n], sums, deviations, shares[n], gradient[n])
        mean_precision(sums, shares[n], precision[n])


@njit(cache=True, nogil=True)
def fill_frames(
    points: Floats, sums: Sums, log_density: Floats, gradient: Floats, curvatures: Floats, directions: Floats
) -> None:
    """Log density (n), gradient (n, d), curvatures (n, d) and their directions (n, d, d) at n points."""
    for n in range(len(points)):
        log_density[n] = frame(points[n], sums, gradient[n], curvatures[n], directions[n])


@njit(cache=True, nogil=True)
def frame(point: Floats, sums: Sums, gradient: Floats, curvatures: Floats, directions: Floats) -> float:
    """Gradient and main axes at a point, see `sfumato.public.mixtures.peaks.Frame`, and the log density."""
    d, n_components = sums.whitened.shape
    deviations, pulls = np.empty((d, n_components)), np.empty((n_components, d))
    shares, no_gaps = np.empty(n_components), np.zeros(n_components)
    precision, convexity, inverse = np.empty((d, d)), np.zeros((d, d)), np.zeros((1, d, d))
    join(point, sums, deviations, shares)
    log_density = share(shares, shares)
    mean_precision(sums, shares, precision)
    linearise(sums, deviations, shares, no_gaps, pulls, convexity, gradient)
    invert_lower(np.linalg.cholesky(precision).astype(np.float64).reshape((1, d, d)), inverse)
    values, vectors = np.linalg.eigh(inverse[0] @ convexity @ inverse[0].T)
    curvatures[:] = 1 + values
    directions[:] = inverse[0].T @ vectors
    return log_density


@njit(cache=True, nogil=True)
def ascend(points: Floats, sums: Sums, most_steps: int, converged: float, stuck: float) -> None:
    """Move points to the peaks above them, in place: see `sfumato.public.mixtures.peaks.climb`."""
    d, n_components = sums.whitened.shape
    deviations, shares = np.empty((d, n_components)), np.empty(n_components)
    gradient, curvatures, directions = np.empty(d), np.empty(d), np.empty((d, d))
    ahead = np.empty((2, d))
    for n in range(len(points)):
        for _ in range(most_steps):
            log_density = frame(points[n], sums, gradient, curvatures, directions)
            slopes = directions.T @ gradient
            size = math.sqrt((slopes * slopes).sum())
            # A mean may lie exactly on a saddle, where the gradient vanishes: leave along a rising direction.
            if size < stuck and curvatures[0] < -stuck:
                slopes[0] -= 0.1 * curvatures[0]
                size = 1.0
            turned = slopes / np.maximum(np.abs(curvatures), _NO_CURVATURE)
            turned /= max(1.0, math.sqrt((turned * turned).sum()) / max(size, 1.0))
            step = directions @ turned
            ahead[0], ahead[1] = points[n] + step / 2, points[n] + step
            join(ahead[0], sums, deviations, shares)
            half = share(shares, shares)
            join(ahead[1], sums, deviations, shares)
            # A step must not leap over a valley.
            if half >= log_density and share(shares, shares) >= half:
                points[n] = ahead[1]
            else:
                points[n] += directions @ slopes
            if size <= converged:
                break


@njit(cache=True, nogil=True)
def place(path: Floats, at: float, position: Floats) -> int:
    """Position on a path at a fractional node number, and the node before it."""
    node = min(int(at), len(path) - 2)
    for i in range(len(position)):
        position[i] = path[node, i] + (at - node) * (path[node + 1, i] - path[node, i])
    return node


@njit(cache=True, nogil=True)
def fill_levels(paths: Floats, per_segment: int, sums: Sums, levels: Floats) -> None:
    """Log density along paths (n, m, d), at equal parts of their segments."""
    deviations, shares = np.empty(sums.whitened.shape), np.empty(len(sums.tops))
    position = np.empty(paths.shape[2])
    for n in range(len(paths)):
        for sample in range(levels.shape[1]):
            place(paths[n], sample / per_segment, position)
            join(position, sums, deviations, shares)
            levels[n, sample] = share(shares, shares)


@njit(cache=True, nogil=True)
def deepen(
    paths: Floats,
    which: Integers,
    lowest: Floats,
    reach: float,
    sums: Sums,
    tolerance: float,
    positions: Floats,
) -> None:
    """Where the density stops falling on each path, near a fractional node number.

    Halves the interval until the log densities at the middle and at the lowest point differ by less than the
    tolerance.
    """
    m, d = paths.shape[1:]
    deviations, shares, gradient = np.empty(sums.whitened.shape), np.empty(len(sums.tops)), np.empty(d)
    for n in range(len(which)):
        path = paths[which[n]]
        left, right = max(lowest[n] - reach, 0.0), min(lowest[n] + reach, m - 1.0)
        for _ in range(_MOST_HALVINGS):
            middle = (left + right) / 2
            node = place(path, middle, positions[n])
            climb_rate(positions[n], sums, deviations, shares, gradient)
            slope = 0.0
            for i in range(d):
                slope += gradient[i] * (path[node + 1, i] - path[node, i])
            if abs(slope) * (right - left) < tolerance:
                break
            if slope > 0:
                right = middle
            else:
                left = middle


@njit(cache=True, nogil=True)
def push_up(paths: Floats, sums: Sums, n_sweeps: int) -> None:
    """Raise the density along paths (n, m, d), in place: see `sfumato.public.mixtures.saddles`."""
    m, d = paths.shape[1:]
    deviations = np.empty(sums.whitened.shape)
    shares, precision = np.empty((m, len(sums.tops))), np.empty((m, d, d))
    gradient, tangent = np.empty(d), np.empty(d)
    step, matrix = np.empty((m, d)), np.empty((d, d))
    for n in range(len(paths)):
        path = paths[n]
        for _ in range(n_sweeps):
            for node in range(m):
                climb_rate(path[node], sums, deviations, shares[node], gradient)
                mean_precision(sums, shares[node], precision[node])
                matrix[:] = precision[node]
                step[node] = gradient
                solve(matrix, step[node])
                if 0 < node < m - 1:
                    along = 0.0
                    for i in range(d):
                        tangent[i] = path[node + 1, i] - path[node - 1, i]
                        along += tangent[i] * gradient[i]
                    square = max(squared_length(tangent, precision[node]), _POINT)
                    for i in range(d):
                        step[node, i] -= tangent[i] * (along / square)
            path += step
            spread(path, precision, shares)


@njit(cache=True, nogil=True)
def spread(path: Floats, precision: Floats, shares: Floats) -> None:
    """Space nodes evenly, half by length in the local scale and half by change of the shares, in place."""
    m, d = path.shape
    lengths, changes, apart = np.empty(m - 1), np.zeros(m - 1), np.empty(d)
    for node in range(m - 1):
        for i in range(d):
            apart[i] = path[node + 1, i] - path[node, i]
        square = squared_length(apart, precision[node]) + squared_length(apart, precision[node + 1])
        lengths[node] = math.sqrt(max(square, 0.0))
        for k in range(shares.shape[1]):
            changes[node] += abs(shares[node + 1, k] - shares[node, k])
    reached = np.zeros(m)
    reached[1:] = np.cumsum(lengths / max(lengths.sum(), _TINY) + changes / max(changes.sum(), _TINY))
    old, before = path.copy(), 0
    for node in range(1, m - 1):
        wanted = reached[-1] * (node / (m - 1))
        while before < m - 2 and reached[before + 1] <= wanted:
            before += 1
        width = max(reached[before + 1] - reached[before], _TINY)
        rest = min(max((wanted - reached[before]) / width, 0.0), 1.0)
        for i in range(d):
            path[node, i] = old[before, i] + rest * (old[before + 1, i] - old[before, i])


@njit(cache=True, nogil=True)
def newton(points: Floats, sums: Sums, most_steps: int, converged: float) -> None:
    """Move points to critical points nearby, in place: see `saddles.critical_points`."""
    d, n_components = sums.whitened.shape
    deviations, pulls = np.empty((d, n_components)), np.empty((n_components, d))
    gaps, logs, shares = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    matrix, precision, step = np.empty((d, d)), np.empty((d, d)), np.empty(d)
    for n in range(len(points)):
        join(points[n], sums, deviations, logs)
        for taken in range(most_steps):
            share(logs, shares)
            if taken:
                join(points[n], sums, deviations, gaps)
            else:
                gaps[:] = logs
            middle = 0.0
            for k in range(n_components):
                gaps[k] -= logs[k]
                middle += shares[k] * gaps[k]
            gaps -= middle
            mean_precision(sums, shares, precision)
            matrix[:] = precision
            linearise(sums, deviations, shares, gaps, pulls, matrix, step)
            solve(matrix, step)
            length = math.sqrt(max(squared_length(step, precision), 0.0))
            if not math.isfinite(length):
                break
            shorter = 1 / max(1.0, length)
            for i in range(d):
                points[n, i] += step[i] * shorter
                for k in range(n_components):
                    gaps[k] += pulls[k, i] * step[i]
            for k in range(n_components):
                logs[k] += gaps[k] * shorter
            if length <= converged:
                break


@njit(cache=True, nogil=True)
def linearise(
    sums: Sums,
    deviations: Floats,
    shares: Floats,
    gaps: Floats,
    pulls: Floats,
    matrix: Floats,
    vector: Floats,
) -> None:
    """Pulls minus their mean; the matrix minus their covariance; the slope where gaps have closed."""
    d, n_components = deviations.shape
    pulls[:] = 0.0
    vector[:] = 0.0
    for k in range(n_components):
        for j in range(d):
            for i in range(sums.factor_starts[j], j + 1):
                pulls[k, i] -= sums.factors[i, j, k] * deviations[j, k]
        for i in range(d):
            vector[i] += shares[k] * pulls[k, i]
    pulls -= vector
    for k in range(n_components):
        if shares[k] > 0.0:
            for i in range(d):
                vector[i] += shares[k] * gaps[k] * pulls[k, i]
                for j in range(d):
                    matrix[i, j] -= shares[k] * pulls[k, i] * pulls[k, j]
