"""A noisy histogram smoothed at many scales, and the narrowest kernel that shows enough in every cell.

The precision of a smoothed count is its squared signal-to-noise ratio: the number of rows that would show it
as well without added noise. A layer takes in every cell the narrowest kernel of a wanted precision. So one
layer has thin kernels where rows are many, wide ones where they are few, and everywhere the same relative
error. Post-processing only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
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
        before, before_variance = next(smooth), next(blurred)
        for j, (density, variance) in enumerate(zip(smooth, blurred, strict=True)):
            noise = before_variance / sizes[j]
            # The sum of squared weights times counts: the density under the kernel before. It is no estimate
            # where that kernel sees nothing, so the density itself is the least.
            sampling = np.maximum(np.maximum(before, density), 0.0) / sizes[j]
            noises[j] = np.sqrt(noise).ravel()
            densities[j] = np.maximum(density, _NOTHING).ravel()
            precisions[j] = densities[j] ** 2 / np.maximum(sampling + noise, 1e-300).ravel()
            before, before_variance = density, variance
        return cls(kernels, sizes, densities, noises, np.maximum.accumulate(precisions, axis=0))

    @cached_property
    def _logarithms(self) -> FloatArray:
        """Logarithms of densities, precisions and noises, those of a cell side by side."""
        parts = (self.densities, np.maximum(self.precisions, 1e-9), np.maximum(self.noises, 1e-300))
        return np.asarray(np.log(np.stack([part.T for part in parts], axis=1)))

    def layer(self, precision: float) -> Layer:
        """The narrowest kernels of a precision; the widest there are, where none has it."""
        density, kernel, found = np.empty((3, self.densities.shape[1]))
        _fill_layer(self._logarithms, np.log(self.kernels), math.log(precision), density, kernel, found)
        return Layer(density, kernel, found)


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
    shape, source, width, factor = values.shape, values, 0.0, 1
    for kernel in (kernels[0] / _STEP, *kernels):
        smooth = source
        for axis in range(values.ndim):
            step = math.sqrt(kernel**2 - width**2) / factor
            smooth = gaussian_filter1d(smooth, step, axis=axis, mode="constant", truncate=_CUT)
        whole = smooth
        for _ in range(factor.bit_length() - 1):
            whole = _doubled(whole)
        yield whole[tuple(slice(side) for side in shape)]
        if kernel / factor >= _POOLED:
            source, width, factor = _pooled(smooth), kernel, 2 * factor


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
def _fill_layer(
    logarithms: FloatArray,
    kernels: FloatArray,
    wanted: float,
    density: FloatArray,
    kernel: FloatArray,
    found: FloatArray,
) -> None:
    """Between two kernels, logarithms are interpolated so that the precision is the wanted one."""
    n_scales = logarithms.shape[2]
    for i in range(logarithms.shape[0]):
        densities, precisions = logarithms[i, 0], logarithms[i, 1]
        j = 0
        while j < n_scales - 1 and precisions[j] < wanted:
            j += 1
        k = max(j - 1, 0)
        low, high = precisions[k], precisions[j]
        t = 1.0 if high <= low else min(max((wanted - low) / (high - low), 0.0), 1.0)
        density[i] = math.exp(max((1 - t) * densities[k] + t * densities[j], logarithms[i, 2, j]))
        kernel[i] = math.exp((1 - t) * kernels[k] + t * kernels[j])
        reached = precisions[j] if j == 0 else min(precisions[j], wanted)
        found[i] = math.exp(max(reached, 0.0))
