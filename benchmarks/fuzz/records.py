"""Flower records as bytes, and changes to what they hold: settings in JSON, and arrays."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from contextlib import suppress

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as Proto

from benchmarks.fuzz.mutation import Mutation, deep, npy_bytes
from benchmarks.fuzz.tables import larger, npz

_JSON = "json"
_LARGEST = 2**63 - 1  # of a whole number in a record


def to_bytes(records: RecordDict) -> bytes:
    """As Flower sends it."""
    found: bytes = recorddict_to_proto(records).SerializeToString(deterministic=True)
    return found


def from_bytes(content: bytes) -> RecordDict:
    """Inverse of `to_bytes`."""
    return recorddict_from_proto(Proto.FromString(content))


def changed(source: random.Random, mutation: Mutation, content: bytes) -> bytes:
    """A message with other settings, other arrays or other records."""
    while True:
        records = from_bytes(content)
        for _ in range(source.choice((1, 1, 1, 2, 3))):
            kinds = (_settings, _settings, _arrays, _arrays, _arrays) if source.random() < 0.9 else (_records,)
            source.choice(kinds)(source, mutation, records)
        with suppress(UnicodeEncodeError):  # a text that is none cannot be sent
            return to_bytes(records)


def _settings(source: random.Random, mutation: Mutation, records: RecordDict) -> None:
    """Other JSON in a settings record."""
    named = [name for name, record in records.items() if isinstance(record, ConfigRecord)]
    if not named:
        return
    name = source.choice(named)
    record = dict(records[name])
    if not isinstance(text := record.get(_JSON), str) or source.random() < 0.05:
        key = source.choice((_JSON, *record, mutation.text("json")))
        record[key] = source.choice((1, 2.5, True, b"\xff", "x", -1, [1, 2], ["a"], 2**62, float("nan"), "{}"))
    elif source.random() < 0.03:
        record[_JSON] = source.choice((deep(source), mutation.text(text)))
    else:
        record[_JSON] = json.dumps(_inner(source, mutation, json.loads(text)) if _reads(text) else text)
    records[name] = ConfigRecord(record)


def _reads(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _inner(source: random.Random, mutation: Mutation, value: object) -> object:
    """Changed settings; a feature map among them, which is JSON in JSON, is changed as a tree as often as not."""
    held = value.items() if isinstance(value, dict) else ()
    maps = [key for key, text in held if isinstance(text, str) and text.startswith("{") and _reads(text)]
    if isinstance(value, dict) and maps and source.random() < 0.3:
        key = source.choice(maps)
        return {**value, key: json.dumps(mutation.plain(json.loads(value[key])))}
    return mutation.plain(value)


def _arrays(source: random.Random, mutation: Mutation, records: RecordDict) -> None:
    """One array changed, or put where another was."""
    named = [name for name, record in records.items() if isinstance(record, ArrayRecord) and record]
    if not named:
        return
    name = source.choice(named)
    arrays: dict[str, Array] = dict(records[name])
    key = source.choice(sorted(arrays))
    try:
        array = arrays[key].numpy()
    except Exception:
        array = np.zeros(3)  # what an earlier change has made unreadable
    if not isinstance(array, np.ndarray):
        array = np.zeros(2)
    match source.randrange(10):
        case 0:
            del arrays[key]
        case 1:
            arrays[source.choice((*sorted(arrays), mutation.text(key)))] = arrays.pop(key)
        case 2:
            arrays[source.choice((*sorted(arrays), mutation.text(key)))] = arrays[key]
        case 3:
            arrays[key] = _tampered(source, mutation, array)
        case _:
            arrays[key] = Array(mutation.array(array))
    records[name] = ArrayRecord(arrays)


def _tampered(source: random.Random, mutation: Mutation, array: np.ndarray) -> Array:
    """An array whose bytes are not what they are said to be."""
    content = npy_bytes(array)
    data = source.choice(
        (
            b"",
            content[: source.choice((5, 60, 200))],
            mutation.raw(content),
            larger(source, content),
            npz({"a": array}),
            b"\x80\x04]\x94.",
        )
    )
    kind = source.choice((str(array.dtype), "object", "x", ""))
    return Array(
        dtype=kind,
        shape=source.choice((array.shape, (1,), (2**31 - 1,))),
        stype=source.choice(("numpy.ndarray",) * 9 + ("x",)),
        data=data,
    )


def _records(source: random.Random, mutation: Mutation, records: RecordDict) -> None:
    """A record taken out, or one that should not be there."""
    names = sorted(records)
    name = source.choice((*names, "settings", "arrays", mutation.text("settings")))
    others: Mapping[str, ConfigRecord | MetricRecord | ArrayRecord] = {
        "config": ConfigRecord({"json": "{}"}),
        "metric": MetricRecord({"json": 1.0}),
        "array": ArrayRecord({"json": Array(np.arange(3))}),
        "empty": ConfigRecord({}),
    }
    records.pop(name, None)
    if source.random() < 0.7:
        records[name] = others[source.choice(sorted(others))]
