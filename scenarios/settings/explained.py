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
    without_effect = dict(idle(scenario.data, scenario.protocols, scenario.privacy))
    plain = scenario.to_plain() | {"protocols": scenario.protocols}
    return head + "".join(_commented(Scenario, plain, (), without_effect))


def _commented(
    section: type[BaseModel], plain: Mapping[str, Any], path: KeyPath, without_effect: Mapping[KeyPath, str]
) -> Iterator[str]:
    indent = "  " * len(path)
    for key, field in section.model_fields.items():
        if field.description:
            yield f"{indent}# {' '.join(field.description.split())}\n"
        if why := without_effect.get((*path, key)):
            yield f"{indent}# Without effect here: {why}.\n"
        value, inner = plain[key], field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield f"{indent}{key}:\n"
            yield from _commented(inner, value, (*path, key), without_effect)
        elif key == "protocols":
            yield f"{indent}{key}:\n"
            yield from _entries(value, indent + "  ")
        else:
            yield f"{indent}{key}: {dump(value, flow=True)}"


def _entries(protocols: Sequence[Protocol], indent: str) -> Iterator[str]:
    """Protocols with the options that apply; the one with the default variant says why it is the default."""
    kind = default_kind(protocols)
    for protocol in protocols:
        if protocol.kind == kind and any(is_default(kind, options) for options, _ in protocol.choices()):
            yield from (f"{indent}# {line}\n" for line in in_short(kind))
        yield f"{indent}- {dump(protocol.shown(), flow=True)}"
