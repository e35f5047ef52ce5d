"""What holders and curator agree on before the first round: the fit, its budget, and who takes part."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from importlib.metadata import version
from typing import Any

import numpy as np

from sfumato import cluster
from sfumato.budget.bought import purchases
from sfumato.cluster import PrivateClusterer
from sfumato.cluster.shared.levels import private_columns
from sfumato.domain import Ball, Sphere
from sfumato.domain.sparse import Sparse
from sfumato.errors import ParameterError, ReleaseError
from sfumato.public.models import decode, encode

_OF_ONE_SIDE = ("ledger", "random_state")  # parameters that are not agreed on
_DOMAINS = {"Ball": Ball, "Sphere": Sphere}
_ONE_TABLE = "a joint fit cannot {}: it is not the sum of what each holder counts. {}"


@dataclass(frozen=True)
class Declaration:
    """The public facts of a joint fit.

    Parameters
    ----------
    method : dict
        Name of the estimator and its parameters, as `declared` writes them.
    columns : int, tuple of str or None
        Number or names of the columns. None if `bounds` name them.
    holders : tuple of str
    max_holders_per_unit : int
    nonce : str
        Random: two fits with the same parameters are two fits.
    library : str
        Version of sfumato. All sides must have it.
    """

    method: dict[str, Any]
    columns: int | tuple[str, ...] | None
    holders: tuple[str, ...]
    max_holders_per_unit: int
    nonce: str
    library: str = version("sfumato")

    def __post_init__(self) -> None:
        names = self.holders
        if len(names) < 2 or len(set(names)) < len(names) or not all(map(_is_name, names)):
            raise ParameterError(f"`holders` must be two or more distinct names, got {list(names)!r}")
        most = self.max_holders_per_unit
        if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= len(names):
            raise ParameterError(f"`max_holders_per_unit` must be from 1 to {len(names)}, got {most!r}")

    @property
    def fit(self) -> str:
        """Identifier of the fit: SHA-256 of the declaration."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def estimator(self) -> PrivateClusterer:
        """The estimator, without a ledger and without a seed."""
        found = read(self.method)
        if not isinstance(found, PrivateClusterer):
            raise ReleaseError("the transcript must declare a method, and does not")
        return found

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        found = {part.name: getattr(self, part.name) for part in fields(self)}
        return found | {"holders": list(self.holders), "columns": _listed(self.columns)}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Declaration:
        """Inverse of `to_dict`."""
        columns = content["columns"]
        found = cls(
            **content
            | {
                "holders": tuple(content["holders"]),
                "columns": tuple(columns) if isinstance(columns, list) else columns,
            }
        )
        if found.library != version("sfumato"):
            raise ReleaseError(
                f"the fit was started with sfumato {found.library}, this is {version('sfumato')}: all sides "
                "must have the same version"
            )
        return found


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name.strip()) and name.isprintable()


def _listed(columns: int | tuple[str, ...] | None) -> int | list[str] | None:
    return list(columns) if isinstance(columns, tuple) else columns


def check_supported(estimator: PrivateClusterer) -> None:
    """Raise if a joint fit cannot ask what this estimator asks."""
    name = type(estimator).__name__
    if not isinstance(estimator, PrivateClusterer) or getattr(cluster, name, None) is not type(estimator):
        raise ParameterError(f"a joint fit must be of a clustering method of sfumato, got {name}")
    bounds = estimator.bounds
    if purchases(*estimator.get_params(deep=False).values()):
        raise ParameterError(
            _ONE_TABLE.format(
                "use bought values", "Use public bounds, or bounds='private', which the fit finds itself"
            )
        )
    if isinstance(bounds, Sparse):
        raise ParameterError("a joint fit must have dense rows: `bounds` must not be `Sparse`")
    if private_columns(bounds) or estimator._describing.private:
        raise ParameterError(
            _ONE_TABLE.format(
                "find levels", "List the levels in `bounds` and in `describe`, if they are public"
            )
        )


def declared(value: Any) -> Any:
    """JSON form of an estimator or of one of its parameters, from which `read` makes the same again."""
    if isinstance(value, PrivateClusterer):
        own = {part.name: part.default for part in fields(value)}
        given = {name: one for name, one in value.get_params(deep=False).items() if one is not own[name]}
        parameters = {name: declared(one) for name, one in given.items() if name not in _OF_ONE_SIDE}
        return {"method": type(value).__name__, "parameters": parameters}
    if isinstance(value, np.ndarray):
        return {"array": encode(value.astype(np.int64 if value.dtype.kind in "iu" else np.float64))}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Ball | Sphere):
        parts = {part.name: declared(getattr(value, part.name)) for part in fields(value)}
        return {"domain": type(value).__name__, "parts": parts}
    if isinstance(value, Mapping):
        return {"mapping": [[declared(name), declared(one)] for name, one in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [declared(one) for one in value]}
    if isinstance(value, list):
        return [declared(one) for one in value]
    if isinstance(value, datetime.datetime):
        return {"time": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if value is bool:
        return {"type": "bool"}
    if value is None or isinstance(value, str | int | float):
        return value
    raise ParameterError(f"a joint fit cannot declare a {type(value).__name__}: give plain numbers and names")


def read(data: Any) -> Any:
    """Inverse of `declared`. Makes nothing but estimators of sfumato, numbers, names and dates."""
    if isinstance(data, list):
        return [read(one) for one in data]
    if not isinstance(data, dict):
        return data
    match data:
        case {"method": str(name), "parameters": dict(parameters)}:
            return _estimator(name, {key: read(one) for key, one in parameters.items()})
        case {"domain": str(name), "parts": dict(parts)}:
            return _DOMAINS[name](**{key: read(one) for key, one in parts.items()})
        case {"array": array}:
            return decode(array)
        case {"mapping": list(items)}:
            return {read(name): read(one) for name, one in items}
        case {"tuple": list(items)}:
            return tuple(map(read, items))
        case {"time": str(text)}:
            return datetime.datetime.fromisoformat(text)
        case {"date": str(text)}:
            return datetime.date.fromisoformat(text)
        case {"fraction": str(text)}:
            return Fraction(text)
        case {"type": "bool"}:
            return bool
    raise ReleaseError("the transcript must declare numbers and names, and declares something else")


def _estimator(name: str, parameters: dict[str, Any]) -> PrivateClusterer:
    cls = getattr(cluster, name, None) if name in cluster.__all__ else None
    if not (isinstance(cls, type) and issubclass(cls, PrivateClusterer)) or cls is PrivateClusterer:
        raise ReleaseError(f"the transcript must declare a method of sfumato, got {name!r}")
    known = {part.name for part in fields(cls)}.difference(_OF_ONE_SIDE)
    if unknown := sorted(parameters.keys() - known):
        raise ReleaseError(f"the transcript must declare parameters of {name}, got {', '.join(unknown)}")
    found: PrivateClusterer = cls(**parameters)
    return found
