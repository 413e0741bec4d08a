"""The list `protocols`: different variants, under names that files may have."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from scenarios.settings.problems import refusal, rule
from scenarios.settings.protocol_options import Protocol, variant_name

_LONGEST_NAME = 200  # file systems allow 255 bytes, of which suffixes take some


def _distinct(protocols: tuple[Protocol, ...]) -> tuple[Protocol, ...]:
    if not protocols:
        raise rule("must not be empty")
    first: dict[str, int] = {}
    for position, protocol in enumerate(protocols):
        for options, _ in protocol.choices():
            name = variant_name(protocol.kind, options)
            if len(name) > _LONGEST_NAME:
                raise refusal(
                    f"entry {position} (from 0) has a variant whose options make a name of {len(name)} letters, "
                    f"allowed are {_LONGEST_NAME}, as files are called by it; shorten the lists among its options"
                )
            if name in first:
                alike = f"entries {first[name]} and {position} (from 0) both ask"
                twice = f"entry {position} (from 0) asks twice"
                raise refusal(f"{twice if first[name] == position else alike} for '{name}'; remove one")
            first[name] = position
    return protocols


Protocols = Annotated[tuple[Protocol, ...], AfterValidator(_distinct)]
