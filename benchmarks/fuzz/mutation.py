"""Changes to plain values, texts, bytes and arrays: what people mistype, and what nobody would think of."""

from __future__ import annotations

import copy
import io
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_DEEP = 3000  # levels, beyond what Python's parsers take
_MOST_CHANGES = 4
_LONG = 10_000  # characters
_WHOLE = (
    *(0, -1, 1, 2, 3, 5, 7, 10, 64, 100, 255, 256, 1000, 65_536, 10**6, 10**9, 10**12, 10**18, -(10**9)),
    *(2**31 - 1, 2**31, 2**32, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**400),
)
_REAL = (
    *(0.0, -0.0, 0.1, 0.5, 0.9, 1.0, 2.0, 1.5, -1.0, 1e-3, 1e-6, 1e-9, 1e-16, 1 - 1e-16, 1 + 1e-9, 100.0, 1e6),
    *(5e-324, 1e-300, 1e300, 1.7e308, float("nan"), float("inf"), float("-inf")),
)
_TEXTS = (
    *(
        "",
        " ",
        "\t",
        "\n",
        "\0",
        "a",
        "A",
        "ß",
        "\u202e",
        "😀",
        "e\u0301",
        "\ud800",
        "\ufeff",
        "\u2028",
        "\x85",
        "\x7f",
    ),
    *("nan", "null", "NA", "?", "inf", "true", "off", "auto", "0", "-1", "1e5", "0x10", "1_000", "1,5", "1:30", "½"),
    *("../..", "/", "*", "{}", "{0}", "%s", "$HOME", "__class__", "'", '"', "\\", ",", ";", "#", "!!str", "&a", "<<"),
)
_NOTHING: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"": None}, [[1, 2], [3]])


class Mutation:
    """Changes that follow one source of random numbers.

    `known` are the values that keys may have, by key: what is put in place of one is often of the right kind.
    """

    def __init__(self, source: random.Random, known: Mapping[str, Sequence[Any]] | None = None) -> None:
        self._source, self._known = source, known or {}

    def plain(self, value: Any) -> Any:
        """A tree of plain values with one or a few changes."""
        whole = [copy.deepcopy(value)]
        for _ in range(self._few()):
            places = list(_places(whole))
            self._change(*self._source.choice(places), places)
        return whole[0]

    def nearby(self, value: Any) -> Any:
        """Another number for a number; other values, and the parts of a whole, stay as they are."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        return self._source.choice((*_scaled(value), self._source.choice(_WHOLE), self._source.choice(_REAL)))

    def leaf(self) -> Any:
        """A plain value that nobody expects."""
        kinds: tuple[Sequence[Any], ...] = (_WHOLE, _REAL, _TEXTS, _NOTHING)
        chosen = self._source.choice(self._source.choice(kinds))
        rare = self._source.random()
        if rare < 0.01 and isinstance(chosen, str):
            return (chosen or "x") * _LONG
        if rare < 0.02 and isinstance(chosen, int):
            return 10**4000  # nearly as many digits as Python reads
        if rare < 0.03:
            return _nested(self._source.choice((5, 25, 100)), chosen)
        return copy.deepcopy(chosen)

    def text(self, text: str) -> str:
        """A text with a piece taken out, put in, doubled or changed."""
        for _ in range(self._few()):
            start = self._source.randint(0, len(text))
            end = min(len(text), start + self._source.choice((0, 1, 1, 2, 5, 40)))
            old = text[start:end]
            pieces = ("", self._source.choice(_TEXTS), old * 2, old[::-1], old.swapcase())
            text = text[:start] + self._source.choice(pieces) + text[end:]
        return text

    def raw(self, content: bytes) -> bytes:
        """Bytes with some of them changed, cut off, put in, taken out or doubled."""
        changed = bytearray(content)
        for _ in range(self._few()):
            start = self._source.randint(0, len(changed))
            size = self._source.choice((1, 1, 2, 4, 8, 64))
            match self._source.randrange(6):
                case 0:
                    del changed[start:]
                case 1:
                    del changed[start : start + size]
                case 2:
                    changed[start:start] = self._source.randbytes(size)
                case 3:
                    changed[start:start] = changed[start : start + size]
                case 4:
                    changed[start : start + size] = self._source.choice((b"\0", b"\xff", b"\x80")) * size
                case _ if start < len(changed):
                    changed[start] ^= 1 << self._source.randrange(8)
        return bytes(changed)

    def array(self, array: np.ndarray) -> np.ndarray:
        """An array of other values, another shape or another type; never of Python objects."""
        flat = np.array(array, copy=True).reshape(-1)
        match self._source.randrange(8):
            case 0 | 1 | 2 if flat.size:
                extreme = self._source.choice((*_REAL, *(float(number) for number in _WHOLE if abs(number) < 2**64)))
                with np.errstate(all="ignore"):
                    values = np.array(extreme).astype(flat.dtype) if flat.dtype.kind in "biuf" else flat[:1]
                some = self._source.choice((slice(None), slice(0, 1), slice(self._source.randrange(flat.size), None)))
                flat[some] = values
                return flat.reshape(array.shape)
            case 3:
                return (
                    np.asarray(array)[self._source.choice((slice(0, 0), slice(0, 1), slice(None, None, -1)))]
                    if (array.ndim)
                    else flat
                )
            case 4:
                return np.repeat(np.atleast_1d(array), self._source.choice((2, 3)), axis=self._axis(array))
            case 5:
                return flat.reshape(self._source.choice(((-1,), (1, -1), (-1, 1), (1, 1, -1)))) if flat.size else flat
            case 6:
                kinds = ("f4", "f2", "f8", "i1", "i8", "u1", "u2", "u8", "?", "c8", "c16", ">f8", ">i4", "U3", "S2")
                with np.errstate(all="ignore"):
                    try:
                        return np.asarray(array).astype(self._source.choice((*kinds, "M8[s]", "m8[D]", "V4")))
                    except (TypeError, ValueError):
                        return flat
            case _:
                shape = self._source.choice(((), (0,), (1,), (0, 3), (3, 0), (2, 2), (1, 1, 1), (4096,)))
                return np.zeros(shape, dtype=array.dtype)

    def _axis(self, array: np.ndarray) -> int:
        return self._source.randrange(max(1, array.ndim))

    def _few(self) -> int:
        return min(_MOST_CHANGES, 1 + int(self._source.expovariate(1.0)))

    def _change(self, parent: Any, key: Any, places: Sequence[tuple[Any, Any]]) -> None:
        old = parent[key]
        match self._source.randrange(9):
            case 0 | 1:
                parent[key] = self.leaf()
            case 2:
                parent[key] = self._like(old)
            case 3:
                other, at = self._source.choice(places)
                parent[key] = copy.deepcopy(other[at])
            case 4 if len(places) > 1:
                del parent[key]
                if not parent and isinstance(parent, list):
                    parent.append(self.leaf())
            case 5:
                parent[key] = self._source.choice(([old], [old, old], {"": old}, [old, self.leaf()]))
            case 6 if isinstance(parent, dict):
                parent[self._key()] = parent.pop(key) if self._source.random() < 0.3 else self._value(self._key())
            case _:
                known = isinstance(parent, dict) and key in self._known
                parent[key] = self._value(key) if known else self._like(old)

    def _key(self) -> str:
        known = list(self._known)
        return self._source.choice(known) if known and self._source.random() < 0.9 else self._source.choice(_TEXTS)

    def _value(self, key: str) -> Any:
        known = self._known.get(key)
        if not known or self._source.random() < 0.1:
            return self.leaf()
        few = [copy.deepcopy(self._source.choice(known)) for _ in range(self._source.choice((1, 1, 1, 2, 3)))]
        return few[0] if len(few) == 1 else few

    def _like(self, old: Any) -> Any:
        """Another value of the same type, most of the time."""
        if isinstance(old, str):
            return self.text(old)
        if isinstance(old, bool) or not isinstance(old, int | float):
            return self.leaf()
        return self._source.choice((-old, str(old), [old], self.nearby(old), self.nearby(old)))


def _scaled(number: float) -> tuple[float, ...]:
    near = (number + 1, number - 1)
    return near if abs(number) > 1e100 else (*near, number * 2, number * 10, number / 10, number * 1.0, number * 1000)


def _places(whole: list[Any]) -> Sequence[tuple[Any, Any]]:
    """Every container of a tree with every key or position in it; strings and deep parts count as leaves."""
    found: list[tuple[Any, Any]] = []
    waiting: list[Any] = [whole]
    while waiting:
        container = waiting.pop()
        entries = list(container.items()) if isinstance(container, dict) else list(enumerate(container))
        for key, value in entries:
            found.append((container, key))
            if isinstance(value, dict | list):
                waiting.append(value)
    return found


def _nested(levels: int, value: Any) -> Any:
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


def deep(source: random.Random) -> str:
    """A text of open brackets, which JSON and YAML take for lists or mappings in each other."""
    return source.choice(("[", '{"a":', "- ")) * _DEEP


def npy_bytes(array: np.ndarray) -> bytes:
    """An array as the bytes of an npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
