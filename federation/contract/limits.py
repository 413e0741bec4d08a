"""The largest sizes that a question may have: beyond them no machine has the memory, or anybody the time.

They come from the code and from a site's own configuration, never from whoever asks. Products of sizes are bounded in
exact integers before anything of that size is allocated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from federation.contract.errors import InputError

MOST_CONFIGURED = 2**31  # numbers that a site may allow
MOST_FEATURES = 100_000  # that a map makes of a row, and between its steps
MOST_COLUMNS = 2**24  # of raw rows
MOST_CLASSES = 2**16
MOST_BAGS = 2**20  # of a party, and cells of classes in its bags
MOST_STEPS = 64  # of a feature map
MOST_EPSILON = 1e100  # beyond it double precision overflows in the accountants
MOST_ROWS = 10**9  # of parties, and parties; a public guess of them, too
MOST_DRAWS = 10**6


@dataclass(frozen=True)
class Limits:
    """How many `numbers` a party may answer with, or hold at a time for an answer; a number has 8 bytes.

    Raises `InputError` for anything but 1 to 2^31 of them.

    Examples:
        >>> Limits().numbers
        33554432
    """

    numbers: int = 2**25

    def __post_init__(self) -> None:
        whole("numbers of a node's limits", self.numbers, 1, MOST_CONFIGURED)


def whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Raises `InputError` unless `value` is a whole number (no boolean) from `least` to `most`.

    Examples:
        >>> whole("rows", 10, 1, 10)
        >>> whole("rows", True, 1, 10)
        Traceback (most recent call last):
        federation.contract.errors.InputError: rows must be a whole number from 1 to 10, got True
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        upto = "" if most is None else f" to {most}"
        shown = f"{value!r:.40}" if not isinstance(value, int) or abs(value) < 10**18 else "one of more than 18 digits"
        raise InputError(f"{name} must be a whole number from {least}{upto}, got {shown}")


CODE = Limits()  # what holds where a site says nothing
SIMULATED = Limits(2**28)  # in a simulation, whose user pays for its memory
