"""Conversion of queries and responses to Flower's records and back, for both ends of a transport.

Arrays stay arrays, and all other values become one JSON line. A query is any frozen dataclass of arrays, JSON values,
feature maps and further such dataclasses. Its type hints say how the receiver reads it back. The receiver refuses
values of other types, undeclared parts and missing parts. It never unpickles anything.

`pack` stores votes with 1, 2, 4 or 8 bits per entry and whole bytes per party.
"""

import io
import json
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from functools import cache, lru_cache
from typing import Any, TypeVar, get_origin, get_type_hints

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee
from federation.contract.npz_files import DAMAGED, fills, header
from federation.contract.query import Field, Question, Submission
from federation.contract.randomness import digest
from federation.contract.validation import typed
from federation.features.feature_map import FeatureMap

Q = TypeVar("Q", bound=Question)

_LENGTH = slice(8, 10)  # where an npy file of version 1, as numpy writes numbers, says how long its header is
_STORED = Array.from_numpy_ndarray(np.empty(0)).stype  # how Flower calls such a file

# Questions that have been read, by type and id of their records, for as long as these live: an own grid hands the same
# records to all nodes of a process, and then they need to be read once.
_read_before: dict[tuple[Any, int], Any] = {}


def _records(settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> RecordDict:
    record = ArrayRecord(
        {name: Array.from_numpy_ndarray(np.ascontiguousarray(array)) for name, array in arrays.items()}
    )
    return RecordDict({"settings": ConfigRecord({"json": json.dumps(settings)}), "arrays": record})


def _parts(records: RecordDict) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        settings = json.loads(str(records["settings"]["json"]))
        arrays = {str(name): _read(array) for name, array in records["arrays"].items()}
    except DAMAGED as error:
        raise InputError(f"a message cannot be read: {error!r:.200}") from error
    if not isinstance(settings, dict):
        raise InputError("a message's settings must be one JSON object")
    return settings, arrays


def _read(array: Array) -> np.ndarray:
    """An array as it was sent. Raises `ValueError` for one whose bytes are not those that its header promises.

    A header of a few bytes can promise any number of terabytes, which numpy would allocate before it misses them.
    """
    data = array.data
    shape, by_column, dtype, end = _declared(data[: _LENGTH.stop + int.from_bytes(data[_LENGTH], "little")])
    there = len(data) - end
    if array.stype != _STORED or dtype.hasobject or not fills(shape, dtype, there):
        raise ValueError(f"an array of {dtype} and shape {shape!s:.80} came with {there} bytes of {array.stype!s:.80}")
    values = np.frombuffer(data, dtype, offset=end) if there else np.empty(0, dtype)
    return values.reshape(shape, order="F" if by_column else "C").copy(order="K")


@lru_cache(maxsize=256)
def _declared(start: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """What the header of an npy file declares, and where it ends: that of most messages is one of a few."""
    sent = io.BytesIO(start)
    return *header(sent), sent.tell()


def parts_of(message: Any, prefix: str = "") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return all that a question, or a part of one, consists of, by dotted name: plain values, and arrays."""
    settings: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    for declared in dataclass_fields(message):
        name, value = prefix + declared.name, getattr(message, declared.name)
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif isinstance(value, FeatureMap):
            settings[name], parts = value.to_arrays()
            arrays.update({f"{name}.{part}": array for part, array in parts.items()})
        elif is_dataclass(value):
            further = parts_of(value, name + ".")
            settings.update(further[0])
            arrays.update(further[1])
        else:
            settings[name] = value
    return settings, arrays


@cache
def _hints(cls: Any) -> dict[str, Any]:
    """Types of a dataclass's fields, class variables not."""
    declared = {field.name for field in dataclass_fields(cls)}
    return {name: hint for name, hint in get_type_hints(cls).items() if name in declared}


def _rebuild(cls: Any, prefix: str, settings: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    values: dict[str, Any] = {}
    for name, hint in _hints(cls).items():
        full = prefix + name
        if np.ndarray in (hint, get_origin(hint)):
            values[name] = arrays[full]
        elif hint is FeatureMap:
            parts = {key[len(full) + 1 :]: arrays[key] for key in arrays if key.startswith(full + ".")}
            values[name] = found = FeatureMap.from_arrays(settings[full], parts)
            if json.loads(found.to_arrays()[0]) != json.loads(settings[full]):
                raise ValueError(f"the steps of {full} have undeclared parts")
        elif is_dataclass(hint):
            values[name] = _rebuild(hint, full + ".", settings, arrays)
        else:
            values[name] = typed(hint, settings[full], full)
    return cls(**values)


def encode_question(question: Question) -> RecordDict:
    """One question as Flower records; the same object may go to every node."""
    return _records(*parts_of(question))


def question_digest(question: Question) -> str:
    """Equal for questions of one kind that ask the same."""
    settings, arrays = parts_of(question)
    return digest(f"{question.kind}|{json.dumps(settings, sort_keys=True)}", arrays)


def declared_parts(question_type: Any, prefix: str = "") -> tuple[str, ...]:
    """The dotted names of all that questions of a type consist of; those of a feature map stand for its parts.

    Examples:
        >>> from federation.queries.bags import CountsQuestion
        >>> declared_parts(CountsQuestion)[-2:]
        ('bags.classes', 'bags.rows_per_person')
    """
    found: list[str] = []
    for name, hint in _hints(question_type).items():
        whole = is_dataclass(hint) and hint is not FeatureMap
        found += declared_parts(hint, f"{prefix}{name}.") if whole else [prefix + name]
    return tuple(found)


def read_again(question: Q, changes: Mapping[str, Any]) -> Q:
    """The question as it would be read with other plain values. Raises `InputError` as `decode_question`."""
    settings, arrays = parts_of(question)
    return decode_question(_records({**settings, **changes}, arrays), type(question))


def decode_question(records: RecordDict, question_type: type[Q]) -> Q:
    """Inverse of `encode_question`. Raises `InputError` when a part is missing or malformed.

    This is where a question crosses into a party: whatever it claims to be, each value is checked against the type that
    the question's class declares, and a part that the class does not declare is refused.

    Examples:
        >>> from federation.contract.query import ReleaseId
        >>> from federation.queries.bags import Bags, CountsNoise, CountsQuestion
        >>> question = CountsQuestion(CountsNoise("pure", 1.0), Bags(2, 3), release=ReleaseId("a release"))
        >>> decode_question(encode_question(question), CountsQuestion) == question
        True
        >>> read_again(question, {"draws": "many"})
        Traceback (most recent call last):
        federation.contract.errors.InputError: a CountsQuestion cannot be read:
        TypeError("draws must be int, got 'many'")
    """
    key = question_type, id(records)
    if key not in _read_before:
        settings, arrays = _parts(records)
        for name, array in arrays.items():
            if array.dtype.kind not in "biuf":
                raise InputError(
                    f"a {question_type.__name__} cannot be read: {name} must be numbers, got {array.dtype}"
                )
        try:
            question = _rebuild(question_type, "", settings, arrays)
            declared = parts_of(question)  # what the question would be sent as, and so has been read
            if strays := sorted((set(settings) - set(declared[0])) | (set(arrays) - set(declared[1]))):
                raise ValueError(f"it has undeclared parts {', '.join(strays):.200}")
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(f"a {question_type.__name__} cannot be read: {error!r}") from error
        _read_before[key] = question
        weakref.finalize(records, _read_before.pop, key).atexit = False
    decoded: Q = _read_before[key]
    return decoded


def _from_wire(values: np.ndarray, declared: Field) -> np.ndarray:
    if declared.levels is None:
        return values
    expected = (values.shape[:1] or (0,)) + (packed_length(declared.levels, declared.shape[0]),)
    if values.dtype != declared.dtype or values.shape != expected:
        raise InputError(f"a packed field must be {declared.dtype} of shape {expected}, got {values.shape}")
    return unpack(values, declared.levels, declared.shape[0])


def encode_submission(submission: Submission, fields: dict[str, Field]) -> RecordDict:
    """A submission as Flower records: the declared fields, party ids, failures, its guarantee, nothing else."""
    sent = [(name, declared.levels, submission.arrays[name]) for name, declared in fields.items()]
    arrays = {name: values if levels is None else pack(values, levels) for name, levels, values in sent}
    settings = {
        "kind": submission.kind,
        "failures": {str(party): reason for party, reason in submission.failures.items()},
        "guarantee": None if submission.guarantee is None else submission.guarantee.to_dict(),
    }
    return _records(settings, {**arrays, "parties": submission.parties})


def decode_submission(records: RecordDict, fields: dict[str, Field]) -> Submission:
    """Inverse of `encode_submission`. Raises `InputError` on missing, undeclared or malformed parts.

    This is where an answer crosses to the aggregator; shapes and values are for `check_submission` and the collectors.

    Examples:
        >>> fields = {"votes": Field((4,), levels=3)}
        >>> sent = Submission("votes", np.array([7]), {"votes": np.array([[2, 0, 1, 2]], dtype=np.uint8)})
        >>> encode_submission(sent, fields)["arrays"]["votes"].numpy()  # of two bits each
        array([[146]], dtype=uint8)
        >>> decode_submission(encode_submission(sent, fields), fields).arrays["votes"]
        array([[2, 0, 1, 2]], dtype=uint8)
    """
    settings, arrays = _parts(records)
    if set(arrays) != {*fields, "parties"} or set(settings) != {"kind", "failures", "guarantee"}:
        raise InputError(f"an answer carries {sorted(arrays)}, expected {sorted([*fields, 'parties'])}")
    parties = arrays.pop("parties")
    unpacked = {name: _from_wire(arrays[name], declared) for name, declared in fields.items()}
    guarantee = None if settings["guarantee"] is None else Guarantee.from_dict(settings["guarantee"])
    try:
        failures = {int(party): str(reason) for party, reason in settings["failures"].items()}
    except (ValueError, AttributeError) as error:
        raise InputError(f"the failures of an answer must be causes by party: {error!r:.200}") from error
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
    """Bytes that one party's answer occupies on the wire, its 8-byte id included, message overhead not.

    Examples:
        >>> bytes_per_party({"votes": Field((1000,), levels=2)}), bytes_per_party({"means": Field((1000,))})
        (133, 8008)
    """

    def sent(declared: Field) -> int:
        packed = declared.numbers if declared.levels is None else packed_length(declared.levels, declared.numbers)
        return packed * declared.dtype.itemsize

    return 8 + sum(map(sent, fields.values()))


_BLOCK = 1 << 17  # entries at a time, so that what lies between two steps stays in cache


def bits_per_entry(levels: int) -> int:
    """Bits that hold one of `levels` categories: 1, 2, 4, 8 or a whole number of bytes above.

    Examples:
        >>> [bits_per_entry(levels) for levels in (2, 3, 10, 256, 257)]
        [1, 2, 4, 8, 16]
    """
    needed = max(1, (levels - 1).bit_length())
    return next((bits for bits in (1, 2, 4, 8) if bits >= needed), 8 * -(-needed // 8))


def pack(values: np.ndarray, levels: int) -> np.ndarray:
    """(P, N) integers below `levels` -> (P, ceil(N * bits / 8)) bytes; more than 256 levels stay as they are.

    One bit: the first entry is the highest bit of the first byte. Two and four: it is in the lowest bits.

    Examples:
        >>> pack(np.array([[1, 0, 1, 1]], dtype=np.uint8), levels=2)
        array([[176]], dtype=uint8)
        >>> unpack(pack(np.array([[2, 0, 1]], dtype=np.uint8), levels=3), levels=3, length=3)
        array([[2, 0, 1]], dtype=uint8)
    """
    bits = bits_per_entry(levels)
    if bits >= 8:
        return values
    if bits == 1:
        return np.packbits(values, axis=1)
    per_byte = 8 // bits
    packed = np.empty((len(values), packed_length(levels, values.shape[1])), dtype=np.uint8)
    for some in _blocks(*values.shape):
        block = values[some]
        if missing := -values.shape[1] % per_byte:
            block = np.pad(block, ((0, 0), (0, missing)))
        # The entries of one byte as one word, v0 + v1 2^8 + ...: shifts bring them together in its lowest byte.
        words = np.ascontiguousarray(block, dtype=np.uint8).view(f"<u{per_byte}")
        together = words | words >> (8 - bits)
        for slot in range(2, per_byte):
            together |= words >> slot * (8 - bits)
        packed[some] = together  # the cast keeps the lowest byte
    return packed


def unpack(packed: np.ndarray, levels: int, length: int) -> np.ndarray:
    """Inverse of `pack` for rows of `length` entries. The caller has checked the packed shape."""
    bits = bits_per_entry(levels)
    if bits >= 8:
        return packed
    if bits == 1:
        return np.unpackbits(packed, axis=1, count=length)
    per_byte = 8 // bits
    spread = np.empty(packed.shape, dtype=f"<u{per_byte}")
    entries = sum((2**bits - 1) << 8 * slot for slot in range(per_byte))
    for some in _blocks(*packed.shape):
        words = packed[some].astype(spread.dtype)
        apart = words | words << (8 - bits)
        for slot in range(2, per_byte):
            apart |= words << slot * (8 - bits)
        np.bitwise_and(apart, entries, out=spread[some])
    return spread.view(np.uint8)[:, :length]


def packed_length(levels: int, length: int) -> int:
    """Entries along the second axis of `pack`'s result."""
    bits = bits_per_entry(levels)
    return length if bits >= 8 else -(-length * bits // 8)


def _blocks(parties: int, length: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(1, length))
    return (slice(first, first + step) for first in range(0, parties, step))
