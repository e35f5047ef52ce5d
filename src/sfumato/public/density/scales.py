"""A noisy histogram smoothed at many scales, and the narrowest kernel that shows enough in every cell.

The precision of a smoothed count is its squared signal-to-noise ratio: the number of rows that would show it
as well without added noise. A layer takes in every cell the narrowest kernel of a wanted precision. So one
layer has thin kernels where rows are many, wide ones where they are few, and everywhere the same relative
error. Post-processing only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from scipy.ndimage import gaussian_filter1d

from sfumato.domain import FloatArray
from sfumato.public.density.nested import NestedHistogram

_NARROWEST = 0.6  # standard deviation of the narrowest kernel, in fine cells
_STEP = math.sqrt(2)  # between kernels: the squared kernel is then the one before, up to a factor
_WIDEST = 1 / 3  # of the grid's longest side
_MOST_KERNELS = 22
_POOLED = 2.4  # a kernel this wide is computed on cells twice as wide
_CUT = 3.5  # standard deviations at which kernels end
_NOTHING = 1e-12  # rows per cell


class Layer(NamedTuple):
    """A smoothed density with about the same relative error everywhere."""

    density: FloatArray  # (n_cells,); rows per fine cell, at least the noise in it
    kernel: FloatArray  # (n_cells,); standard deviation of the kernel, in fine cells
    precision: FloatArray  # (n_cells,); at least 1


@dataclass(frozen=True, eq=False)
class Scales:
    """Smoothed counts of all fine cells at several scales, the narrowest first."""

    kernels: FloatArray  # (n_scales,); standard deviations, in fine cells
    sizes: FloatArray  # (n_scales,); number of cells that a kernel averages
    densities: FloatArray  # (n_scales, n_cells)
    noises: FloatArray  # (n_scales, n_cells); standard deviation of the added noise
    precisions: FloatArray  # (n_scales, n_cells); largest so far

    @classmethod
    def of(cls, histogram: NestedHistogram) -> Scales:
        """Smooth the estimates of a histogram."""
        nested = histogram.nested
        counts, variances = nested.spread(histogram.estimates), nested.spread(histogram.variances)
        d, n_cells = counts.ndim, counts.size
        kernels: FloatArray = np.asarray(_NARROWEST * _STEP ** np.arange(_MOST_KERNELS), dtype=np.float64)
        kernels = kernels[: max(2, int((kernels <= _WIDEST * max(counts.shape)).sum()))]
        sizes = np.array([_averaged(kernel) ** d for kernel in kernels])
        densities, noises, precisions = np.empty((3, len(kernels), n_cells))
        smooth = _smoothed(counts, kernels)
        blurred = _smoothed(variances, kernels)
        before, before_variance, least = next(smooth), next(blurred), np.zeros(n_cells)
        for j, (density, variance) in enumerate(zip(smooth, blurred, strict=True)):
            shown = (density.ravel(), before.ravel(), before_variance.ravel(), least)
            _weigh(*shown, sizes[j], densities[j], noises[j], precisions[j])
            before, before_variance, least = density, variance, precisions[j]
        return cls(kernels, sizes, densities, noises, precisions)

    def layers(self, wanted: Sequence[float]) -> list[Layer]:
        """The narrowest kernels of each precision; the widest there are, where none has it.

        Parameters
        ----------
        wanted : sequence of float
            Precisions.
        """
        found, order = np.empty((3, len(wanted), self.densities.shape[1])), np.argsort(wanted)
        in_order = np.array(wanted)[order]  # the least first
        _fill_layers(self.densities, self.noises, self.precisions, self.kernels, in_order, *found)
        layers = [Layer(*parts) for parts in found.transpose(1, 0, 2)]
        return [layers[place] for place in np.argsort(order)]


def _averaged(kernel: float) -> float:
    """Number of cells that a kernel averages along a column: one over the sum of its squared weights."""
    impulse = np.zeros(2 * math.ceil(_CUT * kernel) + 3)
    impulse[len(impulse) // 2] = 1.0
    weights = gaussian_filter1d(impulse, kernel, mode="constant", truncate=_CUT)
    return float(1 / (weights**2).sum())


def _smoothed(values: FloatArray, kernels: FloatArray) -> Iterator[FloatArray]:
    """Yield the values under the kernel before the first, and under all others.

    Wide kernels are computed from what narrower ones left, on wider cells.
    """
    source, width, factor, shapes = values, 0.0, 1, [values.shape]
    for kernel in (kernels[0] / _STEP, *kernels):
        smooth = source
        for axis in range(values.ndim):
            step = math.sqrt(kernel**2 - width**2) / factor
            smooth = gaussian_filter1d(smooth, step, axis=axis, mode="constant", truncate=_CUT)
        whole = smooth
        for shape in shapes[-2::-1]:
            whole = _doubled(whole)[tuple(slice(side) for side in shape)]
        yield whole
        if kernel / factor >= _POOLED:
            source, width, factor = _pooled(smooth), kernel, 2 * factor
            shapes.append(source.shape)


def _pooled(values: FloatArray) -> FloatArray:
    """Means of pairs of cells along every axis; beyond the edge there is nothing."""
    for axis in range(values.ndim):
        if values.shape[axis] % 2:
            values = np.pad(values, [(0, int(j == axis)) for j in range(values.ndim)])
        moved = np.moveaxis(values, axis, 0)
        values = np.moveaxis((moved[::2] + moved[1::2]) / 2, 0, axis)
    return values


def _doubled(values: FloatArray) -> FloatArray:
    """Twice as many cells along every axis, by linear interpolation."""
    for axis in range(values.ndim):
        moved = np.moveaxis(values, axis, 0)
        left, right = np.concatenate([moved[:1], moved[:-1]]), np.concatenate([moved[1:], moved[-1:]])
        pairs = np.stack([0.75 * moved + 0.25 * left, 0.75 * moved + 0.25 * right], axis=1)
        values = np.moveaxis(pairs.reshape(-1, *moved.shape[1:]), 0, axis)
    return values


@numba.njit(cache=True, nogil=True)
def _weigh(
    smooth: FloatArray,
    before: FloatArray,
    variances: FloatArray,
    least: FloatArray,
    size: float,
    density: FloatArray,
    noise: FloatArray,
    precision: FloatArray,
) -> None:
    """Density, noise and precision under a kernel that averages `size` cells, from what it shows.

    The sum of squared weights times counts is the density under the kernel before, over the size. It is no
    estimate where that kernel sees nothing, so the density itself is the least. With wider kernels, precision
    does not fall.
    """
    for i in range(smooth.size):
        variance = variances[i] / size
        sampling = max(before[i], smooth[i], 0.0) / size
        density[i] = max(smooth[i], _NOTHING)
        noise[i] = math.sqrt(variance)
        precision[i] = max(density[i] ** 2 / max(sampling + variance, 1e-300), least[i])


@numba.njit(cache=True, nogil=True)
def _fill_layers(
    densities: FloatArray,
    noises: FloatArray,
    precisions: FloatArray,
    kernels: FloatArray,
    wanted: FloatArray,
    density: FloatArray,
    kernel: FloatArray,
    found: FloatArray,
) -> None:
    """Between two kernels, logarithms are interpolated so that the precision is the wanted one."""
    last, log_kernels, log_wanted = len(kernels) - 1, np.log(kernels), np.log(wanted)
    for i in range(densities.shape[1]):
        j = -1
        low = high = thin = wide = 0.0  # logarithms of two precisions, and of two densities
        for layer in range(wanted.size):
            moved = j < 0
            j = max(j, 0)
            while j < last and precisions[j, i] < wanted[layer]:
                j, moved = j + 1, True
            k = max(j - 1, 0)
            if moved:
                low, high = math.log(max(precisions[k, i], 1e-9)), math.log(max(precisions[j, i], 1e-9))
                thin, wide = math.log(densities[k, i]), math.log(densities[j, i])
            t = 1.0 if high <= low else min(max((log_wanted[layer] - low) / (high - low), 0.0), 1.0)
            density[layer, i] = max(math.exp((1 - t) * thin + t * wide), noises[j, i])
            kernel[layer, i] = math.exp((1 - t) * log_kernels[k] + t * log_kernels[j])
            reached = precisions[j, i] if j == 0 else min(precisions[j, i], wanted[layer])
            found[layer, i] = max(reached, 1.0)
