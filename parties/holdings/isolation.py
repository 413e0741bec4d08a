"""What goes wrong at one party stays with that party: the guarantee counts it as one uniform vote, no more."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from parties.holdings.cohort import Cohort, DroppedOut

_log = logging.getLogger(__name__)
_LONGEST_REASON = 200
DROPPED_OUT = "dropped out"  # why a party of a simulation did not answer

T = TypeVar("T")


class FailedBefore(Exception):
    """Raised for a party that could not answer before; its text is the cause that `alone` gave then."""


def alone(cohort: Cohort, parties: Iterable[int], act: Callable[[int], T]) -> tuple[dict[int, T], dict[int, str]]:
    """What `act` makes of each party by id, and why the remaining parties could not answer, whatever it raised.

    The text of an exception may quote private values, so it leaves a party in a simulation only; a deployed
    party finds it in its own log.

    Examples:
        >>> node = Cohort("{}", first=0, count=3, seed=1)
        >>> alone(node, node.parties, lambda party: 6 // party)
        ({1: 6, 2: 3}, {0: 'ZeroDivisionError: integer division or modulo by zero'})
    """
    results: dict[int, T] = {}
    failures: dict[int, str] = {}
    for party in parties:
        try:
            results[party] = act(party)
        except DroppedOut:
            failures[party] = DROPPED_OUT
        except FailedBefore as error:
            failures[party] = str(error)
        except Exception as error:
            _log.debug("party %d could not answer", party, exc_info=True)
            cause = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_REASON]
            failures[party] = "the party could not answer" if cohort.seed is None else cause
    return results, failures


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
    positions = dict(zip(parties.tolist(), everyone[:, None], strict=True))
    results, failures = alone(cohort, positions, lambda party: act(positions[party]))
    return [(positions[party], result) for party, result in results.items()], failures
