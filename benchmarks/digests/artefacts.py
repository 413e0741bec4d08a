"""The lines that are compared of each file and answer: values apart from texts, without what differs by the hour.

A new wording changes texts alone. Keys, dates, seconds, memory and the version of this package are left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import yaml

Artefacts = dict[str, list[str]]
"""Lines by the name of an artefact, which ends with its part: `values` or `texts`."""

VALUES, TEXTS = "values", "texts"
_VOLATILE = re.compile(r"(\w+_)?seconds|peak_memory_mebibytes|versions|closing|waiting")  # keys of JSON
_PATTERNS = (
    r"-----BEGIN CERTIFICATE.*?END CERTIFICATE-----",
    r"(ssh-ed25519|ecdsa-sha2-\w+) [A-Za-z0-9+/=]+",
    r"(?<!sha256:)\b[0-9a-f]{64}\b",  # fingerprints of keys, and digests of what has keys in it
    r"(?<=approval: )[0-9a-f]{12}\b",  # a request that waits at a site
    r"(?<=approved: )[0-9a-f]{12}\b",
    r"(?<=\.toml )[0-9a-f]{12}\b",
    r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(\+00:00)?)?\b",
    r"(?<=multiparty-federation )[\w.]+",
    r'(?<=data-head="seconds">)[^<]*',
    r'(?<=data-head="peak memory, MiB">)[^<]*',
)
_SCRUBBED = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS), re.DOTALL)
_WORD = re.compile(r"[^\W\d_]{2,}")
_DRAWN = {".svg", ".png"}
_READ = {".csv", ".html", ".json", ".npz", ".toml", ".txt", ".yaml", *_DRAWN}
_STATE = "state"  # folder of a site, which its journal and approvals are in

_Lines = Iterable[tuple[str, bool]]  # each with whether it is a text


def artefacts_in(folder: Path, here: Path) -> Artefacts:
    """Return the artefacts below a folder; texts name files as seen from `here`."""
    found: Artefacts = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        left_out = any(part.startswith(".") or part == _STATE for part in name.parts)
        if path.is_file() and path.suffix in _READ and not left_out:
            found |= _parted(str(name), _of_file(path, here))
    return found


def artefacts_of(name: str, text: str, here: Path) -> Artefacts:
    """Return the values and texts that a command has printed, as JSON or for people.

    Examples:
        >>> artefacts_of("answer", '{"epsilon": 1.5, "on": "2026-01-01", "promise": "for one row"}', Path("/tmp"))
        {'answer values': ['epsilon: 1.5', 'on: "~"'], 'answer texts': ['promise: "for one row"']}
    """
    text = _plain(text, here)
    try:
        return _parted(name, _flat(json.loads(text)))
    except ValueError:
        return _parted(name, ((line, _is_text(line)) for line in text.splitlines()))


def _of_file(path: Path, here: Path) -> _Lines:
    if path.suffix in _DRAWN:
        return [(hashlib.sha256(path.read_bytes()).hexdigest(), True)]
    if path.suffix == ".npz":
        return _arrays(path)
    text = _plain(path.read_text(encoding="utf-8"), here)
    if path.suffix == ".html":
        return _of_page(text)
    if path.suffix == ".json":
        return _flat(json.loads(text))
    if path.suffix == ".yaml":
        return _flat(yaml.safe_load(text))
    if path.suffix == ".toml":
        parts = (line.partition("#") for line in text.splitlines())
        return [pair for value, _, comment in parts for pair in ((value.strip(), False), (comment, True))]
    return ((line, path.suffix == ".txt") for line in text.splitlines())


def _plain(text: str, here: Path) -> str:
    return _SCRUBBED.sub("~", text.replace(str(here), "."))


def _parted(name: str, lines: _Lines) -> Artefacts:
    parts: Artefacts = {f"{name} {VALUES}": [], f"{name} {TEXTS}": []}
    for line, is_text in lines:
        parts[f"{name} {TEXTS if is_text else VALUES}"].append(line)
    return {part: found for part, found in parts.items() if found}


def _is_text(line: str) -> bool:
    """Return whether there are two words with a space between, as no name and no number has."""
    return sum(bool(_WORD.search(part)) for part in line.split()) > 1


def _flat(value: object, path: str = "") -> Iterator[tuple[str, bool]]:
    """Yield a line for each leaf of a JSON document, also of those that stand in one of its strings."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, dict) and value:
        pairs = [(str(key), part) for key, part in value.items() if not _VOLATILE.fullmatch(str(key))]
    elif isinstance(value, list) and value:
        pairs = [(str(place), part) for place, part in enumerate(value)]
    else:
        yield (
            f"{path}: {json.dumps(value, ensure_ascii=False, default=str)}",
            isinstance(value, str) and _is_text(value),
        )
        return
    for key, part in pairs:
        yield from _flat(part, f"{path}.{key}" if path else key)


def _arrays(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield a line for each array of an npz file, whatever the archive around it looks like; texts as they are."""
    with np.load(path, allow_pickle=False) as stored:
        for name in sorted(stored):
            array = np.ascontiguousarray(stored[name])
            if array.dtype.kind == "U" and array.size == 1:
                yield from _flat(str(array.item()), name)
            else:
                yield f"{name}: {array.dtype.str} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}", False


def _of_page(text: str) -> _Lines:
    reader = _Page()
    reader.feed(text)
    return reader.lines


class _Page(HTMLParser):
    """Reads a page: tags, attributes and numbers are values, in which `...` stands for each text."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.lines.append((f"<{tag}>", False))
        for name, value in attrs:
            self._take(value or "", f"{name}=")

    def handle_data(self, data: str) -> None:
        for line in filter(None, map(str.strip, data.splitlines())):
            self._take(line, "")

    def _take(self, text: str, before: str) -> None:
        if is_text := self.lasttag == "style" or _is_text(text):
            self.lines.append((text, True))
        self.lines.append((before + ("..." if is_text else text), False))
