"""Finds and reads scenario files and applies `--set` overrides, keeping the place of every value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from federation.contract.errors import InputError, nearest_name
from scenarios.settings.yaml_rules import LARGEST_TEXT, KeyPath, parse

_SUFFIXES = (".yaml", ".yml")


@dataclass
class Document:
    """A scenario as written: plain values, and where each stands (`har.yaml:12`, `--set trials.splits=2`).

    `base` is the folder that relative paths in it are relative to, `stem` the name that the file suggests.
    """

    value: dict[str, Any]
    origin: str
    stem: str
    base: Path
    places: dict[KeyPath, str] = field(default_factory=dict)

    def place(self, path: KeyPath) -> str:
        """Where the value at `path` is set, or else the nearest section around it."""
        return self.places.get(self._known(path), self.origin)

    def order(self, path: KeyPath) -> int:
        """A number that sorts paths as they are written: the file from its top, then overrides."""
        known = self._known(path)
        return list(self.places).index(known) if known else -1

    def _known(self, path: KeyPath) -> KeyPath:
        while path and path not in self.places:
            path = path[:-1]
        return path

    def override(self, setting: str) -> None:
        """Apply one `KEY=VALUE` of the command line; KEY is dotted, with list positions from 0.

        The value is read as YAML. Missing sections are made; whether a key is known is for the schema to say.
        Raises `InputError` when the setting is malformed or leads through something that has no keys.

        Examples:
            >>> document = load({"parties": {"count": 5}})
            >>> document.override("parties.hostile.fraction=0.1")
            >>> document.value["parties"], document.place(("parties", "hostile", "fraction"))
            ({'count': 5, 'hostile': {'fraction': 0.1}}, '--set parties.hostile.fraction=0.1')
        """
        key, equals, text = setting.partition("=")
        if not equals or not all(key.split(".")) or not text.strip():
            raise InputError(f"--set expects KEY=VALUE such as trials.splits=2, got '{setting}'")
        place = f"--set {setting}"
        value, _ = parse(text, place)
        path = self._put([int(k) if k.isdecimal() else k for k in key.split(".")], value, place)
        self.places = {at: where for at, where in self.places.items() if at[: len(path)] != path}
        self.places[path] = place

    def _put(self, keys: list[str | int], value: Any, place: str) -> KeyPath:
        section: Any = self.value
        for depth, key in enumerate(keys):
            at = ".".join(map(str, keys[:depth])) or "the scenario"
            if isinstance(section, list):
                if not isinstance(key, int) or key >= len(section):
                    raise InputError(f"{place}: {at} is a list with positions 0 to {len(section) - 1}, got '{key}'")
            elif isinstance(section, dict):
                key = keys[depth] = str(key)
            else:
                raise InputError(f"{place}: {at} is {section!r} and has no key '{key}'; set {at} itself")
            if depth == len(keys) - 1:
                section[key] = value
                break
            if isinstance(section, dict) and section.get(key) is None:
                if isinstance(keys[depth + 1], int):
                    at = ".".join(map(str, keys[: depth + 1]))
                    raise InputError(f"{place}: {at} is not given, so it has no positions; set {at} itself")
                section[key] = {}
                self.places[tuple(keys[: depth + 1])] = place
            section = section[key]
        return tuple(keys)


def library() -> dict[str, Traversable]:
    """The scenarios that come with the package, by name, sorted.

    Examples:
        >>> "quickstart" in library()
        True
    """
    folder = files("scenarios") / "library"
    found = {entry.name.removesuffix(".yaml"): entry for entry in folder.iterdir() if entry.name.endswith(".yaml")}
    return dict(sorted(found.items()))


def load(source: str | Path | Mapping[str, Any]) -> Document:
    """Read a scenario file by path, a library scenario by name, or a mapping of plain values.

    Raises `InputError` when there is no such scenario (with the nearest name) or it is not valid YAML.
    """
    if isinstance(source, Mapping):
        return _from_mapping(source)
    known = library()
    if isinstance(source, str) and source in known:
        text, origin, stem, base = known[source].read_text("utf-8"), f"{source}.yaml", source, Path.cwd()
    else:
        path = Path(source)
        text, origin, stem, base = _read(path, list(known)), str(path), path.stem, path.parent.absolute()
    value, lines = parse(text, origin)
    if not isinstance(value, dict):
        raise InputError(f"{origin}: a scenario is a mapping with the keys data, parties, privacy; got {value!r:.60}")
    return Document(value, origin, stem, base, {path: f"{origin}:{line}" for path, line in lines.items()})


def _read(path: Path, known: Iterable[str]) -> str:
    try:
        with path.open(encoding="utf-8-sig") as file:
            return file.read(LARGEST_TEXT + 1)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start}); save the scenario as UTF-8") from error
    except FileNotFoundError:
        here = sorted(p.name for p in path.parent.glob("*") if p.suffix in _SUFFIXES)
        hint = nearest_name(path.name, here) or nearest_name(path.stem, known)
        raise InputError(
            f"there is no scenario file '{path}' and no library scenario of that name; library: "
            f"{', '.join(known)}{hint}"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the scenario {str(path)!r}: {error}") from error


def _from_mapping(source: Mapping[str, Any]) -> Document:
    try:
        value = json.loads(json.dumps(dict(source)))
    except (TypeError, ValueError) as error:
        raise InputError(f"a scenario mapping may hold texts, numbers, lists and mappings only: {error}") from error
    return Document(value, "scenario", "scenario", Path.cwd())
