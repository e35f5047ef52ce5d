"""Sparse rows from Arrow columns of lists: each row by its own lists and public declarations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.domain import FloatArray, IntArray
from sfumato.domain.sparse import Sparse
from sfumato.errors import DataError
from sfumato.private.active import Entries
from sfumato.private.reading import Batch, column_of


def read_entries(sparse: Sparse, batch: Batch) -> Entries:
    """Entries of the rows of a batch.

    A row is not known if one of its lists is missing, or if its two lists differ in length. A missing column
    becomes -1 and a missing value NaN: such a row is incomplete.
    """
    lists = [_as_list(name, column_of(batch, name)) for name in sparse.list_names]
    known = np.ones(batch.num_rows, dtype=np.bool_)
    for column in lists:
        known &= column.is_valid().to_numpy(zero_copy_only=False)
    if len(lists) == 2:
        lengths = [_offsets(column)[1:] - _offsets(column)[:-1] for column in lists]
        known &= lengths[0] == lengths[1]
        offsets = np.append(0, np.cumsum(np.where(known, lengths[0], 0)))
        children = [column.filter(pa.array(known)).flatten() for column in lists]
    else:
        offsets, children = _offsets(lists[0]), [lists[0].values]
        if pa.types.is_struct(children[0].type):
            children = [pc.struct_field(children[0], [place]) for place in (0, 1)]
    columns = _integers(sparse.list_names[0], children[0])
    values = _floats(sparse.list_names[-1], children[1]) if len(children) == 2 else None
    return Entries(offsets[:-1], offsets[1:], columns, values, known)


def _as_list(name: str, column: Any) -> Any:
    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        return column.cast(pa.large_list(kind.value_type))
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise _refusal(name, kind)
    if pa.types.is_struct(kind.value_type) and kind.value_type.num_fields != 2:
        raise _refusal(name, kind)
    return column


def _offsets(column: Any) -> IntArray:
    found: IntArray = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _integers(name: str, child: Any) -> IntArray:
    if not (pa.types.is_integer(child.type) or pa.types.is_null(child.type)):
        raise _refusal(name, child.type)
    found: IntArray = child.cast(pa.int64(), safe=False).fill_null(-1).to_numpy(zero_copy_only=False)
    return found


def _floats(name: str, child: Any) -> FloatArray:
    kind = child.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not (is_number or pa.types.is_null(kind)):
        raise _refusal(name, kind)
    numbers = child.cast(pa.int8()) if pa.types.is_boolean(kind) else child
    found: FloatArray = numbers.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found


def _refusal(name: str, kind: pa.DataType) -> DataError:
    return DataError(
        f"column {name!r} must hold lists of integers, or of pairs of an integer and a number, or be one of "
        f"two columns with lists of integers and of numbers, got {kind}. Use an Arrow table"
    )
