"""Bytes of a file after an accident: cut short, changed, or with a piece of them elsewhere."""

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


def read_or_refused(read, path):
    """What `read` gives; None where it refuses the file, in one sentence that names it and advises no pickles."""
    try:
        return read()
    except InputError as refusal:
        said = str(refusal)
    assert str(path) in said, said
    assert "\n" not in said, said
    assert "pickle" not in said, said
    return None
