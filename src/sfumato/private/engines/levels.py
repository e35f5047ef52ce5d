"""Columns whose levels are still to be found: only these can be asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from sfumato.budget import Sensitivity
from sfumato.domain import IntArray
from sfumato.errors import PlanError
from sfumato.private.aggregates.base import Aggregate
from sfumato.private.levels import levels_sensitivity


class RawLevels(NamedTuple):
    """How many people have each value of each column. Raw, before noise."""

    n_columns: int
    places: IntArray  # (n_values,); which column a value belongs to, increasing
    texts: pa.Array  # (n_values,); sorted within each column
    counts: IntArray  # (n_values,)

    def by_column(
        self, passing: IntArray, noisy_counts: IntArray
    ) -> tuple[tuple[tuple[str, ...], ...], tuple[IntArray, ...]]:
        """Released texts and counts of each column. Texts that are not in UTF-8 are left out."""
        spellings = self.texts.cast(pa.large_binary()).take(pa.array(passing)).to_pylist()
        decoded = [_decoded(spelling) for spelling in spellings]
        texts, counts = [], []
        for place in range(self.n_columns):
            mine = [
                i for i, text in enumerate(decoded) if text is not None and self.places[passing[i]] == place
            ]
            texts.append(tuple(str(decoded[i]) for i in mine))
            counts.append(noisy_counts[mine])
        return tuple(texts), tuple(counts)


def _decoded(spelling: bytes) -> str | None:
    try:
        return spelling.decode()
    except UnicodeDecodeError:
        return None


@dataclass(frozen=True)
class LevelEngine:
    """Counts how many people have each value of some columns, in one pass.

    Parameters
    ----------
    n_features : int
        Number of these columns.
    counted : callable
        Gives the table of `count_levels`.
    """

    n_features: int
    counted: Callable[[], pa.Table]

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the counts for a whole privacy unit."""
        return levels_sensitivity(self.n_features)

    def count(self) -> RawLevels:
        """Count the values. Raw, before noise."""
        table = self.counted().combine_chunks()
        numbers = {name: table[name].to_numpy().astype(np.int64) for name in ("place", "n")}
        texts = table["text"].combine_chunks()
        return RawLevels(self.n_features, numbers["place"], texts, numbers["n"])

    def fold(self, aggregate: Aggregate) -> NoReturn:
        """Raise: coordinates are known only after the levels."""
        raise PlanError("the levels must be asked for first")
