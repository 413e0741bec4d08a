"""Rules that the options of a protocol must keep together, with errors that say which ones clash."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from federation.contract.errors import InputError


def require_positive(name: str, value: float) -> None:
    """Raises `InputError` unless `value` is positive and finite.

    Examples:
        >>> require_positive("ridge", -1.0)
        Traceback (most recent call last):
        federation.contract.errors.InputError: ridge must be a positive number, got -1.0
    """
    if not 0 < value < math.inf:
        raise InputError(f"{name} must be a positive number, got {value}")


def refuse_misplaced(options: Any, names: tuple[str, ...], home: str, at_home: bool) -> None:
    """Refuse options that differ from their defaults where they mean nothing.

    `options` is a dataclass of options, `names` some of its fields, `home` the option under which they count, in
    words, and `at_home` whether that is chosen. Raises `InputError`.

    Examples:
        >>> from aggregator.protocols.soft_vote.soft_vote import SoftVote
        >>> SoftVote(perturb="output", shrinkage=0.5)
        Traceback (most recent call last):
        federation.contract.errors.InputError: shrinkage belongs to decoder: least_squares; remove it or choose that
    """
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    strays = [name for name in names if _plain(getattr(options, name)) != _plain(defaults[name])]
    if strays and not at_home:
        verb, them = ("belongs", "it") if len(strays) == 1 else ("belong", "them")
        raise InputError(f"{' and '.join(strays)} {verb} to {home}; remove {them} or choose that")


def _plain(value: Any) -> Any:
    """A list for a tuple, as JSON has it: scenarios and plans give options so."""
    return list(value) if isinstance(value, tuple) else value


def refuse_public_reach(sensitivity: str, protect: str) -> None:
    """Refuse a sensitivity that is a function of rows which are to be protected. Raises `InputError`."""
    if sensitivity == "public_features" and protect != "party":
        raise InputError(
            "sensitivity: public_features is a function of the auxiliary rows, one of which protect: "
            f"{protect} covers; use tight or diameter, or protect: party"
        )
