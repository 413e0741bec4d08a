"""What goes wrong at one party stays with that party: the guarantee counts it as one uniform vote, no more."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from parties.holdings.cohort import Cohort, DroppedOut

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
    except DroppedOut as absence:
        return Failure(str(absence))
    except Exception as error:
        _log.debug("party %d could not answer", party, exc_info=True)
        if cohort.seed is None:
            return Failure("the party could not answer")
        return Failure(" ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_REASON])


def jointly(
    cohort: Cohort, parties: np.ndarray, act: Callable[[np.ndarray], T]
) -> tuple[list[tuple[np.ndarray, T]], dict[int, str]]:
    """What `act` makes of the parties at given positions: of all at once, or of each alone where that raises.

    So only the culprits fail. `act` takes positions in `parties` (P,) and must not let one party's result depend on
    the others. Returns results with the positions that they are of, in order, and why the other parties have none.
    """
    everyone = np.arange(len(parties))
    if len(parties) > 1:
        try:
            return [(everyone, act(everyone))], {}
        except Exception:
            _log.debug("%d parties could not be served at once", len(parties), exc_info=True)
    results: list[tuple[np.ndarray, T]] = []
    failures: dict[int, str] = {}
    for position, party in enumerate(parties.tolist()):
        alone = everyone[position : position + 1]
        outcome = isolated(cohort, party, lambda alone=alone: act(alone))  # type: ignore[misc]
        if isinstance(outcome, Failure):
            failures[party] = outcome.reason
        else:
            results.append((alone, outcome))
    return results, failures
