"""Bytes of a file after an accident: cut short, changed, or with a piece of them elsewhere."""

import json

import numpy as np
from hypothesis import strategies as st

from federation.contract.errors import InputError

PIECES = (b"\xff" * 4, b"\x00" * 4, b"\xff\xff\xff\x7f", b"99999", b"(", b"-", b'"', b"O", b"\n", b",", b"nan")


@st.composite
def damaged(draw, content):
    """`content` after one to four accidents, each of which may leave it as it was."""
    for _ in range(draw(st.integers(1, 4))):
        at, other = (draw(st.integers(0, len(content))) for _ in range(2))
        kind = draw(st.sampled_from(("cut", "flip", "write", "splice", "drop")))
        if kind == "cut":
            content = content[:at]
        elif kind == "flip" and at < len(content):
            content = content[:at] + bytes([content[at] ^ 1 << draw(st.integers(0, 7))]) + content[at + 1 :]
        elif kind == "write":
            piece = draw(st.sampled_from(PIECES))
            content = content[:at] + piece + content[at + len(piece) :]
        elif kind == "splice":
            content = content[:at] + content[other : other + 64] + content[at:]
        elif kind == "drop":
            content = content[:at] + content[at + 1 + other % 16 :]
    return content


def read_or_refused(read, *paths):
    """What `read` gives; None where it refuses one of the files in a sentence that names it, not pickles."""
    try:
        return read()
    except InputError as refusal:
        said = str(refusal)
    assert any(str(path) in said for path in paths), said
    assert "\n" not in said, said
    assert "pickle" not in said, said
    return None


def variations(path):
    """What a released model's file may hold in place of what it does: (place, arrays) for one change each."""
    with np.load(path) as stored:
        arrays = dict(stored)
    for name, array in arrays.items():
        others = {"absent": None, "text": np.array("x"), "bytes": np.array([b"x"]), "complex": np.ones(2, complex)}
        others |= {"flat": array.ravel()[:-1], "empty": np.ones((*array.shape[:-1], 0)), "deeper": array[None]}
        for change, number in (("NaN", np.nan), ("infinite", np.inf), ("negative", -1.0), ("large", 1e300)):
            others[change] = np.full(array.shape, number)
        for kind in ("int8", "float32", "M8[s]", "U3"):
            others[kind] = np.ones(array.shape, kind)
        for change, other in others.items():
            kept = {key: values for key, values in arrays.items() if key != name}
            yield f"{name}: {change}", kept if other is None else {**kept, name: other}
    description = json.loads(str(arrays["description"]))
    for place, changed in _changed(description):
        yield f"description{place}", arrays | {"description": np.array(json.dumps(changed))}


def _changed(value):
    """One JSON value with one of those within it replaced by another kind of value, or left out."""
    for other in (None, True, -1, 7, 1e308, float("nan"), "x", [], {}, [[1]], {"a": 1}, "{", "[" * 9999):
        yield f" = {other!r:.20}", other
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        if isinstance(value, dict):
            yield f"[{key!r}] absent", {name: kept for name, kept in value.items() if name != key}
        for place, changed in _changed(part):
            copied = value.copy()
            copied[key] = changed
            yield f"[{key!r}]{place}", copied
