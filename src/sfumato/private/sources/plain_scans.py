"""Spark frames that only choose columns and rows of Parquet files: workers can read these files themselves.

The plan of a frame and the schemas of its files decide, never a row. Whatever is not known to be read alike
by Spark and by pyarrow is left to Spark.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs

from sfumato.errors import DataError
from sfumato.private.sources.files import FileSource
from sfumato.private.sources.paths import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Condition: TypeAlias = tuple[Any, ...]  # an operation, then conditions, or the name of a column and a value

_CATALYST = "org.apache.spark.sql.catalyst."
_EXECUTION = "org.apache.spark.sql.execution.datasources."
_PARQUET = _EXECUTION + "parquet.ParquetFileFormat"  # and no class derived from it, such as Delta's
_LOCATION = _EXECUTION + "InMemoryFileIndex"
# Types that Spark and pyarrow read alike, by Spark's names.
_TYPES = {
    '"byte"': (pa.int8(),),
    '"short"': (pa.int16(),),
    '"integer"': (pa.int32(),),
    '"long"': (pa.int64(),),
    '"float"': (pa.float32(),),
    '"double"': (pa.float64(),),
    '"boolean"': (pa.bool_(),),
    '"string"': (pa.string(), pa.large_string()),
}
# Options of a reader that decide which files there are, and nothing else: Spark has listed them already.
_OPTIONS = {"path", "paths", "recursivefilelookup", "pathglobfilter", "modifiedbefore", "modifiedafter"}
# Settings with which Spark may read files that it would refuse, or other columns of them.
_SETTINGS = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.mergeSchema",
    "spark.sql.parquet.fieldId.read.enabled",
)


@dataclass(frozen=True)
class PlainScan:
    """Columns of files under the names of a frame, and the condition that its rows meet.

    Parameters
    ----------
    columns : dict
        Names in the files by the names of the frame.
    condition : tuple, optional
    """

    columns: dict[str, str]
    condition: Condition | None

    @property
    def read(self) -> list[str]:
        """Columns that must be read."""
        return sorted({*self.columns.values(), *(_columns_in(self.condition) if self.condition else ())})

    def applied(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows and columns of the frame in a batch of the files."""
        if self.condition is not None:
            batch = batch.filter(met(self.condition, batch))  # null drops a row, as in Spark
        arrays = [batch.column(name) for name in self.columns.values()]
        return pa.record_batch(arrays, names=list(self.columns))


class _OtherError(Exception):
    """The frame is not a plain scan."""


def plain_scan(frame: DataFrame, names: list[str]) -> tuple[FileSource, PlainScan] | None:
    """The files of a frame and what it takes of them, or None if Spark must compute it."""
    if not type(frame).__module__.startswith("pyspark.sql.classic."):
        return None  # Spark Connect shows no plan
    from py4j.protocol import Py4JError

    try:
        settings = frame.sparkSession.conf
        if any(str(settings.get(name)) != "false" for name in _SETTINGS):
            return None
        return _found(frame._jdf.queryExecution().optimizedPlan(), names)
    except (_OtherError, DataError, Py4JError, pa.ArrowException, OSError):
        return None


def _found(plan: Any, names: list[str]) -> tuple[FileSource, PlainScan]:
    conditions: list[Condition] = []
    relation, attributes = _walked(plan, conditions)
    found = [attributes[attribute.exprId().id()] for attribute in _listed(plan.output())]
    condition = None
    for one in conditions:
        condition = one if condition is None else ("and", condition, one)
    scan = PlainScan({name: column for name, (column, _) in zip(names, found, strict=True)}, condition)
    types = {field.name(): field.dataType().json() for field in _listed(relation.dataSchema().toSeq())}
    partitions = {field.name() for field in _listed(relation.partitionSchema().toSeq())}
    if partitions & set(scan.read) or not scan.read:
        raise _OtherError
    source = FileSource.at(_files(relation.location().inputFiles()))
    for fragment in source.dataset.get_fragments():
        for column in scan.read:
            _check_alike(fragment.physical_schema, column, types[column])
    return source, scan


def _walked(node: Any, conditions: list[Condition]) -> tuple[Any, dict[int, tuple[str, str]]]:
    """The relation under a plan, and for each attribute the name in the files and Spark's type."""
    kind = _kind(node)
    if kind == _EXECUTION + "LogicalRelation":
        relation = node.relation()
        options = {str(pair._1()).lower() for pair in _listed(relation.options().toSeq())}
        if (
            _kind(relation) != _EXECUTION + "HadoopFsRelation"
            or _kind(relation.fileFormat()) != _PARQUET
            or _kind(relation.location()) != _LOCATION
            or not options <= _OPTIONS
        ):
            raise _OtherError
        return relation, {
            one.exprId().id(): (one.name(), one.dataType().json()) for one in _listed(node.output())
        }
    if kind == _CATALYST + "plans.logical.Filter":
        relation, attributes = _walked(node.child(), conditions)
        conditions.append(_condition(node.condition(), attributes))
        return relation, attributes
    if kind != _CATALYST + "plans.logical.Project":
        raise _OtherError
    relation, attributes = _walked(node.child(), conditions)
    given = {}
    for one in _listed(node.projectList()):
        inner = one.child() if _kind(one) == _CATALYST + "expressions.Alias" else one
        given[one.exprId().id()] = _attribute(inner, attributes)
    return relation, given


def _condition(node: Any, attributes: dict[int, tuple[str, str]]) -> Condition:
    """A condition of Spark's in our terms."""
    kind = _kind(node).removeprefix(_CATALYST + "expressions.")
    if kind in ("And", "Or"):
        return kind.lower(), _condition(node.left(), attributes), _condition(node.right(), attributes)
    if kind == "Not":
        return "not", _condition(node.child(), attributes)
    if kind in ("IsNull", "IsNotNull"):
        return kind, _attribute(node.child(), attributes)[0]
    if kind in _COMPARISONS:
        return _comparison(kind, node.left(), node.right(), attributes)
    if kind == "In":
        found: Condition | None = None
        for value in _listed(node.list()):
            one = _comparison("EqualTo", node.value(), value, attributes)
            found = one if found is None else ("or", found, one)
        if found is not None:
            return found
    name, kind = _attribute(node, attributes)
    if kind != '"boolean"':
        raise _OtherError
    return "EqualTo", name, True


def _comparison(kind: str, left: Any, right: Any, attributes: dict[int, tuple[str, str]]) -> Condition:
    """A column compared with a value of its type."""
    if _kind(left) == _CATALYST + "expressions.Literal":
        left, right, kind = right, left, _MIRRORED.get(kind, kind)
    name, spark_type = _attribute(left, attributes)
    if _kind(right) != _CATALYST + "expressions.Literal" or right.dataType().json() != spark_type:
        raise _OtherError
    value = right.value()
    value = str(value) if spark_type == '"string"' and value is not None else value
    if value is None or spark_type not in _TYPES or (isinstance(value, float) and math.isnan(value)):
        raise _OtherError
    return kind, name, value


def met(condition: Condition, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Whether the rows of a batch meet a condition by Spark's rules: NaN is larger than all numbers."""
    kind, *parts = condition
    if kind in ("and", "or"):
        both = pc.and_kleene if kind == "and" else pc.or_kleene
        return both(met(parts[0], batch), met(parts[1], batch))
    if kind == "not":
        return pc.invert(met(parts[0], batch))
    column = batch.column(parts[0])
    if kind in ("IsNull", "IsNotNull"):
        return column.is_null() if kind == "IsNull" else column.is_valid()
    found = _COMPARISONS[kind](column, pa.scalar(parts[1], column.type))
    if kind in ("GreaterThan", "GreaterThanOrEqual") and pa.types.is_floating(column.type):
        return pc.or_(found, pc.is_nan(column))
    return pc.fill_null(found, False) if kind == "EqualNullSafe" else found


_COMPARISONS = {
    "EqualTo": pc.equal,
    "EqualNullSafe": pc.equal,
    "LessThan": pc.less,
    "LessThanOrEqual": pc.less_equal,
    "GreaterThan": pc.greater,
    "GreaterThanOrEqual": pc.greater_equal,
}
_MIRRORED = {
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
}


def _columns_in(condition: Condition) -> Iterator[str]:
    for part in condition[1:]:
        if isinstance(part, tuple):
            yield from _columns_in(part)
    if condition[0] not in ("and", "or", "not"):
        yield condition[1]


def _attribute(node: Any, attributes: dict[int, tuple[str, str]]) -> tuple[str, str]:
    if _kind(node) != _CATALYST + "expressions.AttributeReference":
        raise _OtherError
    found = attributes.get(node.exprId().id())
    if found is None:
        raise _OtherError
    return found


def _files(uris: list[str]) -> Files:
    """Files on disks that all workers see. In object stores, Hadoop has other keys than pyarrow."""
    places = [urlsplit(uri) for uri in uris]
    if not places or any(place.scheme != "file" or place.netloc for place in places):
        raise _OtherError
    paths = tuple(unquote(place.path) for place in places)
    return Files("the Spark data frame", paths, "parquet", pa.fs.LocalFileSystem(), "", folders_say=False)


def _check_alike(schema: pa.Schema, name: str, spark_type: str) -> None:
    """Raise unless pyarrow reads a column as Spark does, which does not tell capitals from small letters."""
    same = [one for one in schema.names if one.lower() == name.lower()]
    if same != [name] or schema.field(name).type not in _TYPES.get(spark_type, ()):
        raise _OtherError


def _kind(thing: Any) -> str:
    return str(thing.getClass().getName())


def _listed(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]
