"""Isolation of faults, and classifiers of many parties behind one interface.

A failure at one party affects only that party: the guarantee counts it as one uniform vote.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from federation.contract.query import Field, Question, Submission
from parties.party_data.cohort import Cohort, DroppedOut

_log = logging.getLogger(__name__)
_LONGEST_REASON = 200
T = TypeVar("T")
DROPPED_OUT = "dropped out"  # why a party of a simulation did not answer


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


class Group(Protocol):
    """Trained classifiers of P parties, in no particular order.

    Rows are public, finite float64 (N, d) behind the feature map. A party's answers are the same bits whoever shares
    its group; they may be asked for in blocks of rows.
    """

    @property
    def parties(self) -> np.ndarray:
        """Ids (P,), int64."""

    def part(self, chosen: np.ndarray) -> "Group":
        """Some of the parties: boolean `chosen` (P,)."""

    @property
    def gives_probabilities(self) -> bool:
        """Whether it can say how probable a class is; if not, it can only vote."""

    def votes(self, rows: np.ndarray) -> np.ndarray:
        """The class that each party gives to each row: codes (P, N) in the smallest unsigned integer type.

        Among the classes that the party has seen, the smallest on ties. May raise anything when a classifier fails;
        then its group holds no other party.
        """

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Class probabilities (P, N, C), float64; 0 for the classes that a party has not seen. Raises as `votes`."""


def vote_type(classes: int) -> np.dtype[Any]:
    """The smallest unsigned integer type that holds the codes 0..classes-1.

    Examples:
        >>> vote_type(256), vote_type(257)
        (dtype('uint8'), dtype('uint16'))
    """
    return np.min_scalar_type(classes - 1)


@dataclass(frozen=True, eq=False)
class ConstantGroup:
    """Parties that have seen one class only, `seen` (P,) of `classes`, and so vote for it whatever they trained."""

    parties: np.ndarray
    seen: np.ndarray
    classes: int
    gives_probabilities: ClassVar[bool] = True

    def part(self, chosen: np.ndarray) -> "ConstantGroup":
        """Some of the parties (`Group.part`)."""
        return replace(self, parties=self.parties[chosen], seen=self.seen[chosen])

    def votes(self, rows: np.ndarray) -> np.ndarray:
        """The one class (`Group.votes`)."""
        return np.full((len(self.parties), len(rows)), self.seen[:, None], dtype=vote_type(self.classes))

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """1 for the one class (`Group.probabilities`)."""
        one_hot = np.eye(self.classes)[self.seen]
        return np.repeat(one_hot[:, None, :], len(rows), axis=1)


def asked(
    cohort: Cohort, groups: Iterable[Group], act: Callable[[Group], T]
) -> tuple[list[tuple[np.ndarray, T]], dict[int, str]]:
    """What `act` makes of each group, after its parties; and why the parties of the other groups could not answer."""
    first = {int(group.parties[0]): group for group in groups}
    results, causes = alone(cohort, first, lambda party: act(first[party]))
    failures = {party: cause for one, cause in causes.items() for party in first[one].parties.tolist()}
    return [(first[party].parties, result) for party, result in results.items()], failures


def stacked(
    question: Question, parts: Sequence[tuple[np.ndarray, Mapping[str, np.ndarray]]], failures: Mapping[int, str]
) -> Submission:
    """The submission of parties (P,) that answered in parts, each with the question's fields of its parties."""

    def joined(name: str, declared: Field) -> np.ndarray:
        arrays = [found[name].reshape(len(parties), *declared.shape) for parties, found in parts]
        if len(arrays) == 1:  # not copied: votes may be most of what a node has in memory
            return arrays[0]
        return np.concatenate([np.empty((0, *declared.shape), declared.dtype), *arrays])

    parties = np.concatenate([np.empty(0, np.int64), *(parties for parties, _ in parts)])
    arrays = {name: joined(name, declared) for name, declared in question.fields().items()}
    return Submission(question.kind, parties, arrays, None, failures)
