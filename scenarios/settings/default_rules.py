"""How protocols' defaults were chosen: for files that explain themselves, the record of a run, `federation show`."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from aggregator.contract import registry
from aggregator.contract.protocol import Rule
from scenarios.settings.protocol_options import BASELINES
from scenarios.settings.yaml_rules import dump

_WIDTH = 110


def why_default(kind: str) -> tuple[Rule, ...]:
    """How a kind's defaults were chosen; nothing of a baseline, which has none."""
    return () if kind in BASELINES else registry.protocol(kind).why_default


def in_short(kind: str) -> list[str]:
    """Each default with its rule, in lines of up to 110 letters, and where to read on what they were validated.

    Examples:
        >>> print(*in_short("weighted_lba"), sep="\\n")
        Default noise: gaussian; rule: with noise on the label sums it has a guarantee for all data, which the
            published release has not
        Default solver: exact; rule: it is where Adam would come with enough steps, whatever the size and the number
            of bags
        Validated on: see `federation show weighted_lba`
    """
    rules = why_default(kind)
    lines = [line for rule in rules for line in _wrapped(f"Default {rule.default}; rule: {rule.rule}")]
    return [*lines, f"Validated on: see `federation show {kind}`"] if rules else []


def recorded(kinds: Iterable[str]) -> list[dict[str, str]]:
    """The rules of several kinds as plain values, each kind once, for the record of a run.

    Examples:
        >>> {rule["protocol"] for rule in recorded(["private_labels", "pooled", "private_labels"])}
        {'private_labels'}
    """
    return [{"protocol": kind, **vars(rule)} for kind in dict.fromkeys(kinds) for rule in why_default(kind)]


def described(kind: str) -> tuple[dict[str, Any], list[str]]:
    """A protocol as plain values and in lines: what it is, its options with their defaults, how these were chosen.

    Raises `InputError` for a protocol that is unknown or cannot be used.
    """
    found = registry.protocol(kind)
    bases = (base for base in found.__mro__ if "__dataclass_fields__" in vars(base))  # options may be a base's
    about = "\n\n".join(inspect.cleandoc(base.__doc__ or "") for base in bases)
    options = {option.name: getattr(found(), option.name) for option in dataclasses.fields(found)}
    record = {"protocol": kind, "about": about, "defaults": options, "why_default": recorded([kind])}
    return record, list(_lines(kind, about, options))


def _lines(kind: str, about: str, options: dict[str, Any]) -> Iterator[str]:
    yield f"protocol {kind}"
    yield from about.splitlines()
    yield ""
    yield "As an entry of a scenario, with every default:"
    yield f"  - {dump({'kind': kind, **options}, flow=True).rstrip()}"
    if rules := why_default(kind):
        yield ""
        yield "How defaults were chosen:"
    for rule in rules:
        yield f"  {rule.default}"
        yield from _wrapped(f"    rule: {rule.rule}")
        yield from _wrapped(f"    validated: {rule.validated}")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent=(len(text) - len(text.lstrip()) + 4) * " ")
