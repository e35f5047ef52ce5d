"""The release: one JSON file with the model, the public parameters and the privacy statement."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from errno import EBADF, EINVAL, ENOTSUP
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sfumato.budget import PrivacyStatement
from sfumato.budget.statement import SEEDED_WARNING
from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.domain.arrays import numbers
from sfumato.domain.columns import Columns, Coordinate
from sfumato.domain.sparse import Sparse
from sfumato.domain.text import TextTable
from sfumato.errors import DataError, ParameterError, ReleaseError
from sfumato.public.exports.export import Export
from sfumato.public.models import Model, decode, encode
from sfumato.public.models.column_terms import ColumnTerms
from sfumato.public.profiles import Profiles
from sfumato.public.terms import Terms

# What reads the holder's rows, `sfumato.curator`, is slow to load. It is imported where rows are read: a
# report needs none.
FORMAT = "sfumato release"
FORMAT_VERSION = 1


@dataclass(frozen=True, eq=False)
class Release:
    """Everything about one clustering that may be published, and nothing else.

    Parameters
    ----------
    method : str
        Name of the estimator.
    parameters : dict
        Its public parameters.
    domain : Domain
        Bounds and privacy unit.
    columns : tuple of str
        Column names, or empty if the table had none.
    model : Model
        In the units of the columns.
    privacy : PrivacyStatement
    reading : Columns, optional
        How to read a table with named columns.
    profiles : Profiles, optional
        What is in each cluster, column by column.
    terms : Terms, optional
        Terms of texts that set each cluster apart.
    sparse : Sparse, optional
        How sparse rows become the coordinates of the model.
    column_terms : ColumnTerms, optional
        Columns of sparse rows that stand out in each cluster.

    Privacy
    -------
    Holds values that the curator released, and public parameters. It never holds labels of the training rows
    or the seed of a seeded run.

    Examples
    --------
    >>> release = GridKMeans(3, bounds=(0, 1)).fit(X).release_  # doctest: +SKIP
    >>> release.save("release.json")  # doctest: +SKIP
    >>> Release.load("release.json").predict(new_rows)  # doctest: +SKIP
    """

    method: str
    parameters: dict[str, Any]
    domain: Domain
    columns: tuple[str, ...]
    model: Model
    privacy: PrivacyStatement
    reading: Columns | None = None
    profiles: Profiles | None = None
    terms: Terms | None = None
    sparse: Sparse | None = None
    column_terms: ColumnTerms | None = None
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    library: str = version("sfumato")

    def predict(self, X: ArrayLike) -> IntArray:
        """Cluster of each row of a table. This costs no budget, but the labels are not private.

        Rows that the fit would have left out, for missing values or because they are outside, get -1.

        Parameters
        ----------
        X : array-like of shape (n, d)
            A table, or a path to one. If the release has column names, the table must have the same.
        """
        from sfumato.curator import holder

        if self.reading is not None:
            return holder.labels(X, self.reading, self.domain, self.label)
        missing: Literal["error", "drop"] = "drop" if self.parameters.get("missing") == "drop" else "error"
        if self.sparse is not None:
            return holder.labels_of_sparse(X, self.sparse, missing, self.domain, self.label)
        return holder.labels_of_rows(self._checked_rows(X), missing, self.domain, self.label)

    @cached_property
    def measured_model(self) -> Model:
        """The model in the units in which distances are taken."""
        return self.model.moved(self.domain.measure) if self.domain.measure else self.model

    def label(self, rows: FloatArray) -> IntArray:
        """Cluster of each row of finite coordinates, in the units of the columns."""
        return self.measured_model.predict(self.domain.measure.of(rows))

    def strengths(self, X: ArrayLike) -> FloatArray:
        """How firmly each row of a table belongs to its span, from 0 (outside) to 1. Not private.

        The density at the row's place over the density that is typical of the span, at most 1.

        Parameters
        ----------
        X : array-like of shape (n, d)
            A table, or a path to one, as for `predict`.
        """
        from sfumato.curator import holder

        self._check_spans()
        if self.reading is not None:
            found = holder.values(X, self.reading, self.domain, self._strength, 1)
        else:
            missing: Literal["error", "drop"] = (
                "drop" if self.parameters.get("missing") == "drop" else "error"
            )
            found = holder.values_of_rows(self._checked_rows(X), missing, self.domain, self._strength, 1)
        return np.nan_to_num(found[:, 0])

    def _check_spans(self) -> None:
        if not hasattr(self.model, "strength"):
            raise ParameterError(f"{self.method} has no spans: use DensityTree or DPDBSCAN for strengths")

    def _strength(self, rows: FloatArray) -> FloatArray:
        model: Any = self.measured_model
        return np.asarray(model.strength(self.domain.measure.of(rows)))[:, None]

    def _checked_rows(self, X: ArrayLike) -> FloatArray:
        rows = numbers(X)
        if rows.ndim != 2 or rows.shape[1] != self.model.n_features:
            got = f"{rows.shape[1]} columns" if rows.ndim == 2 else f"{rows.ndim} dimension(s)"
            raise DataError(f"`X` must have rows of {self.model.n_features} columns, got {got}")
        return rows

    def predict_spark(self, frame: Any, column: str = "cluster") -> Any:
        """Add the cluster of each row to a Spark data frame, on its workers. The labels are not private.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
            It must have the column names of the release.
        column : str
            Name of the new column.
        """
        from sfumato.curator import holder

        if self.reading is None:
            raise ParameterError("the release must be made from named columns, got one without names")
        return holder.labelled_frame(frame, self.reading, self.domain, self.label, column)

    def predict_files(
        self,
        X: str | os.PathLike[str] | TextTable,
        column: str = "cluster",
        keep: Sequence[str] = (),
        strengths: str | None = None,
    ) -> Iterator[Any]:
        """Clusters of the rows of a table in files, batch by batch. The labels are not private.

        Rows with missing values, and those that the fit would have left out, get no label.

        Parameters
        ----------
        X : path or TextTable
            Files, a folder or a pattern. They must have the column names of the release. Text files are read
            like those of the fit, unless `scan_csv` says how.
        column : str
            Name of the column of labels.
        keep : sequence of str
            Columns of the table to keep.
        strengths : str, optional
            Name of a further column, with what `strengths` returns.

        Returns
        -------
        iterator of pyarrow.RecordBatch
        """
        from sfumato.curator import holder
        from sfumato.curator.tables import column_names

        if self.sparse is not None:
            raise ParameterError("a release of sparse rows labels files with `predict`, not `predict_files`")
        reading = self.reading or Columns(tuple(map(Coordinate, self.columns or column_names(X))))
        if len(reading.coordinates) != self.model.n_features:
            got = len(reading.coordinates)
            raise DataError(f"the files must have {self.model.n_features} columns, got {got}")
        if strengths is not None:
            self._check_spans()
        computed = {} if strengths is None else {strengths: self._strength}
        return holder.labelled_batches(X, reading, self.domain, keep, self.label, column, computed)

    def at(self, n_clusters: int) -> Release:
        """The same release with another number of clusters, from its noisy cells or grid. Spends nothing.

        Profiles are left out: they describe the clusters that were released.

        Parameters
        ----------
        n_clusters : int
            At most the number of cells.
        """
        if not hasattr(self.model, "at"):
            raise ParameterError(f"{self.method} has no cells that could be merged into other clusters")
        model = self.model.at(n_clusters)
        if model is self.model:
            return self
        parameters = self.parameters | {"n_clusters": n_clusters}
        return replace(self, model=model, parameters=parameters, profiles=None)

    def to_geojson(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Clusters over two columns as GeoJSON: spans as polygons, centres as points. Spends nothing.

        Each feature has its label, count and interval. The member ``release`` says where they come from and
        what was promised. With ``metric="geo"`` coordinates are longitude and latitude; otherwise they are x
        and y in the units of the columns, and ``crs`` is null.

        Parameters
        ----------
        path : path, optional
            File to write it to.
        """
        collection = self._export().geojson()
        if path is not None:
            write_whole(path, json.dumps(collection, allow_nan=False))
        return collection

    def to_geoparquet(self, path: str | os.PathLike[str]) -> Path:
        """Write clusters over two columns as GeoParquet, with the contents of `to_geojson`. Spends nothing.

        Parameters
        ----------
        path : path
        """
        from pyarrow.parquet import write_table

        table = self._export().geo_table()
        with whole_file(path, mode=0o644) as temporary:
            write_table(table, temporary)
        return Path(path)

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write a line for each cluster as CSV, over any number of columns. Spends nothing.

        A span has its label, count, interval, size, centroid and bounding box. Other clusters have their
        label, count, interval and centre.

        Parameters
        ----------
        path : path
        """
        return write_whole(path, self._export().csv())

    @property
    def is_in_degrees(self) -> bool:
        """Whether the first two columns are longitude and latitude: the metric is "geo"."""
        return bool(getattr(self.model, "is_in_degrees", False))

    def _export(self) -> Export:
        """What other programs may have."""
        clusters = getattr(self.model, "exported", None)
        if clusters is None or self.sparse is not None:
            got = "sparse rows" if self.sparse is not None else type(self.model).__name__
            raise ParameterError(
                f"an export must have clusters in columns, got {got}. Write a report instead"
            )
        names = self.columns or tuple(str(j + 1) for j in range(self.model.n_features))
        columns = tuple(map(Coordinate, names)) if self.reading is None else self.reading.coordinates
        return Export(clusters, columns, self._origin(), self.is_in_degrees)

    def _origin(self) -> dict[str, Any]:
        """Where an export comes from, and what was promised."""
        facts = {
            "method": self.method,
            "columns": list(self.columns),
            "privacy": self.privacy.summary(),
            "created": self.created,
            "library": f"sfumato {self.library}",
            "sha256": self.checksum(),
        }
        warning = {"warning": SEEDED_WARNING} if self.privacy.seeded else {}
        return {**warning, "release": facts}

    def to_dict(self) -> dict[str, Any]:
        """Contents of the file, without the checksum."""
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "method": self.method,
            "parameters": self.parameters,
            "domain": encode(self.domain),
            "columns": list(self.columns),
            "table": encode(self.reading),
            "model": encode(self.model),
            "profiles": encode(self.profiles),
            **({"terms": encode(self.terms)} if self.terms is not None else {}),
            **self._of_sparse_rows(),
            "privacy": self.privacy.to_dict(),
            "created": self.created,
            "library": self.library,
        }

    def _of_sparse_rows(self) -> dict[str, Any]:
        """What only releases of sparse rows have."""
        if self.sparse is None:
            return {}
        return {"sparse": encode(self.sparse), "column_terms": encode(self.column_terms)}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file under a temporary name and then rename it, so nobody sees half a file."""
        return write_sealed(path, self.to_dict())

    def checksum(self) -> str:
        """SHA-256 of the contents, as in the file."""
        return _checksum(self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Release:
        """Read a file that `save` wrote. The checksum detects accidents, not forgery."""
        content = read_sealed(path, FORMAT, FORMAT_VERSION)
        return cls._from_dict(content, path)

    @classmethod
    def _from_dict(cls, content: dict[str, Any], path: str | os.PathLike[str]) -> Release:
        try:
            release = cls(
                method=content["method"],
                parameters=content["parameters"],
                domain=decode(content["domain"]),
                columns=tuple(content["columns"]),
                model=decode(content["model"]),
                privacy=PrivacyStatement.from_dict(content["privacy"]),
                reading=decode(content["table"]),
                profiles=decode(content.get("profiles")),
                terms=decode(content.get("terms")),
                sparse=decode(content.get("sparse")),
                column_terms=decode(content.get("column_terms")),
                created=content["created"],
                library=content["library"],
            )
            release._check_parts()
            return release
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise ReleaseError(f"{path} is not a complete release: {error}") from None

    def _check_parts(self) -> None:
        """Refuse parts of another type or parts that do not fit together, as a damaged file may hold."""
        if not isinstance(self.domain, Domain) or not hasattr(self.model, "predict"):
            raise ReleaseError("`domain` or `model` is of another type")
        if not isinstance(self.reading, Columns | None) or not isinstance(self.parameters, dict):
            raise ReleaseError("`table` or `parameters` is of another type")
        if not isinstance(self.profiles, Profiles | None):
            raise ReleaseError("`profiles` is of another type")
        if not isinstance(self.terms, Terms | None):
            raise ReleaseError("`terms` is of another type")
        if self.terms is not None and len(self.terms) != self.model.partition.n_cells:
            raise ReleaseError("`terms` are of another number of clusters")
        if not isinstance(self.sparse, Sparse | None):
            raise ReleaseError("`sparse` is of another type")
        if not isinstance(self.column_terms, ColumnTerms | None):
            raise ReleaseError("`column_terms` is of another type")
        if not all(
            isinstance(text, str) for text in (self.method, self.created, self.library, *self.columns)
        ):
            raise ReleaseError("a name is of another type")
        widths = {self.model.n_features, self.domain.n_features, len(self.columns) or self.domain.n_features}
        if self.reading is not None:
            widths.add(len(self.reading.coordinates))
        if self.sparse is not None:
            widths.add(self.sparse.width(self.sparse.n_columns or 0))
        if len(widths) > 1:
            raise ReleaseError("its parts have different numbers of columns")


def write_sealed(path: str | os.PathLike[str], content: dict[str, Any], mode: int = 0o644) -> Path:
    """Write the contents of a file as JSON, with a checksum, as a whole."""
    sealed = content | {"sha256": _checksum(content)}
    with whole_file(path, mode) as temporary:
        temporary.write_text(json.dumps(sealed, indent=1, allow_nan=False), encoding="utf-8")
    return Path(path)


def read_sealed(path: str | os.PathLike[str], form: str, version: int) -> dict[str, Any]:
    """Contents of a file that `write_sealed` wrote, if its `format` and `version` are as expected."""
    what = form.removeprefix("sfumato ")
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        altered = isinstance(content, dict) and content.pop("sha256", None) != _checksum(content)
    except (ValueError, RecursionError):  # not JSON, or with NaN or infinity, which JSON does not allow
        raise ReleaseError(f"{path} is truncated or not a {what} file") from None
    if not isinstance(content, dict) or content.get("format") != form:
        raise ReleaseError(f"{path} is not a {what} file: its `format` is not {form!r}")
    if content.get("version") != version:
        raise ReleaseError(
            f"{path} has version {content.get('version')!r}, this library reads {version}: update sfumato"
        )
    if altered:
        raise ReleaseError(f"{path} was altered after it was written: its checksum does not match")
    return content


def write_whole(path: str | os.PathLike[str], text: str) -> Path:
    """Write a file under a temporary name and then rename it, so nobody sees half a file."""
    with whole_file(path, mode=0o644) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)


@contextmanager
def whole_file(path: str | os.PathLike[str], mode: int = 0o600) -> Iterator[Path]:
    """A temporary name to write to. The file becomes `path` once all of it is on disk, and so is its name.

    Errors and interrupts leave nothing behind. Errors of the disk name `path`. A killed process may leave
    the temporary file, for example ``.release.json.1f9c03ab.json``. Nothing reads it.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        # A rename would replace a device, for example /dev/null.
        raise OSError(EINVAL, "Not a file that could be replaced", str(path))
    # The name is chosen before the file exists, so it is known if an interrupt comes.
    temporary = target.with_name(f".{target.name}.{token_hex(4)}{target.suffix}")
    try:
        temporary.touch(mode=0o600, exist_ok=False)
        yield temporary
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Put the names of a folder on disk. Without it, a power cut can undo a rename.

    Some systems cannot open a folder, and some file systems cannot sync one. They keep names on their own.
    """
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in (EINVAL, ENOTSUP, EBADF):
            raise
    finally:
        os.close(opened)


def _checksum(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
