"""The readings of an evidence bundle as one Parquet table: a row for each series with `query`, `labels` (JSON) and `values` over the grid.

Apart from the file around it because pyarrow takes a third of a second to load, which whoever asks a live source never needs.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from obs.bundle_file import Series

LARGEST_VALUES = 60_000_000  # figures in one bundle: 31 days of 500 replicas


class TooLargeError(Exception):
    """More figures than any bundle holds."""


def packed(rows: Sequence[Series], count: int) -> bytes:
    """The table's bytes: `rows` in the order of the queries, each series `count` steps long."""
    number = np.array([i for i, (labels, _) in enumerate(rows) for _ in labels], dtype=np.int32)
    labels = [orjson.dumps(row, option=orjson.OPT_SORT_KEYS) for found, _ in rows for row in found]
    values = np.concatenate([*(found.ravel() for _, found in rows), np.empty(0)])
    starts = np.arange(len(number) + 1, dtype=np.int32) * np.int32(count)
    columns = [
        _array(pa.int32(), len(number), number),
        _array(pa.string(), len(labels), np.cumsum([0, *map(len, labels)], dtype=np.int32), b"".join(labels)),
        pa.ListArray.from_arrays(_array(pa.int32(), len(starts), starts), _array(pa.float64(), len(values), values)),
    ]
    body = io.BytesIO()
    table = pa.Table.from_arrays(columns, names=["query", "labels", "values"])
    pq.write_table(table, body, compression="zstd", compression_level=9, row_group_size=1 << 20)
    return body.getvalue()


def unpacked(content: bytes, queries: int, count: int) -> list[Series]:
    """The series of each of so many queries. Raises ValueError for what is no such table, TooLargeError."""
    try:
        return _read(content, queries, count)
    except pa.ArrowException as error:
        raise ValueError("not a table") from error


def _read(content: bytes, queries: int, count: int) -> list[Series]:
    file = pq.ParquetFile(pa.BufferReader(content))
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    figures = sum(max((group.column(j).num_values for j in range(group.num_columns)), default=0) for group in groups)
    if figures > LARGEST_VALUES or sum(group.total_byte_size for group in groups) > 8 * LARGEST_VALUES + (64 << 20):
        raise TooLargeError
    table = file.read(columns=["query", "labels", "values"]).combine_chunks()
    kinds = (table.schema.field("query").type, table.schema.field("labels").type, table.schema.field("values").type)
    if kinds != (pa.int32(), pa.string(), pa.list_(pa.float64())):
        raise ValueError("columns of another kind")
    if any(column.null_count for column in table.columns):
        raise ValueError("a cell without a value")
    numbers = np.asarray(table["query"].to_pylist(), dtype=np.int64)
    if set(pc.list_value_length(table["values"]).to_pylist()) - {count}:
        raise ValueError("a series is not as long as the grid")
    flat = pa.concat_arrays([*pc.list_flatten(table["values"]).chunks, _array(pa.float64(), 0, b"")])
    if flat.null_count:
        raise ValueError("a figure without a value")
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < queries):
        raise ValueError("a series of no query")
    grid = np.array(np.from_dlpack(flat)).reshape(len(numbers), count)  # not to_numpy, which loads pandas
    labels = [_labels(text) for text in table["labels"].to_pylist()]
    found = [np.flatnonzero(numbers == i) for i in range(queries)]
    return [(tuple(labels[i] for i in rows), grid[rows]) for rows in found]


def _array(kind: object, length: int, *buffers: object) -> pa.Array:
    """An array over buffers as they are: pyarrow's own conversions load pandas."""
    return pa.Array.from_buffers(kind, length, [None, *(pa.py_buffer(buffer) for buffer in buffers)])


def _labels(text: str) -> dict[str, str]:
    labels = orjson.loads(text)
    if not isinstance(labels, Mapping) or not all(isinstance(v, str) for v in labels.values()):
        raise ValueError("labels that are none")
    return dict(labels)
