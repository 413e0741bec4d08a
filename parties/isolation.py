"""What goes wrong at one party stays with that party: the guarantee counts it as one uniform vote, no more."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from parties.holdings import Cohort

_log = logging.getLogger(__name__)
_LONGEST_REASON = 200

T = TypeVar("T")


@dataclass(frozen=True)
class Failure:
    """Why a party could not answer: the cause in a simulation, a fixed text in a deployment."""

    reason: str


def isolated(cohort: Cohort, party: int, act: Callable[[], T]) -> T | Failure:
    """The result of `act`, or the failure of this party whatever exception it raised.

    The text of an exception may quote private values, so it leaves a party in a simulation only; a deployed
    party finds it in its own log.
    """
    try:
        return act()
    except Exception as error:
        _log.debug("party %d could not answer", party, exc_info=True)
        if cohort.seed is None:
            return Failure("the party could not answer")
        return Failure(" ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_REASON])
