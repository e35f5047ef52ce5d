"""Layers of a noisy density in two columns whose kernels lie along the shapes.

A round kernel in a narrow gap between two shapes widens until it sees rows, and these are the shapes': the
gap is blurred. A long kernel that lies along the gap averages as many cells and stays inside it. Kernels are
turned where the gradients of a neighbourhood share an axis (its structure tensor) more clearly than noise
makes them. Besides, a kernel may be only a little wider than those nearby, so that a gap is seen through the
kernels of the shapes beside it. What it brings, and where: docs/notes/density.md. Post-processing only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numba
import numpy as np
from scipy import fft

from sfumato.domain import FloatArray, IntArray
from sfumato.public.density.nested import NestedHistogram
from sfumato.public.density.scales import Layer, Scales

# Tuned: docs/notes/density.md
_LENGTH, _WIDTH = 3.0, 0.5  # standard deviations of a turned kernel over that of the round one
_N_TURNS = 8
_WIDEST = 10.0  # round kernel, in cells, that is still turned
_GRADIENT = 1.5  # kernel of the gradients, over the round one
# Kernels in which gradients are compared, over that of the gradients: the wide one if the other shows none.
_NEIGHBOURHOOD, _WIDE_NEIGHBOURHOOD = 3.0, 6.0
# Least part of their squares that has an axis: over what noise alone makes of them, times the neighbourhood,
# and over what is not noise. In a round hill gradients have all directions.
_CLEAR = 1.5
_SHARED, _WIDE_SHARED = 0.4, 0.5
_SLOPE = 0.1  # cells by which a kernel may be wider than that of the next cell
_REACH = 3.5  # standard deviations at which kernels end


def directed(histogram: NestedHistogram, scales: Scales, layers: Sequence[Layer]) -> list[Layer]:
    """The same layers with turned and limited kernels.

    The precision of a cell is that of the round kernel: in a gap, of the wider one that sees rows.

    Parameters
    ----------
    histogram : NestedHistogram
        Of two columns.
    scales : Scales
        The same histogram under round kernels.
    layers : sequence of Layer
        Of these scales.
    """
    densities, cells = _turned(histogram, scales), np.arange(scales.densities.shape[1])
    found = []
    for layer in layers:
        kernel = layer.kernel.reshape(histogram.grid.shape).copy()
        _limit(kernel, _SLOPE)
        place = np.interp(np.log(kernel.ravel()), np.log(scales.kernels), np.arange(len(scales.kernels)))
        low = np.minimum(place.astype(np.int64), len(scales.kernels) - 2)
        part = place - low
        shown = (1 - part) * densities[low, cells] + part * densities[low + 1, cells]
        noise = scales.noises[low, cells] ** (1 - part) * scales.noises[low + 1, cells] ** part
        found.append(Layer(np.maximum(shown, noise), kernel.ravel(), layer.precision))
    return found


def _turned(histogram: NestedHistogram, scales: Scales) -> FloatArray:
    """Densities under all kernels, turned where there is an axis."""
    counts = histogram.nested.spread(histogram.estimates)
    variances = np.maximum(counts, 0.0) + histogram.nested.spread(histogram.variances)
    densities = scales.densities.copy()
    of_counts = _Transform(counts, _LENGTH * _WIDEST)
    for density, kernel in zip(densities, scales.kernels[scales.kernels <= _WIDEST], strict=False):
        turns = _axes(of_counts, variances, _GRADIENT * kernel).ravel()
        for turn in range(_N_TURNS):
            here = np.flatnonzero(turns == turn)
            if len(here):
                angle = math.pi * turn / _N_TURNS
                density[here] = of_counts.smooth(_LENGTH * kernel, _WIDTH * kernel, angle).ravel()[here]
    return densities


def _axes(of_counts: _Transform, variances: FloatArray, kernel: float) -> IntArray:
    """Turn along which the density changes least around each cell, -1 if none is clear.

    White noise of variance v has gradients with a mean square of v / (4 pi kernel^4) under a normal kernel.
    """
    down, right = of_counts.gradient(kernel)
    turns = np.full(of_counts.shape, -1, dtype=np.int64)
    for times, shared in ((_WIDE_NEIGHBOURHOOD, _WIDE_SHARED), (_NEIGHBOURHOOD, _SHARED)):
        around = times * kernel
        squares, differences, products, noise = (
            _Transform(values, around).smooth(around, around)
            for values in (down**2 + right**2, down**2 - right**2, 2 * down * right, variances)
        )
        noise = np.maximum(noise, 1e-12) / (4 * math.pi * kernel**4)
        strength = np.hypot(differences, products)
        is_clear = (strength > _CLEAR / times * noise) & (strength > shared * (squares - noise))
        angle = np.arctan2(products, differences) / 2 + math.pi / 2
        found = np.round(angle * _N_TURNS / math.pi).astype(np.int64) % _N_TURNS
        turns = np.where(is_clear, found, turns)
    return turns


class _Transform:
    """Fourier transform of an array of two columns, to smooth it by normal kernels of any direction."""

    def __init__(self, values: FloatArray, widest: float) -> None:
        beyond = math.ceil(_REACH * widest)
        self.shape = values.shape
        self.padded = tuple(fft.next_fast_len(side + beyond, real=True) for side in values.shape)
        self.waves = fft.rfft2(values, self.padded)
        self.down = 2 * math.pi * fft.fftfreq(self.padded[0])[:, None]
        self.right = 2 * math.pi * fft.rfftfreq(self.padded[1])[None, :]

    def smooth(self, length: float, width: float, angle: float = 0.0) -> FloatArray:
        """Smooth by a kernel with these standard deviations along an angle and across it."""
        along = math.cos(angle) * self.down + math.sin(angle) * self.right
        across = math.cos(angle) * self.right - math.sin(angle) * self.down
        return self._back(self.waves * np.exp(-((length * along) ** 2 + (width * across) ** 2) / 2))

    def gradient(self, kernel: float) -> tuple[FloatArray, FloatArray]:
        """Derivatives along both columns, smoothed."""
        smooth = self.waves * np.exp(-(kernel**2) * (self.down**2 + self.right**2) / 2)
        return self._back(1j * self.down * smooth), self._back(1j * self.right * smooth)

    def _back(self, waves: np.ndarray) -> FloatArray:
        rows, columns = self.shape
        return np.asarray(fft.irfft2(waves, self.padded)[:rows, :columns], dtype=np.float64)


@numba.njit(cache=True, nogil=True)
def _limit(values: FloatArray, slope: float) -> None:
    """Lower values until none exceeds another by more than `slope` times the way between them.

    Ways go from cell to cell, also over corners, so one sweep down and one up find all of them.
    """
    rows, columns = values.shape
    for sweep in (1, -1):
        for m in range(rows):
            i = m if sweep > 0 else rows - 1 - m
            for n in range(columns):
                j = n if sweep > 0 else columns - 1 - n
                least = values[i, j]
                if 0 <= j - sweep < columns:
                    least = min(least, values[i, j - sweep] + slope)
                if 0 <= i - sweep < rows:
                    least = min(least, values[i - sweep, j] + slope)
                    for side in (j - 1, j + 1):
                        if 0 <= side < columns:
                            least = min(least, values[i - sweep, side] + math.sqrt(2) * slope)
                values[i, j] = least
