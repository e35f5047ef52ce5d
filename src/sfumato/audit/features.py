"""Numbers that an attacker reads off a released value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from sfumato.domain import FloatArray, Grid
from sfumato.release import Release

MOST_ENTRIES = 64  # of an array that are taken one by one; of longer ones, what they sum up to


def features(value: Any, places: FloatArray) -> dict[str, float]:
    """Numbers in a released value, and what the value says about some places.

    Parameters
    ----------
    value : Release, model, array, number, or a fitted estimator with a ``release_``
    places : float array of shape (n, d)
        Where to look for the nearest centre, its cluster's size and the counts of cells.

    Examples
    --------
    >>> from sfumato.public.models import CentreModel
    >>> model = CentreModel(np.array([[0.0, 0.5]]), np.array([7.0]))
    >>> found = features(model, places=np.array([[0.0, 0.0]]))
    >>> found["cluster_sizes[0]"], found["distance of the centre nearest to place 0"]
    (7.0, 0.5)
    """
    value = getattr(value, "release_", value)
    if isinstance(value, Release):
        told = {} if value.profiles is None else dict(_numbers(value.profiles, "profiles", places))
        return dict(_numbers(value.model, "", places)) | told
    return dict(_numbers(value, "", places))


def _numbers(value: Any, name: str, places: FloatArray) -> Iterator[tuple[str, float]]:
    if is_dataclass(value) and not isinstance(value, type):
        yield from _of_model(value, name, places)
    elif isinstance(value, list | tuple):
        yield f"{name} length", float(len(value))
        for i, item in enumerate(value[:MOST_ENTRIES]):
            yield from _numbers(item, f"{name}[{i}]", places)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "iufb":
        yield from _of_array(value.ravel().astype(np.float64), name)
    elif isinstance(value, bool | int | float | np.number | np.bool_):
        yield name or "value", float(value)


def _of_array(entries: FloatArray, name: str) -> Iterator[tuple[str, float]]:
    yield f"{name} length", float(len(entries))
    if len(entries):
        yield f"{name} sum", float(entries.sum())
        yield f"{name} least", float(entries.min())
        yield f"{name} greatest", float(entries.max())
    if len(entries) <= MOST_ENTRIES:
        yield from ((f"{name}[{i}]", float(entry)) for i, entry in enumerate(entries))


def _of_model(model: Any, name: str, places: FloatArray) -> Iterator[tuple[str, float]]:
    parts = {part.name: getattr(model, part.name) for part in fields(model)}
    for part, value in parts.items():
        if not isinstance(value, Grid):
            yield from _numbers(value, f"{name}.{part}" if name else part, places)
    if isinstance(parts.get("grid"), Grid):
        yield from _of_cells(parts, name, places)
    centers = parts.get("cluster_centers", parts.get("means"))
    if isinstance(centers, np.ndarray) and centers.ndim == 2 and len(centers):
        sizes = parts.get("cluster_sizes", parts.get("sizes"))
        yield from _of_centers(centers, sizes, places)


def _of_centers(centers: FloatArray, sizes: Any, places: FloatArray) -> Iterator[tuple[str, float]]:
    """Use the largest coordinate difference as distance, because bounds are boxes."""
    for i, place in enumerate(places):
        distances = np.abs(centers - place).max(axis=1)
        nearest = int(distances.argmin())
        yield f"distance of the centre nearest to place {i}", float(distances[nearest])
        if isinstance(sizes, np.ndarray) and len(sizes) == len(centers):
            yield f"size of the cluster nearest to place {i}", float(sizes[nearest])


def _of_cells(parts: dict[str, Any], name: str, places: FloatArray) -> Iterator[tuple[str, float]]:
    """Values at the places, from arrays over all cells of a grid or over its listed cells."""
    at, listed = parts["grid"].index(places), parts.get("cells")
    for part, values in parts.items():
        if not isinstance(values, np.ndarray) or part == "cells":
            continue
        for i, cell in enumerate(at):
            if listed is None and values.size == parts["grid"].n_cells:
                yield f"{name} {part} at place {i}", float(values.ravel()[cell])
            elif listed is not None and values.shape == listed.shape:
                found = np.flatnonzero(listed == cell)
                yield f"{name} {part} at place {i}", float(values[found[0]]) if len(found) else 0.0
