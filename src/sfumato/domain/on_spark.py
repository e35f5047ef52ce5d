"""Tables in files that the workers of a Spark session read. Declarations only: nothing here reads a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from sfumato.domain.text import TextTable
from sfumato.errors import ParameterError


@dataclass(frozen=True, eq=False)
class TableOnSpark:
    """A table in files, and the Spark session whose workers read it, see `on_spark`.

    Parameters
    ----------
    table : path or TextTable
    spark : SparkSession
    """

    table: str | os.PathLike[str] | TextTable
    spark: Any


def on_spark(X: str | os.PathLike[str] | TextTable, spark: Any) -> TableOnSpark:
    """Let the workers of a Spark session read a table in files, to pass to a fit. Nothing is read yet.

    Workers read the files themselves, as a fit without Spark would: no row passes the JVM. All of them must
    see the files at the same path, on a shared disk or in an object store ("s3://...", "gs://...").

    Parameters
    ----------
    X : path or scan_csv
        A file, a folder or a pattern (Parquet, Feather, CSV).
    spark : SparkSession
        Classic or Connect.

    Examples
    --------
    >>> table = on_spark("trips/", spark)  # doctest: +SKIP
    >>> GridKMeans(10, bounds=estimate_bounds(table)).fit(table)  # doctest: +SKIP
    """
    if not isinstance(X, str | os.PathLike | TextTable):
        raise ParameterError(
            f"`X` must be a path or `scan_csv` if Spark is to read it, got {type(X).__name__}. A Spark data "
            "frame needs no session"
        )
    if not type(spark).__module__.startswith("pyspark.sql."):
        raise ParameterError(f"`spark` must be a SparkSession, got {type(spark).__name__}")
    return TableOnSpark(X, spark)
