"""Sums that outgrow 64 bits: two limbs for each entry."""

from __future__ import annotations

from abc import ABC, abstractmethod

from sfumato.domain import FloatArray, IntArray
from sfumato.private.aggregates.base import Aggregate

LIMB_BITS = 62  # two low limbs, or one and a draw of noise, add up without overflow


class LimbSums(Aggregate, ABC):
    """An aggregate whose state has one array of low limbs and one of high limbs, shape (2, ...).

    An entry is low + 2^62 high with -2^61 <= low < 2^61. Up to 2^32 rows low is the entry and high is 0.
    """

    def merge(self, a: IntArray, b: IntArray) -> IntArray:
        """Add entries."""
        a += b
        return carried(a)

    @abstractmethod
    def unpack(self, values: FloatArray) -> tuple[FloatArray, ...]:
        """Sizes, sums and the like of each group, in the units of the data, from its entries."""


def carried(limbs: IntArray) -> IntArray:
    """Carry what is beyond the low limbs into the high ones, in place. The entries stay the same.

    This form depends on the entry alone: not on the order of additions, nor on which part of it was noise.
    Proof: docs/proofs/lattice.md.
    """
    low, high = limbs
    over = (low + (1 << LIMB_BITS - 1)) >> LIMB_BITS
    high += over
    low -= over << LIMB_BITS
    return limbs


def as_floats(limbs: IntArray) -> FloatArray:
    """Entries, rounded to floats."""
    low, high = limbs
    values: FloatArray = low + high * 2.0**LIMB_BITS
    return values
