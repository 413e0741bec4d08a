"""Docstrings, written as plain text for terminals, as the markup of a site."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_CODE = re.compile(r"(``.+?``|`[^`]+`)")
_SIGNS = re.compile(r"([\\*|]|_\b)")
_SECTION = re.compile(r"(Args|Parameters|Returns|Yields|Raises|Examples|Attributes):$")
_TERM = re.compile(r"(?P<indent> *)(?P<names>[a-z_]\w*(?:, \w+)*): (?P<text>.+)")
_NUMBERED = re.compile(r"\d+\. ")


def marked_up(lines: Sequence[str]) -> list[str]:
    """The lines with signs as themselves, single backticks as code, and terms with their meanings as lists.

    Sections that napoleon reads keep their form, and so do examples.

    Examples:
        >>> marked_up(["size: k, rows", "    of a `bag`."])
        ['', '* **size**: k, rows of a ``bag``.']
    """
    made: list[str] = []
    section = example = False
    for head, text in _listed(lines):
        line = head + text
        if line.strip():
            example = line.lstrip().startswith(">>>") or example
            section = bool(_SECTION.match(line)) or (section and line.startswith(" "))
        else:
            example = False
        if _NUMBERED.match(line) and made and made[-1].strip() and not section:
            made.append("")
        made.append(line if example else head + _plain(text))
    return made


def _listed(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Lines, of which some have a head that is markup already: terms with their meanings, as items of a list."""
    section, i, before = False, 0, False
    while i < len(lines):
        line = lines[i]
        section = bool(_SECTION.match(line)) or (section and (not line.strip() or line.startswith(" ")))
        found = None if section else _TERM.fullmatch(line)
        i += 1
        if found is None:
            if before and line.strip():
                yield "", ""
            before = False
            yield "", line
            continue
        text = [found["text"]]
        while i < len(lines) and lines[i].strip() and lines[i].startswith(found["indent"] + "  "):
            text.append(lines[i].strip())
            i += 1
        if not before:
            yield "", ""
        before = True
        names = ", ".join(f"**{name}**" for name in found["names"].split(", "))
        yield f"* {names}: ", " ".join(text)


def _plain(text: str) -> str:
    """A text in which signs are themselves, and code has two backticks."""
    parts = _CODE.split(text)
    made = ""
    for i, part in enumerate(parts):
        if i % 2:
            glued = "\\ " if parts[i + 1][:1].isalnum() else ""
            made += f"``{part.strip('`')}``{glued}"
        else:
            made += _SIGNS.sub(r"\\\1", part)
    return made
