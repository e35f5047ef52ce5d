"""Methods by their names on the command line: from the library, and from other packages."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from sfumato.cluster import PrivateClusterer

GROUP = "sfumato.methods"  # entry points: name = "package.module:EstimatorClass"
BUILT_IN = {
    "kmeans": "PrivateKMeans",
    "dpm": "DPM",
    "grid-kmeans": "GridKMeans",
    "lloyd-kmeans": "LloydKMeans",
    "coreset-kmeans": "CoresetKMeans",
    "max-cover-kmeans": "MaxCoverKMeans",
    "local-search-kmeans": "LocalSearchKMeans",
    "density-tree": "DensityTree",
    "dpdbscan": "DPDBSCAN",
    "dpmog": "DPMoG",
    "morse": "MorseClustering",
}


class Recommended(NamedTuple):
    """The method to use if none is named, with its number of clusters."""

    name: str
    clusters: Any
    reason: str


def recommended(
    rows: float | None, columns: int, clusters: Any, budget: Mapping[str, Any], bounds: Any
) -> Recommended:
    """What `sfumato.recommend` says, for the commands that need no method."""
    from sfumato.planner import recommend

    found = recommend(rows, columns, clusters, bounds=bounds, **budget)
    names = {cls: name for name, cls in BUILT_IN.items()}
    return Recommended(names[found.method.__name__], found.parameters["n_clusters"], found.reason)


def others() -> dict[str, EntryPoint]:
    """Methods of other packages. They cannot take the name of a method of the library."""
    from importlib.metadata import entry_points  # slow to load, and not for every command

    return {point.name: point for point in entry_points(group=GROUP) if point.name not in BUILT_IN}


def names() -> list[str]:
    """Names of all methods, first those in the library."""
    return [*BUILT_IN, *sorted(others())]


def find(name: str) -> type[PrivateClusterer]:
    """Class of a method."""
    from sfumato import cluster

    if name in BUILT_IN:
        return getattr(cluster, BUILT_IN[name])  # type: ignore[no-any-return]
    if name not in (found := others()):
        raise ParameterError(f"`--method` must be one of {', '.join(names())}, got {name!r}")
    cls = found[name].load()
    if not (inspect.isclass(cls) and issubclass(cls, cluster.PrivateClusterer)):
        raise ParameterError(f"method {name!r} must be a PrivateClusterer, got {found[name].value}")
    return cls


def make(name: str, clusters: Any, own: Mapping[str, Any], shared: Mapping[str, Any]) -> PrivateClusterer:
    """Estimator with its number of clusters, its own parameters, and those that all methods share."""
    from sfumato.cluster.shared.parameters import SHARED, number_parameter

    cls = find(name)
    known = [known for known in inspect.signature(cls).parameters if known not in SHARED]
    parameters = dict(own)
    if clusters is not None:
        number = number_parameter(cls)
        if number is None:
            raise ParameterError(f"`--clusters` must not be given: {name} finds the number itself")
        parameters[number] = clusters
    for parameter in parameters:
        if parameter in SHARED:
            raise ParameterError(f"`--set {parameter}` must not be used: the command has an option for it")
        if parameter not in known:
            raise ParameterError(
                f"`--set` must name a parameter of {name} ({', '.join(known)}), got {parameter!r}"
            )
    return cls(**parameters, **shared)


def parse_number(text: Any) -> Any:
    """Number of clusters as it was typed: a whole number, or auto."""
    if text == "auto" or isinstance(text, int):
        return text
    try:
        return int(text)
    except ValueError:
        raise ParameterError(f"`--clusters` must be a whole number or auto, got {text!r}") from None


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """Parameters that are given as ``name=value``. A value is written as in TOML, or is a bare word."""
    found = {}
    for setting in settings:
        name, equals, value = (part.strip() for part in setting.partition("="))
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except ValueError:
            if not equals or not re.fullmatch(r"[A-Za-z][\w-]*", value):
                raise ParameterError(
                    f"`--set` must be name=value, got {setting!r}. Try max_depth=5"
                ) from None
            found[name] = value
    return found
