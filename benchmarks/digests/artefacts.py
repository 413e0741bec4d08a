"""The lines that are compared of each file and answer: values apart from texts, without what differs by the hour.

A new wording changes texts alone. Keys, dates, seconds, memory and the version of this package are left out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

Artefacts = dict[str, list[str]]
"""Lines by the name of an artefact, which ends with its part: `values` or `texts`."""

VALUES, TEXTS = "values", "texts"
_VOLATILE = {"seconds", "peak_memory_mebibytes", "versions", "closing", "waiting"}  # keys of JSON
_PATTERNS = (
    r"-----BEGIN CERTIFICATE.*?END CERTIFICATE-----",
    r"(ssh-ed25519|ecdsa-sha2-\w+) [A-Za-z0-9+/=]+",
    r"(?<!sha256:)\b[0-9a-f]{64}\b",  # fingerprints of keys, and digests of what has keys in it
    r"(?<=approval: )[0-9a-f]{12}\b",  # a request that waits at a site
    r"(?<=\.toml )[0-9a-f]{12}\b",
    r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(\+00:00)?)?\b",
    r"(?<=multiparty-federation )[\w.]+",
    r'(?<=data-head="seconds">)[^<]*',
    r'(?<=data-head="peak memory, MiB">)[^<]*',
)
_SCRUBBED = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS), re.DOTALL)
_WORD = re.compile(r"[^\W\d_]{2,}")
_DRAWN = {".svg", ".png"}
_TABLES = {".csv", ".yaml"}
_READ = {".html", ".json", ".npz", ".toml", ".txt", *_DRAWN, *_TABLES}


def artefacts_in(folder: Path, here: Path) -> Artefacts:
    """Return the artefacts below a folder, without hidden ones; texts name files as seen from `here`."""
    found: Artefacts = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and path.suffix in _READ and not any(part.startswith(".") for part in name.parts):
            found |= _of_file(path, str(name), here)
    return found


def artefacts_of(name: str, text: str, here: Path) -> Artefacts:
    """Return the values and texts that a command has printed, or a text file has.

    Examples:
        >>> artefacts_of("answer", '{"epsilon": 1.5, "started": "2026-01-01", "promise": "for one row"}', Path("/tmp"))
        {'answer values': ['epsilon: 1.5', 'started: "#"'], 'answer texts': ['promise: "for one row"']}
    """
    try:
        return _parted(name, _flat(json.loads(_plain(text, here))))
    except ValueError:
        return _parted(name, _plain(text, here).splitlines())


def _of_file(path: Path, name: str, here: Path) -> Artefacts:
    if path.suffix in _DRAWN:
        return {f"{name} {TEXTS}": [hashlib.sha256(path.read_bytes()).hexdigest()]}
    if path.suffix == ".npz":
        return _parted(name, _arrays(path))
    text = path.read_text(encoding="utf-8")
    if path.suffix in _TABLES:
        return {f"{name} {VALUES}": _plain(text, here).splitlines()}
    if path.suffix == ".html":
        return _page(name, _plain(text, here))
    return artefacts_of(name, text, here)


def _plain(text: str, here: Path) -> str:
    return _SCRUBBED.sub("#", text.replace(str(here), "."))


def _parted(name: str, lines: Iterable[str]) -> Artefacts:
    parts: Artefacts = {f"{name} {VALUES}": [], f"{name} {TEXTS}": []}
    for line in lines:
        parts[f"{name} {TEXTS if _is_text(line) else VALUES}"].append(line)
    return {part: found for part, found in parts.items() if found}


def _is_text(line: str) -> bool:
    """Return whether words stand side by side, which those of a name do not."""
    return any(_WORD.search(one) and _WORD.search(other) for one, other in _neighbours(line.split(": ", 1)[-1].split()))


def _neighbours(words: list[str]) -> Iterator[tuple[str, str]]:
    return zip(words, words[1:], strict=False)


def _flat(value: object, path: str = "") -> Iterator[str]:
    """Yield a line for each leaf of a JSON document, also of those that stand in one of its strings."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except ValueError:
            pass
    if isinstance(value, dict) and value:
        pairs = [(key, part) for key, part in value.items() if key not in _VOLATILE]
    elif isinstance(value, list) and value:
        pairs = [(str(place), part) for place, part in enumerate(value)]
    else:
        yield f"{path}: {json.dumps(value, ensure_ascii=False)}"
        return
    for key, part in pairs:
        yield from _flat(part, f"{path}.{key}" if path else key)


def _arrays(path: Path) -> Iterator[str]:
    """Yield a line for each array of an npz file, whatever the archive around it looks like; texts as they are."""
    with np.load(path, allow_pickle=False) as stored:
        for name in sorted(stored):
            array = np.ascontiguousarray(stored[name])
            if array.dtype.kind == "U" and array.size == 1:
                yield from _flat(str(array.item()), name)
            else:
                yield f"{name}: {array.dtype.str} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"


def _page(name: str, text: str) -> Artefacts:
    reader = _Page()
    reader.feed(text)
    return {f"{name} {part}": lines for part, lines in ((VALUES, reader.values), (TEXTS, reader.texts)) if lines}


class _Page(HTMLParser):
    """Reads a page: tags, attributes and numbers are values, in which `...` stands for each text."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.values.append(f"<{tag}>")
        for name, value in attrs:
            self._take(value or "", f"{name}=")

    def handle_data(self, data: str) -> None:
        for line in data.splitlines():
            self._take(line.strip(), "")

    def _take(self, text: str, before: str) -> None:
        if not text:
            return
        if _is_text(text):
            self.texts.append(text)
            text = "..."
        self.values.append(before + text)
