"""Numbers rounded in a stated direction: roots, scales, floats and text."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from sfumato.errors import ParameterError

# What the noise samplers accept; selections need the numerator, too, within the second limit.
MAX_NUMERATOR = 2**52
MAX_DENOMINATOR = 2**31 - 1


def round_scale_up(scale: Fraction, max_numerator: int = MAX_NUMERATOR) -> Fraction:
    """Round `scale` up to a fraction that the samplers accept.

    A scale that already fits is returned unchanged. Otherwise it grows by less than one part in 2^28, or by
    less than 2^-30 if that is more. Extra noise never costs privacy.
    """
    if scale.numerator <= max_numerator and scale.denominator <= MAX_DENOMINATOR:
        return scale
    magnitude = scale.numerator.bit_length() - scale.denominator.bit_length()
    unit = Fraction(2) ** -min(29 - magnitude, 30)
    rounded = math.ceil(scale / unit) * unit
    if rounded.numerator > max_numerator:
        raise ParameterError(
            f"the budget must be larger: it needs a noise scale of {float(scale):.3g}, above the "
            f"{float(max_numerator):.3g} that the samplers can draw"
        )
    return rounded


def root_up(square: Fraction) -> Fraction:
    """A fraction at or above the square root of `square`; exact if the root is rational and short.

    >>> root_up(Fraction(9, 4))
    Fraction(3, 2)
    """
    return _root(square, up=True)


def root_down(square: Fraction) -> Fraction:
    """A fraction at or below the square root of `square`; exact if the root is rational and short."""
    return _root(square, up=False)


def _root(square: Fraction, *, up: bool) -> Fraction:
    # sqrt(n/d) = sqrt(n d 4^k) / (d 2^k), with 4^k large enough for 40 correct bits.
    n, d = square.numerator, square.denominator
    k = max(0, 40 - (n * d).bit_length() // 2)
    radicand = n * d * 4**k
    root = math.isqrt(radicand)
    if up and root * root < radicand:
        root += 1
    return Fraction(root, d * 2**k)


def shorten_up(value: Fraction) -> Fraction:
    """`value` itself if it is short, otherwise rounded up by less than one part in 2^200."""
    if value.denominator.bit_length() <= 512:
        return value
    return Fraction(math.ceil(value * 2**400), 2**400)


def float_up(value: Fraction) -> float:
    """Nearest float, or the next one above it if the decimal that it stands for is below `value`.

    >>> float_up(Fraction(3, 10)), float_up(Fraction(1, 3))
    (0.3, 0.33333333333333337)
    """
    nearest = float(value)
    return nearest if Fraction(repr(nearest)) >= value else math.nextafter(nearest, math.inf)


def exp_up(exponent: float) -> float:
    """A float at or above e to the `exponent`."""
    return math.exp(exponent) * (1 + 2**-50) if exponent else 1.0


def rounded_up(value: Fraction | float, digits: int) -> str:
    """Decimal of at most `digits` digits, at or above `value`. A float stands for its shortest decimal.

    >>> rounded_up(Fraction(1, 3), 6), rounded_up(3.3201, 3), rounded_up(0.1, 3), rounded_up(1e-6, 2)
    ('0.333334', '3.33', '0.1', '1e-06')
    """
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: Fraction | float, digits: int) -> str:
    """Decimal of at most `digits` digits, at or below `value`."""
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: Fraction | float, digits: int, rounding: str) -> str:
    if math.isinf(value):
        return "inf"
    exact = value if isinstance(value, Fraction) else Fraction(repr(float(value)))
    quotient = Context(digits, rounding).divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return f"{float(quotient):.{digits}g}"
