"""A scenario written out as a file that explains itself: every default, and a comment on every key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from scenarios.settings.default_rules import in_short
from scenarios.settings.protocol_options import Protocol, default_kind, is_default
from scenarios.settings.schema import Scenario
from scenarios.settings.unused_settings import idle
from scenarios.settings.yaml_rules import KeyPath, dump


def to_yaml(scenario: Scenario) -> str:
    """The scenario as a file that `schema.resolve` reads back, with every default and a comment on every key.

    Keys that make no difference beside its protocols say so.

    Examples:
        >>> from scenarios.settings.schema import resolve
        >>> print(*to_yaml(resolve("quickstart")).splitlines()[:5], sep="\\n")
        # Scenario 'quickstart' with every default written out. Lists of scalars are swept.
        # Names the run and its folder.
        name: quickstart
        # What it shows, in one line.
        description: 200 parties with 5 handwritten digits each learn to read them; a first run, in seconds.
    """
    head = f"# Scenario '{scenario.name}' with every default written out. Lists of scalars are swept.\n"
    comments = _descriptions(Scenario, ())
    for path, why in idle(scenario.data, scenario.protocols, scenario.privacy):
        comments[path] = [*comments.get(path, []), f"Without effect here: {why}."]
    comments |= {("protocols", i): lines for i, lines in _reasons(scenario.protocols)}
    plain = scenario.to_plain() | {"protocols": [protocol.shown() for protocol in scenario.protocols]}
    return head + commented(plain, comments)


def commented(plain: Mapping[str, Any], comments: Mapping[KeyPath, Sequence[str]]) -> str:
    """The keys that a scenario says, as a file, with the lines of `comments` above each key and entry of protocols.

    Examples:
        >>> said = {"name": "first", "privacy": {"epsilon": 1}}
        >>> print(commented(said, {("privacy", "epsilon"): ["Smaller hides more."]}))
        name: first
        privacy:
          # Smaller hides more.
          epsilon: 1
        <BLANKLINE>
    """
    return "".join(_written(Scenario, plain, (), comments))


def _written(
    section: type[BaseModel], plain: Mapping[str, Any], path: KeyPath, comments: Mapping[KeyPath, Sequence[str]]
) -> Iterator[str]:
    indent = "  " * len(path)
    for key, field in section.model_fields.items():
        if key not in plain:
            continue
        here, value, inner = (*path, key), plain[key], field.annotation
        yield from (f"{indent}# {line}\n" for line in comments.get(here, ()))
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield f"{indent}{key}:\n"
            yield from _written(inner, value, here, comments)
        elif key == "protocols":
            yield f"{indent}{key}:\n"
            for i, entry in enumerate(value):
                yield from (f"{indent}  # {line}\n" for line in comments.get((*here, i), ()))
                yield f"{indent}  - {dump(entry, flow=True)}"
        else:
            yield f"{indent}{key}: {dump(value, flow=True)}"


def _descriptions(section: type[BaseModel], path: KeyPath) -> dict[KeyPath, list[str]]:
    """What every key below a section means."""
    found: dict[KeyPath, list[str]] = {}
    for key, field in section.model_fields.items():
        if field.description:
            found[*path, key] = [" ".join(field.description.split())]
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found |= _descriptions(field.annotation, (*path, key))
    return found


def _reasons(protocols: Sequence[Protocol]) -> Iterator[tuple[int, list[str]]]:
    """Why defaults are what they are, at the entry that has the default variant."""
    kind = default_kind(protocols)
    for i, protocol in enumerate(protocols):
        if protocol.kind == kind and any(is_default(kind, options) for options, _ in protocol.choices()):
            yield i, in_short(kind)
