"""Loading of scenario files: YAML 1.2 scalars, no duplicate keys, `--set` overrides, and the line of every value.

PyYAML follows older rules, where `1e-5` is text, `on` is true, `1:30` is 90 and `0123` is 83. Here numbers are decimal,
only `true` and `false` are booleans, and whatever is not plainly a number is text. The writer quotes a text that either
set of rules would read as something else.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml

from federation.contract.errors import InputError, nearest_name

KeyPath = tuple[str | int, ...]

LARGEST_TEXT = 250_000  # characters: a few seconds of parsing, however dense
_MOST_VALUES = 100_000  # after aliases are written out
_DEEPEST = 20
_PREFIX = "tag:yaml.org,2002:"


def _text(text: str) -> str:
    text.encode()  # an escape can spell half a character, which is no text
    return text


_INT = r"[-+]?(0|[1-9][0-9]*)"
_FLOAT = r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
_PLAIN: dict[str, tuple[str, list[str], Callable[[str], Any]]] = {  # tag: pattern, first characters, the value
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""], lambda text: None),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF"), lambda text: text.lower() == "true"),
    "int": (_INT, list("-+0123456789"), int),
    "float": (_FLOAT, list("-+.0123456789"), lambda text: float(re.sub(r"\.(inf|nan)$", r"\1", text.lower()))),
}


class _Loader(yaml.SafeLoader):
    """Composes nodes by the newer rules alone; `_Builder` makes the values."""

    def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
        """End at brackets in brackets that are too deep: of a thousand, each would look at all around it again."""
        if self.flow_level > _DEEPEST:
            raise RecursionError
        super().fetch_flow_collection_start(token)


class _Dumper(yaml.SafeDumper):
    """Knows the older rules and, from below, the newer ones; writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # Line breaks are folded in the other styles, and some kinds of them do not survive it.
    return dumper.represent_scalar(_PREFIX + "str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _represent_text)
_Loader.yaml_implicit_resolvers = {}
for _tag, (_pattern, _first, _) in _PLAIN.items():
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(_PREFIX + _tag, re.compile(f"^(?:{_pattern})$"), _first)


class _Builder:
    """Plain values from nodes, with the line of every mapping key and list item."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.lines: dict[KeyPath, int] = {}
        self._values = 0

    def fail(self, node: yaml.Node, text: str) -> InputError:
        return InputError(f"{self.origin}:{_line(node)}: {text}")

    def build(self, node: yaml.Node, path: KeyPath, key_node: yaml.Node | None = None) -> Any:
        if path:
            self.lines[path] = _line(key_node or node)
        self._values += 1
        if self._values > _MOST_VALUES or len(path) > _DEEPEST:
            text = f"more than {_MOST_VALUES} values or {_DEEPEST} levels (are there aliases of aliases?)"
            raise self.fail(node, text)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, i)) for i, item in enumerate(node.value)]
        return self._scalar(node)

    def _scalar(self, node: yaml.Node) -> Any:
        tag = node.tag.removeprefix(_PREFIX)
        if tag != "str" and tag not in _PLAIN:
            raise self.fail(node, f"the tag {tag} is not allowed; write a plain value")
        try:
            return _text(node.value) if tag == "str" else _PLAIN[tag][2](node.value)
        except ValueError as error:
            raise self.fail(node, f"cannot read {node.value[:40]!r}: {error}") from None

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != _PREFIX + "str":
                raise self.fail(key_node, "a key must be text; put quotes around it")
            key = self._scalar(key_node)
            if key in out:
                first = self.lines[(*path, key)]
                raise self.fail(key_node, f"key '{key}' occurs twice, first on line {first}; remove one")
            out[key] = self.build(value_node, (*path, key), key_node)
        return out


def parse(text: str, origin: str) -> tuple[Any, dict[KeyPath, int]]:
    """The value of one YAML document and the line (from 1) of every key and list item in it.

    `origin` is the file's name, for messages. Values are dict, list, str, int, float, bool and
    None. Raises `InputError` (`origin:line: ...`) for malformed YAML, duplicate keys, keys that are not text,
    tags, several documents, and texts that are too large or too deep.

    Examples:
        >>> value, lines = parse("{delta: 1e-6, noise: off}", "s.yaml")
        >>> value, lines[("noise",)]
        ({'delta': 1e-06, 'noise': 'off'}, 1)
        >>> parse("{a: 1, a: 2}", "s.yaml")
        Traceback (most recent call last):
        ...
        federation.contract.errors.InputError: s.yaml:1: key 'a' occurs twice, first on line 1; remove one
    """
    if len(text) > LARGEST_TEXT:
        raise InputError(f"{origin}: longer than {LARGEST_TEXT} characters; this is not a scenario file")
    builder = _Builder(origin)
    try:
        node = yaml.compose(text, Loader=_Loader)
        return (None if node is None else builder.build(node, ())), builder.lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{origin}:{mark.line + 1}" if mark else origin
        raise InputError(f"{place}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise InputError(f"{origin}: not valid YAML: {str(error).splitlines()[0]}") from error
    except RecursionError:
        raise InputError(f"{origin}: nested too deeply; at most {_DEEPEST} levels are allowed") from None


def dump(value: Any, flow: bool | None = None) -> str:
    """YAML text of plain values, never wrapped; `flow=True` writes `{a: 1}` and `[1, 2]` on one line.

    Examples:
        >>> print(dump({"epsilon": [1, 3], "noise": "off"}, flow=True).strip())
        {epsilon: [1, 3], noise: 'off'}
    """
    endless = float("inf")
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, default_flow_style=flow, width=endless, allow_unicode=True
    )
    return text.removesuffix("...\n")


def flattened(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """What is set by dotted names; lists, and sections with nothing in them, stay whole.

    Examples:
        >>> dict(flattened({"name": "tiny", "privacy": {"epsilon": [1, 3], "budget": {}}}))
        {'name': 'tiny', 'privacy.epsilon': [1, 3], 'privacy.budget': {}}
    """
    if isinstance(value, Mapping) and value:
        for key, each in value.items():
            yield from flattened(each, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


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
