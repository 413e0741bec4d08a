"""The protocols of a scenario together: their variants differ, under names that files may have."""

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
    called: dict[str, int] = {}
    for position, protocol in enumerate(protocols):
        for options, _ in protocol.choices():
            asked, name = variant_name(protocol.kind, options), protocol.named(options)
            if len(name) > _LONGEST_NAME:
                raise refusal(
                    f"entry {position} (from 0) has a variant whose options make a name of {len(name)} letters, "
                    f"allowed are {_LONGEST_NAME}, as files are called by it; give it a name of its own with name"
                )
            if asked in first:
                alike = f"entries {first[asked]} and {position} (from 0) both ask"
                twice = f"entry {position} (from 0) asks twice"
                raise refusal(f"{twice if first[asked] == position else alike} for '{asked}'; remove one")
            same = name.lower()  # some file systems make no difference
            if same in called:
                raise refusal(
                    f"entries {called[same]} and {position} (from 0) both call a variant '{name}'; rename either"
                )
            first[asked] = called[same] = position
    return protocols


Protocols = Annotated[tuple[Protocol, ...], AfterValidator(_distinct)]
