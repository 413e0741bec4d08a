"""Between the project's messages and Flower's records: arrays as arrays, everything else as one line of JSON.

A question is any frozen dataclass of arrays, JSON values, feature maps and further such dataclasses; its type
hints say how to read it back. Nothing is ever unpickled, and an undeclared or missing part is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from functools import cache
from typing import Any, TypeVar, get_type_hints

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from federation.digest import digest
from federation.errors import InputError
from federation.features import FeatureMap
from federation.grids.packing import pack, packed_length, unpack
from federation.guarantee import Guarantee
from federation.messages import Field, Question, Submission

Q = TypeVar("Q")

# The latest question of each type: an own grid hands the same records to all nodes of a process, which then need to be
# read once.
_latest: dict[Any, tuple[RecordDict, Any]] = {}


def _records(settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> RecordDict:
    record = ArrayRecord({name: Array(np.ascontiguousarray(array)) for name, array in arrays.items()})
    return RecordDict({"settings": ConfigRecord({"json": json.dumps(settings)}), "arrays": record})


def _parts(records: RecordDict) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        settings = json.loads(str(records["settings"]["json"]))
        arrays = {str(name): array.numpy() for name, array in records["arrays"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"a message cannot be read: {error}") from error
    if not isinstance(settings, dict):
        raise InputError("a message's settings must be one JSON object")
    return settings, arrays


def _flatten(message: Any, prefix: str, settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    for declared in dataclass_fields(message):
        name, value = prefix + declared.name, getattr(message, declared.name)
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif isinstance(value, FeatureMap):
            settings[name], parts = value.to_arrays()
            arrays.update({f"{name}.{part}": array for part, array in parts.items()})
        elif is_dataclass(value):
            _flatten(value, name + ".", settings, arrays)
        else:
            settings[name] = value


@cache
def _hints(cls: Any) -> dict[str, Any]:
    """Types of a dataclass's fields, class variables not."""
    declared = {field.name for field in dataclass_fields(cls)}
    return {name: hint for name, hint in get_type_hints(cls).items() if name in declared}


def _rebuild(cls: Any, prefix: str, settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    values: dict[str, Any] = {}
    for name, hint in _hints(cls).items():
        full = prefix + name
        if hint is np.ndarray:
            values[name] = arrays[full]
        elif hint is FeatureMap:
            parts = {key[len(full) + 1 :]: array for key, array in arrays.items() if key.startswith(full + ".")}
            values[name] = FeatureMap.from_arrays(settings[full], parts)
        elif is_dataclass(hint):
            values[name] = _rebuild(hint, full + ".", settings, arrays)
        else:
            values[name] = settings[full]
    return cls(**values)


def _contents(question: Question) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    settings: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    _flatten(question, "", settings, arrays)
    return settings, arrays


def encode_question(question: Question) -> RecordDict:
    """One question as Flower records; the same object may go to every node."""
    settings, arrays = _contents(question)
    return _records(settings, arrays)


def question_digest(question: Question) -> str:
    """Equal for questions of one kind that ask the same."""
    settings, arrays = _contents(question)
    return digest(f"{question.kind}|{json.dumps(settings, sort_keys=True)}", arrays)


def decode_question(records: RecordDict, question_type: type[Q]) -> Q:
    """Inverse of `encode_question`. Raises `InputError` when a part is missing or malformed."""
    known, question = _latest.get(question_type, (None, None))
    if known is not records:
        settings, arrays = _parts(records)
        try:
            question = _rebuild(question_type, "", settings, arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"a {question_type.__name__} cannot be read: {error!r}") from error
        _latest[question_type] = (records, question)
    return question


def _to_wire(values: np.ndarray, declared: Field) -> np.ndarray:
    return values if declared.levels is None else pack(values, declared.levels)


def _from_wire(values: np.ndarray, declared: Field) -> np.ndarray:
    if declared.levels is None:
        return values
    expected = (len(values), packed_length(declared.levels, declared.shape[0]))
    if values.dtype != declared.dtype or values.shape != expected:
        raise InputError(f"a packed field must be {declared.dtype} of shape {expected}, got {values.shape}")
    return unpack(values, declared.levels, declared.shape[0])


def encode_submission(submission: Submission, fields: dict[str, Field]) -> RecordDict:
    """A submission as Flower records: the declared fields, party ids, failures, its guarantee, nothing else."""
    arrays = {name: _to_wire(submission.arrays[name], declared) for name, declared in fields.items()}
    settings = {
        "kind": submission.kind,
        "failures": {str(party): reason for party, reason in submission.failures.items()},
        "guarantee": None if submission.guarantee is None else submission.guarantee.to_dict(),
    }
    return _records(settings, {**arrays, "parties": submission.parties})


def decode_submission(records: RecordDict, fields: dict[str, Field]) -> Submission:
    """Inverse of `encode_submission`. Raises `InputError` on missing, undeclared or malformed parts."""
    settings, arrays = _parts(records)
    if set(arrays) != {*fields, "parties"} or set(settings) != {"kind", "failures", "guarantee"}:
        raise InputError(f"an answer carries {sorted(arrays)}, expected {sorted([*fields, 'parties'])}")
    parties = arrays.pop("parties")
    unpacked = {name: _from_wire(arrays[name], declared) for name, declared in fields.items()}
    guarantee = None if settings["guarantee"] is None else Guarantee.from_dict(settings["guarantee"])
    failures = {int(party): str(reason) for party, reason in settings["failures"].items()}
    return Submission(settings["kind"], parties, unpacked, guarantee, failures)


def merge_submissions(parts: Sequence[RecordDict], failures: Mapping[int, str]) -> RecordDict:
    """Encoded submissions of disjoint cohorts to one question as one, with further failures; at least one part."""
    read = [_parts(part) for part in parts]
    arrays = {name: np.concatenate([arrays[name] for _, arrays in read]) for name in read[0][1]}
    settings = dict(read[0][0])
    settings["failures"] = {str(party): reason for party, reason in failures.items()}
    for known, _ in read:
        settings["failures"].update(known["failures"])
    return _records(settings, arrays)


def bytes_per_party(fields: dict[str, Field]) -> int:
    """Bytes that one party's answer occupies on the wire, its 8-byte id included, message overhead not."""
    total = 8
    for declared in fields.values():
        entries = int(np.prod(declared.shape, dtype=np.int64))
        if declared.levels is not None:
            entries = packed_length(declared.levels, entries)
        total += entries * declared.dtype.itemsize
    return total
