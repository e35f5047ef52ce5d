"""Which columns profiles tell about, from the parameters of an estimator. Declarations only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.cluster.shared.levels import PRIVATE, private_columns
from sfumato.domain import Domain
from sfumato.domain.columns import Coordinate, Described, described_columns, named_bounds
from sfumato.errors import ParameterError

PROFILES_SHARE = Fraction(1, 6)  # of the budget, for profiles="auto"


@dataclass(frozen=True)
class Describing:
    """What profiles of a fit cost and tell about.

    Parameters
    ----------
    share : Fraction
        Share of the budget. 0 for no profiles.
    clustered : dict
        Bounds of the columns that are clustered by, if they have names.
    beside : dict
        Bounds of other columns.
    """

    share: Fraction
    clustered: Mapping[str, Any]
    beside: Mapping[str, Any]

    @classmethod
    def of(
        cls, profiles: Any, describe: Any, bounds: object, unit: str | None, *, explains: bool
    ) -> Describing:
        """From the parameters of an estimator.

        Parameters
        ----------
        profiles, describe, bounds, unit
            As for an estimator, without what they cost.
        explains : bool
            Whether named columns are told about unless `profiles` say otherwise.
        """
        clustered = named_bounds(bounds)
        beside = _beside(describe, clustered, unit)
        if profiles == "auto":
            wanted = describe is not None or (explains and bool(clustered))
            return cls(PROFILES_SHARE if wanted else Fraction(0), clustered, beside)
        share = Fraction(str(profiles))
        if describe is not None and not share:
            raise ParameterError(f"`profiles` must be positive with `describe`, got {profiles!r}")
        return cls(share, clustered, beside)

    @property
    def private(self) -> tuple[str, ...]:
        """Columns that are not clustered by, whose levels are to be found."""
        return private_columns(self.beside)

    def n_columns(self, domain: Domain) -> int:
        """Number of columns that profiles tell about."""
        return (len(self.clustered) or domain.n_features) + len(self.beside)

    def columns(
        self, names: Sequence[str], space: Domain, found: Mapping[str, Sequence[str]]
    ) -> list[tuple[Coordinate, Described]]:
        """How each column is read, and what is known about it.

        Parameters
        ----------
        names : sequence of str
            Names of all columns, if `bounds` do not name them. Empty if they have none.
        space : Domain
        found : mapping of str to sequence of str
            Levels that the fit found.
        """
        clustered = dict(self.clustered)
        if not clustered:
            names = names or [f"column {j}" for j in range(1, space.n_features + 1)]
            clustered = dict(zip(names, zip(space.low, space.high, strict=True), strict=True))
        # A column in which no level was found keeps its declaration: all its values are "other".
        levels = {name: list(own) for name, own in found.items() if own}
        return described_columns({**clustered, **self.beside, **levels})


def _beside(describe: Any, clustered: Mapping[str, Any], unit: str | None) -> dict[str, Any]:
    """Bounds of the columns that are only described."""
    if describe is None:
        return {}
    if isinstance(describe, str) or not isinstance(describe, Sequence | Mapping):
        raise ParameterError(f"`describe` must be a list of columns or a mapping, got {describe!r}")
    if unit is not None and unit in describe:
        raise ParameterError(f"`describe` must not include the `unit` column, got {unit!r}")
    if not isinstance(describe, Mapping):
        return {name: PRIVATE for name in describe if name not in clustered}
    if twice := [name for name in describe if name in clustered]:
        raise ParameterError(f"`describe` must name other columns than `bounds`, got {twice[0]!r} in both")
    return dict(describe)
