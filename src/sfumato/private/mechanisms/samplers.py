"""Compiled samplers: every law from fair bits, in integer arithmetic only.

A kernel reads ``words`` (uint64) at ``cursor = [next bit, end bit]`` (int64). Reading past the end moves the
cursor beyond it, and then every loop below ends. The ``fill_*`` and ``select_*`` kernels move the cursor back
to the start of the unfinished trial and return. The trial is repeated on the same bits once more words are
appended: dropping its bits would favour short trials.

Callers check the limits on the arguments, and ``docs/proofs/samplers.md`` shows that these exclude overflow.
All kernels share one file because numba's cache notices a change only in the file of the kernel that Python
calls. Those that only kernels call have no wrapper for Python, which would take a fifth of compiling them.
"""

from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
from numba import njit
from numba.extending import register_jitable

Words: TypeAlias = npt.NDArray[np.uint64]
Integers: TypeAlias = npt.NDArray[np.int64]
Digits: TypeAlias = npt.NDArray[np.uint16]

MAX_GEOMETRIC = 1023  # 2**52 * (1023 + 1) = 2**62 fits in int64
MAX_EXPONENT = 2**20
_ALL_ONES = np.uint64(2**64 - 1)
_WORD = np.uint64(64)
_ONE = cast(
    int, np.int64(1)
)  # a plain 1 as an argument would have numba compile further variants of a kernel


@register_jitable
def take(words: Words, cursor: Integers, n_bits: int) -> int:
    """Read the next ``n_bits`` bits, at most 62, as an integer; zero when the words have run out."""
    start = cursor[0]
    cursor[0] = start + n_bits
    if n_bits == 0 or cursor[0] > cursor[1]:
        return 0
    index = start >> 6
    offset = np.uint64(start & 63)
    width = np.uint64(n_bits)
    bits = words[index] >> offset
    if offset + width > _WORD:
        bits |= words[index + 1] << (_WORD - offset)
    return int(np.int64(bits & (_ALL_ONES >> (_WORD - width))))


@register_jitable
def uniform(words: Words, cursor: Integers, n: int) -> int:
    """Draw an integer uniform on 0, ..., n - 1, reusing the remainder of a rejected value (Lumbroso 2013)."""
    n_bits = 0
    rest = n - 1
    while rest > 0:
        rest >>= 1
        n_bits += 1
    size = 1 << n_bits
    value = take(words, cursor, n_bits)
    while value >= n:  # value is uniform on 0, ..., size - 1
        size -= n
        value -= n
        while size < n:
            size += size
            value += value + take(words, cursor, _ONE)
    return value


@register_jitable
def bernoulli(words: Words, cursor: Integers, a: int, b: int) -> bool:
    """Draw true with probability min(a / b, 1), with two bits on average.

    The bits of a uniform real are compared with the binary digits of a / b up to the first difference.
    """
    if a >= b:
        return True
    while a > 0 and cursor[0] <= cursor[1]:
        a += a
        digit = a >= b
        if digit:
            a -= b
        if digit != (take(words, cursor, _ONE) == 1):
            return digit
    return False


@register_jitable
def bernoulli_exp_fraction(words: Words, cursor: Integers, a: int, b: int) -> bool:
    """Draw true with probability exp(-a / b) for 0 <= a <= b (Canonne, Kamath and Steinke, Algorithm 1)."""
    k = _ONE
    while bernoulli(words, cursor, a, b) and bernoulli(words, cursor, _ONE, k):
        k += 1
    return k % 2 == 1


@register_jitable
def bernoulli_exp_repeated(words: Words, cursor: Integers, times: int, a: int, b: int) -> bool:
    """Draw true with probability exp(-times * a / b) for 0 <= a <= b."""
    n_left = times
    while n_left > 0 and bernoulli_exp_fraction(words, cursor, a, b):
        n_left -= 1
    return n_left == 0


@register_jitable
def bernoulli_exp(words: Words, cursor: Integers, whole: int, a: int, b: int) -> bool:
    """Draw true with probability exp(-(whole + a / b)) for 0 <= a <= b."""
    if not bernoulli_exp_repeated(words, cursor, whole, _ONE, _ONE):
        return False
    return bernoulli_exp_fraction(words, cursor, a, b)


@register_jitable
def bernoulli_exp_fractions(words: Words, cursor: Integers, a: int, b: int, c: int, d: int) -> bool:
    """Draw true with probability exp(-(a / b) (c / d)) for fractions of at most one."""
    k = _ONE
    while (
        bernoulli(words, cursor, a, b)
        and bernoulli(words, cursor, c, d)
        and bernoulli(words, cursor, _ONE, k)
    ):
        k += 1
    return k % 2 == 1


@register_jitable
def bernoulli_exp_product(words: Words, cursor: Integers, a: int, b: int, c: int, d: int) -> bool:
    """Draw true with probability exp(-(a / b) (c / d)) for any non-negative fractions."""
    i, a = a // b, a % b
    j, c = c // d, c % d
    # (i + a/b) (j + c/d) = i j + i c/d + j a/b + (a/b) (c/d)
    if not bernoulli_exp_repeated(words, cursor, i * j, _ONE, _ONE):
        return False
    if not bernoulli_exp_repeated(words, cursor, i, c, d):
        return False
    if not bernoulli_exp_repeated(words, cursor, j, a, b):
        return False
    return bernoulli_exp_fractions(words, cursor, a, b, c, d)


@register_jitable
def geometric(words: Words, cursor: Integers, t: int, s: int) -> int:
    """Draw x >= 0 with probability proportional to exp(-x s / t) (the same paper, Algorithm 2)."""
    while cursor[0] <= cursor[1]:
        low = uniform(words, cursor, t)
        if bernoulli_exp_fraction(words, cursor, low, t):
            high = 0
            while high < MAX_GEOMETRIC and bernoulli_exp_fraction(words, cursor, _ONE, _ONE):
                high += 1
            return (low + t * high) // s
    return 0


@register_jitable
def laplace(words: Words, cursor: Integers, t: int, s: int) -> int:
    """Draw x with probability proportional to exp(-|x| s / t)."""
    while cursor[0] <= cursor[1]:
        magnitude = geometric(words, cursor, t, s)
        if take(words, cursor, _ONE) == 0:
            return magnitude
        if magnitude > 0:
            return -magnitude
    return 0


@register_jitable
def gaussian(words: Words, cursor: Integers, a: int, b: int) -> int:
    """Draw x with probability proportional to exp(-x**2 / (2 sigma**2)), sigma = a / b."""
    while cursor[0] <= cursor[1]:
        value = laplace(words, cursor, a, b)
        excess = abs(abs(value) * b - a)
        if bernoulli_exp_product(words, cursor, excess, a, excess, 2 * a):
            return value
    return 0


@njit(cache=True, nogil=True)
def fill_laplace(words: Words, cursor: Integers, out: Integers, n_done: int, t: int, s: int) -> int:
    """Fill ``out`` from ``n_done`` on until it is full or the words run out; return how far it got."""
    for index in range(n_done, out.size):
        start = cursor[0]
        value = laplace(words, cursor, t, s)
        if cursor[0] > cursor[1]:
            cursor[0] = start
            return index
        out[index] = value
    return out.size


@njit(cache=True, nogil=True)
def fill_gaussian(words: Words, cursor: Integers, out: Integers, n_done: int, a: int, b: int) -> int:
    """Fill ``out`` from ``n_done`` on until it is full or the words run out; return how far it got."""
    for index in range(n_done, out.size):
        start = cursor[0]
        value = gaussian(words, cursor, a, b)
        if cursor[0] > cursor[1]:
            cursor[0] = start
            return index
        out[index] = value
    return out.size


@register_jitable
def table_index(words: Words, cursor: Integers, guide: Integers, borders: Digits) -> int:
    """Return how many borders are at or below a uniform real, reading only the digits that matter.

    Borders that share its first digit are searched from both ends. On average over that digit, their number
    is the table's number of borders divided by 2**16.
    """
    first = take(words, cursor, 16)
    low, high = guide[first], guide[first + 1]
    digit = 1
    while low < high and digit < borders.shape[1]:
        value = take(words, cursor, 16)
        while low < high and borders[low, digit] < value:
            low += 1
        while low < high and borders[high - 1, digit] > value:
            high -= 1
        digit += 1
    return int(high)


@njit(cache=True, nogil=True)
def fill_table(
    words: Words, cursor: Integers, out: Integers, n_done: int, first: int, guide: Integers, borders: Digits
) -> int:
    """Fill ``out`` from ``n_done`` on until it is full or the words run out; return how far it got.

    Nothing else reads these words, so the cursor is at a multiple of 16 and no digit lies across two words.
    """
    for index in range(n_done, out.size):
        start = cursor[0]
        if start + 16 > cursor[1]:
            return index
        digit = np.int64((words[start >> 6] >> np.uint64(start & 63)) & np.uint64(0xFFFF))
        value = guide[digit]
        if value == guide[digit + 1]:
            cursor[0] = start + 16
        else:
            value = table_index(words, cursor, guide, borders)
            if cursor[0] > cursor[1]:
                cursor[0] = start
                return index
        out[index] = first + value
    return out.size


@njit(cache=True, nogil=True)
def fill_geometric(words: Words, cursor: Integers, out: Integers, n_done: int, t: int, s: int) -> int:
    """Fill ``out`` from ``n_done`` on until it is full or the words run out; return how far it got."""
    for index in range(n_done, out.size):
        start = cursor[0]
        value = geometric(words, cursor, t, s)
        if cursor[0] > cursor[1]:
            cursor[0] = start
            return index
        out[index] = value
    return out.size


@njit(cache=True, nogil=True)
def fill_gaussian_tail(
    words: Words, cursor: Integers, out: Integers, n_done: int, a: int, b: int, s: int, peak: int
) -> int:
    """Fill ``out`` with x from ``geometric(a, s)``, kept with probability exp(-(x b - peak)**2 / (2 a**2)).

    A draw that is not kept leaves -1.
    """
    for index in range(n_done, out.size):
        start = cursor[0]
        value = geometric(words, cursor, a, s)
        excess = abs(value * b - peak)
        kept = bernoulli_exp_product(words, cursor, excess, a, excess, 2 * a)
        if cursor[0] > cursor[1]:
            cursor[0] = start
            return index
        out[index] = value if kept else -1
    return out.size


@njit(cache=True, nogil=True)
def fill_cells(
    words: Words, cursor: Integers, out: Integers, n_done: int, blocks: Integers, n_bits: int
) -> int:
    """Fill ``out`` with distinct cells in increasing order, one from block ``blocks[i]`` for each i.

    A block has 2**n_bits cells. ``blocks`` is sorted, and equal blocks are one trial.
    """
    index, first, start = n_done, n_done, cursor[0]
    while index < out.size:
        if blocks[index] != blocks[first]:
            first, start = index, cursor[0]
        cell = (blocks[index] << n_bits) + take(words, cursor, n_bits)
        if cursor[0] > cursor[1]:
            cursor[0] = start
            return first
        place = index
        while place > first and out[place - 1] >= cell:
            place -= 1
        if place < index and out[place] == cell:
            continue
        for other in range(index, place, -1):
            out[other] = out[other - 1]
        out[place] = cell
        index += 1
    return out.size


@register_jitable
def accept_gap(words: Words, cursor: Integers, gap: np.uint64, num: int, den: int) -> bool:
    """Draw true with probability exp(-min(gap * num / den, MAX_EXPONENT)), for a gap of up to 64 bits."""
    divisor = np.uint64(den)
    quotient = int(np.int64(min(gap // divisor, np.uint64(MAX_EXPONENT))))
    part = int(np.int64(gap % divisor)) * num
    whole = quotient * num + part // den
    if whole >= MAX_EXPONENT:
        return bernoulli_exp_repeated(words, cursor, min(whole, MAX_EXPONENT), _ONE, _ONE)
    return bernoulli_exp(words, cursor, whole, part % den, den)


@njit(cache=True, nogil=True)
def select_exponential(words: Words, cursor: Integers, gaps: Words, num: int, den: int) -> int:
    """Return an index with probability proportional to exp(-gap * num / den), or -1 when words run out."""
    while True:
        start = cursor[0]
        index = uniform(words, cursor, gaps.size)
        accepted = accept_gap(words, cursor, gaps[index], num, den)
        if cursor[0] > cursor[1]:
            cursor[0] = start
            return -1
        if accepted:
            return index


@njit(cache=True, nogil=True)
def select_permute_and_flip(
    words: Words, cursor: Integers, order: Integers, n_done: int, gaps: Words, num: int, den: int
) -> tuple[int, int]:
    """Return the first index of a random permutation whose flip is heads, or -1, and the flips made.

    ``order`` is shuffled in place, one position per flip; ``n_done`` flips were made by earlier calls.
    """
    for position in range(n_done, order.size):
        start = cursor[0]
        other = position + uniform(words, cursor, order.size - position)
        index = order[other]
        accepted = accept_gap(words, cursor, gaps[index], num, den)
        if cursor[0] > cursor[1]:
            cursor[0] = start
            return -1, position
        if accepted:
            return index, position
        order[other], order[position] = order[position], index
    return -1, order.size


@njit(cache=True, nogil=True)
def merge_above(
    cells: Integers,
    counts: Integers,
    other_cells: Integers,
    other_counts: Integers,
    threshold: int,
    out: Integers,
) -> int:
    """Write all pairs with counts of at least ``threshold`` to ``out``, by cell; return how many.

    Both lists are sorted. If a cell is in both, the first list's count is used, whatever it is.
    """
    n_out, i, j = 0, 0, 0
    while i < cells.size or j < other_cells.size:
        is_first = j == other_cells.size or (i < cells.size and cells[i] <= other_cells[j])
        if is_first:
            cell, count = cells[i], counts[i]
            j += j < other_cells.size and other_cells[j] == cell
            i += 1
        else:
            cell, count = other_cells[j], other_counts[j]
            j += 1
        if count >= threshold:
            out[0, n_out], out[1, n_out] = cell, count
            n_out += 1
    return n_out
