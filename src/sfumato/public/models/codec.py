"""How models are saved: as JSON of publishable dataclasses, arrays and numbers."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain, FloatArray, Grid, IntArray, Measure, Unit
from sfumato.domain.blocks import Block
from sfumato.domain.columns import Columns, Coordinate, Described
from sfumato.domain.nested import NestedGrid
from sfumato.domain.sparse import Sparse
from sfumato.domain.text import TextFormat
from sfumato.errors import ReleaseError
from sfumato.public.cells import CellSynopsis
from sfumato.public.density.dbscan import Guarantee
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.nested import NestedHistogram
from sfumato.public.density.regions import Regions
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.public.models.base import LARGEST_FLOAT
from sfumato.public.models.centres import CentreModel
from sfumato.public.models.column_terms import ColumnTerms
from sfumato.public.models.dbscan import DBSCANModel
from sfumato.public.models.density_tree import DensityModel
from sfumato.public.models.mixture import MixtureModel
from sfumato.public.models.morse import MorseModel
from sfumato.public.models.source_target import SourceTargetModel
from sfumato.public.profiles import Profiles
from sfumato.public.terms import Terms

_LARGEST_INTEGER = 2**62  # sums of two stay within 64 bits

PUBLISHABLE: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        MixtureModel,
        MorseModel,
        CentreModel,
        SourceTargetModel,
        DBSCANModel,
        DensityModel,
        Guarantee,
        NoisyHistogram,
        NestedHistogram,
        NestedGrid,
        Regions,
        GridSynopsis,
        CellSynopsis,
        Grid,
        Columns,
        Coordinate,
        Described,
        Profiles,
        Terms,
        TextFormat,
        Sparse,
        ColumnTerms,
        Domain,
        Measure,
        Block,
        Unit,
    )
}


def encode(value: Any) -> Any:
    """JSON form of a value that consists of publishable dataclasses, arrays, sequences and numbers."""
    if is_dataclass(value) and not isinstance(value, type):
        if type(value).__name__ not in PUBLISHABLE:
            raise ReleaseError(f"{type(value).__name__} is not a publishable type")
        return {"type": type(value).__name__} | {
            f.name: encode(getattr(value, f.name)) for f in fields(value)
        }
    if isinstance(value, np.ndarray):
        return {
            "type": "array",
            "dtype": str(value.dtype),
            "shape": value.shape,
            "values": value.ravel().tolist(),
        }
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): encode(item) for name, item in value.items()}
    return value.isoformat() if isinstance(value, datetime.date) else value


def decode(data: Any) -> Any:
    """Inverse of `encode`. Sequences come back as tuples. Refuses what `encode` does not write."""
    if isinstance(data, list):
        return tuple(decode(item) for item in data)
    if not isinstance(data, dict):
        return data
    parts = {name: decode(item) for name, item in data.items() if name != "type"}
    if data["type"] == "array":
        return _array(**parts)
    cls = PUBLISHABLE[data["type"]]
    for name, wanted in get_type_hints(cls).items():
        if name in parts and not _fits(parts[name], wanted):
            raise ReleaseError(f"`{name}` of {cls.__name__} is of another type")
    value = cls(**parts)
    if hasattr(value, "check"):
        value.check()
    return value


def _array(dtype: str, shape: tuple[int, ...], values: tuple[float, ...]) -> NDArray[Any]:
    if dtype not in ("float64", "int64"):
        raise ReleaseError(f"an array must hold float64 or int64, got {dtype!r}")
    kinds = (int,) if dtype == "int64" else (int, float)
    if not all(type(value) in kinds for value in values):
        raise ReleaseError(f"an array of {dtype} must hold numbers of this type, got others")
    if math.prod(shape) != len(values):
        raise ReleaseError(f"an array of shape {shape} must have a value for each place, got {len(values)}")
    array = np.array(values, dtype=dtype).reshape(shape)
    if not np.isfinite(array).all():
        raise ReleaseError("an array must be finite, got NaN or infinity")
    return array


def _fits(value: object, wanted: Any) -> bool:
    """Whether a value has the type that a field declares, and is small enough to compute with."""
    arguments = get_args(wanted)
    if wanted in (FloatArray, IntArray):
        return isinstance(value, np.ndarray) and value.dtype == get_args(arguments[1])[0]
    if get_origin(wanted) is tuple:
        return isinstance(value, tuple) and all(_fits(item, arguments[0]) for item in value)
    if get_origin(wanted) is Literal:
        return isinstance(value, str) and value in arguments
    if arguments:
        return any(_fits(value, part) for part in arguments)
    if wanted not in (int, float):
        return isinstance(value, wanted)
    if isinstance(value, bool) or not isinstance(value, int if wanted is int else int | float):
        return False
    return abs(value) <= (_LARGEST_INTEGER if wanted is int else LARGEST_FLOAT)
