"""A small table in each format, and changes to its cells, columns and types."""

from __future__ import annotations

import csv
import io
import json
import random
import zipfile
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from benchmarks.fuzz.mutation import Mutation, deep, npy_bytes

ROWS = 40
_ODD_HEADERS = (
    b"\x93NUMPY\x09\x00",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"PAR1",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\x1f\x8b",
    b"",
)
_DESCRIPTION = "description"


_WHOLE = (
    *(pyarrow.int64(), pyarrow.decimal128(38, 2), pyarrow.decimal256(76, 30), pyarrow.timestamp("ns")),
    *(pyarrow.date64(), pyarrow.duration("us"), pyarrow.time64("us")),
)
_REAL = (pyarrow.float64(), pyarrow.float32(), pyarrow.dictionary(pyarrow.int8(), pyarrow.float64()))
_TEXTS = (
    *(pyarrow.string(), pyarrow.large_string(), pyarrow.string_view(), pyarrow.binary()),
    pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
)


def columns() -> dict[str, list[Any]]:
    """Numbers a, b and c, a place, a class and a real label of every row."""
    rng = np.random.default_rng(0)
    found: dict[str, list[Any]] = {name: [round(float(one), 3) for one in rng.normal(size=ROWS)] for name in "abc"}
    found["place"] = [("north", "south, far", 'the "east"')[row % 3] for row in range(ROWS)]
    found["grade"] = ["abc"[row % 3] for row in range(ROWS)]
    found["income"] = [round(float(one), 2) for one in rng.uniform(0, 1, ROWS)]
    return found


def csv_text() -> str:
    """The table as CSV."""
    return _as_csv([[*columns()], *map(list, zip(*columns().values(), strict=True))], ",")


def arrays() -> dict[str, np.ndarray]:
    """The table as the arrays of an npz file."""
    known = columns()
    rows = np.column_stack([known[name] for name in "abc"])
    return {
        "X": rows,
        "y": np.array(known["grade"]),
        "place": np.array(known["place"]),
        "income": np.array(known["income"]),
    }


def arrow() -> pyarrow.Table:
    """The table as Parquet has it."""
    return pyarrow.table(columns())


def npz(found: dict[str, np.ndarray]) -> bytes:
    """Named arrays as an npz file."""
    buffer = io.BytesIO()
    np.savez(buffer, **found)  # type: ignore[arg-type]
    return buffer.getvalue()


def parquet_file(table: pyarrow.Table, **options: Any) -> bytes:
    """A table as a Parquet file."""
    buffer = io.BytesIO()
    parquet.write_table(table, buffer, **options)
    return buffer.getvalue()


def changed_csv(source: random.Random, mutation: Mutation, content: bytes) -> bytes:
    """Other cells, rows and columns, or other characters and encodings."""
    text = content.decode("utf-8", errors="replace")
    if source.random() < 0.3:
        encoding = source.choice(("utf-8", "utf-8-sig", "utf-16", "latin-1", "utf-8"))
        return mutation.text(text).encode(encoding, errors=source.choice(("replace", "ignore")))
    try:
        cells = list(csv.reader(io.StringIO(text)))
    except csv.Error:
        return mutation.raw(content)
    if not cells:
        return mutation.text(text).encode(errors="replace")
    row = source.randrange(len(cells))
    column = source.randrange(max(1, len(cells[row])))
    match source.randrange(9):
        case 0 | 1 | 2 if cells[row]:
            cells[row][column] = str(mutation.leaf())
        case 3:
            for one in cells[1:]:
                one[column : column + 1] = [str(mutation.leaf())] if source.random() < 0.9 else one[column : column + 1]
        case 4:
            cells[row] *= source.choice((0, 2, 50))
        case 5:
            cells = cells[:row] if source.random() < 0.5 else cells * source.choice((2, 100))
        case 6 if cells[0]:
            cells[0][column % len(cells[0])] = source.choice((*cells[0], str(mutation.leaf())))
        case 7:
            for one in cells:
                one.insert(column, one[column] if column < len(one) else "")
        case _:
            return (
                _as_csv(cells, source.choice(",;\t|"))
                .replace("\n", source.choice(("\r\n", "\r", "\n\n")))
                .encode(errors="replace")
            )
    return _as_csv(cells, source.choice((",", ",", ";", "\t"))).encode(errors="replace")


def changed_npz(source: random.Random, mutation: Mutation, content: bytes) -> bytes:
    """Other arrays, names and descriptions, or an archive whose members are no arrays."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            found = {name: array for name in stored.files if isinstance(array := stored[name], np.ndarray)}
    except Exception:
        return mutation.raw(content)  # what is no archive any more is changed as bytes
    if not found:
        return content
    name = source.choice(sorted(found))
    if _DESCRIPTION in found and source.random() < 0.6:
        name = _DESCRIPTION
    kind = source.random()
    if name == _DESCRIPTION and kind < 0.9:
        found[name] = np.array(_description(source, mutation, str(found[name])))
    elif kind < 0.6:
        found[name] = mutation.array(found[name])
    elif kind < 0.7:
        found[str(source.choice((mutation.text(name), *sorted(found))))] = found.pop(name)
    elif kind < 0.75:
        del found[name]
    elif kind < 0.8:
        found[mutation.text(name).replace("/", "")] = found[name]
    else:
        return _odd_archive(source, mutation, found, name)
    try:
        return npz(found)
    except Exception:
        return mutation.raw(content)  # not every name can be written


def changed_parquet(source: random.Random, mutation: Mutation, content: bytes) -> bytes:
    """Other columns, types and names."""
    try:
        table = parquet.read_table(io.BytesIO(content))
        for _ in range(source.choice((1, 1, 2))):
            table = _changed_table(source, mutation, table)
        return parquet_file(table, compression=source.choice(("snappy", "none", "zstd")))
    except Exception:
        return mutation.raw(content)  # what cannot be read or written any more is changed as bytes


def _changed_table(source: random.Random, mutation: Mutation, table: pyarrow.Table) -> pyarrow.Table:
    number = source.randrange(max(1, table.num_columns))
    match source.randrange(7):
        case 0:
            return table.slice(0, source.choice((0, 1, 2)))
        case 1:
            return table.remove_column(number)
        case 2:
            return table.append_column(
                source.choice((*table.column_names, "", "d", "__index_level_0__")), table[number]
            )
        case 3:
            names = [*table.column_names]
            names[number] = mutation.text(names[number])
            return table.rename_columns(names)
        case 4:
            return pyarrow.concat_tables([table] * source.choice((2, 30)))
        case _:
            name = table.column_names[number]
            return table.set_column(number, name, _odd_column(source, table[number]))


def _odd_column(source: random.Random, column: pyarrow.ChunkedArray) -> Any:
    size = len(column)
    number = source.choice((0, 1, -1, 2**31 - 1, 2**62, None))
    whole = [number if source.random() < 0.5 else row for row in range(size)]
    real = [source.choice((0.5, float("nan"), float("inf"), 1e308, 5e-324, None)) for _ in range(size)]
    text = [source.choice(("a", "", "\0", "nan", "1", "\U0001f600", "x" * 1000, None)) for _ in range(size)]
    kinds: tuple[tuple[list[Any], tuple[Any, ...]], ...] = (
        (whole, _WHOLE),
        (real, _REAL),
        (text, _TEXTS),
        ([row % 2 == 0 for row in range(size)], (pyarrow.bool_(),)),
        ([None] * size, (pyarrow.null(),)),
        ([[1.0]] * size, (pyarrow.list_(pyarrow.float64()),)),
        ([{"a": 1}] * size, (pyarrow.struct([("a", pyarrow.int64())]),)),
        ([[("k", 1)]] * size, (pyarrow.map_(pyarrow.string(), pyarrow.int64()),)),
        ([b"ab"] * size, (pyarrow.binary(2),)),
        ([1.0] * size, (pyarrow.float16(),)),
    )
    values, types = source.choice((*kinds[:3], *kinds))
    return pyarrow.array(values, source.choice(types))


def _description(source: random.Random, mutation: Mutation, text: str) -> str:
    if source.random() < 0.05:
        return deep(source)
    try:
        changed = mutation.plain(json.loads(text))
        for _ in range(source.choice((0, 0, 1))):
            inner = source.choice(changed["feature_maps"])
            changed["feature_maps"] = [json.dumps(mutation.plain(json.loads(inner)))]
        return json.dumps(changed)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return mutation.text(text)


def _odd_archive(source: random.Random, mutation: Mutation, found: dict[str, np.ndarray], name: str) -> bytes:
    """An archive as numpy does not write it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", source.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for other, array in found.items():
            content = npy_bytes(array)
            if other == name:
                match source.randrange(5):
                    case 0:
                        content = mutation.raw(content)
                    case 1:
                        content = larger(source, content)
                    case 2:
                        content = source.choice(_ODD_HEADERS) + content[8:]
                    case 3:
                        content = b"\0" * (1 << source.choice((10, 24)))
                    case _:
                        content = content[: source.choice((0, 6, 10, 64))]
            archive.writestr(f"{other}{source.choice(('.npy', '.npy', '.npy', '', '.txt'))}", content)
    return buffer.getvalue()


def larger(source: random.Random, content: bytes) -> bytes:
    """An npy file whose header promises more than it holds, or other things than numbers."""
    size = max(10, 10 + int.from_bytes(content[8:10], "little"))
    shape = source.choice(((2**40,), (10**6, 10**6), (2**62, 4), (-1,), (3, 0), (1.5,), "x"))
    kind = source.choice(("<f8", "<f8", "|O", "<U1000000", "|V8", [("a", "<f8")], "<i99", "|b1"))
    described = {"descr": kind, "fortran_order": source.choice((False, True, 0)), "shape": shape}
    header = f"{described!r}".encode().ljust(size - 11)[: size - 11] + b"\n"
    return content[:10] + header + content[size:]


def _as_csv(cells: list[list[Any]], separator: str) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator, lineterminator="\n").writerows(cells)
    return buffer.getvalue()
