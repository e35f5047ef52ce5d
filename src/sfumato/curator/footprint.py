"""How much memory a fold over rows takes, from public numbers and the machine, for forecasts."""

from __future__ import annotations

from sfumato.domain.few_blocks import BLOCK_VALUES, N_THREADS
from sfumato.private.aggregates.moments import SHARED_VALUES
from sfumato.private.engines.memory import KEPT_BYTES

_BYTES_PER_VALUE = 24  # of a block of rows: as they are, clipped, and displaced


def fold_bytes(n_rows: float, n_columns: int, n_shared: int = 0) -> int:
    """Bytes of the rows that are read at a time, of what is computed from them, and of rows that are kept.

    Parameters
    ----------
    n_rows : float
    n_columns : int
    n_shared : int
        Components among which each row is shared.
    """
    values = min(n_rows * n_columns, N_THREADS * BLOCK_VALUES)
    shared = values / n_columns * n_shared
    held = 8 * n_rows * n_columns
    kept = held if held <= KEPT_BYTES else 0
    return int(_BYTES_PER_VALUE * values + 8 * min(shared, N_THREADS * SHARED_VALUES) + kept)


def state_bytes(n_integers: int) -> int:
    """Bytes of a summary of this many integers: each thread has one, and two more are merged and noised."""
    return 8 * (N_THREADS + 2) * n_integers
