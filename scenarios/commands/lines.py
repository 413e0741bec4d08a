"""Lines of text for people: on a terminal no word is broken over two of its lines, elsewhere a line stays one."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TextIO

_LEAST = 20  # columns: in narrower terminals everything breaks anyway
_NARROW = 4  # columns that later lines are moved in where there is little room


def fitted(text: str, stream: TextIO, hanging: int | None = None) -> str:
    """The text in lines of whole words where `stream` is a terminal.

    All lines but the first begin `hanging` columns in, or where the text itself begins. Names, options and paths stay
    whole, so that they can be copied.

    Examples:
        >>> import io
        >>> fitted("hint: choose up to 6 of them with --only", io.StringIO())
        'hint: choose up to 6 of them with --only'
    """
    if not stream.isatty():
        return text
    width = max(_LEAST, shutil.get_terminal_size().columns)
    begin = text[: len(text) - len(text.lstrip())]
    if hanging is None or hanging > width // 2:  # names take so much of it that no room would be left beside them
        hanging = len(begin) if hanging is None else _NARROW
    return textwrap.fill(
        text.lstrip(),
        width,
        initial_indent=begin,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def remark(text: str) -> None:
    """A line on standard error."""
    print(fitted(text, sys.stderr), file=sys.stderr)
