"""Classifiers of many parties behind one interface, whatever they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from federation.contract.query import Field, Question, Submission
from parties.holdings.cohort import Cohort
from parties.holdings.isolation import alone

T = TypeVar("T")


class Group(Protocol):
    """Trained classifiers of P parties, in no particular order.

    Rows are public, finite float64 (N, d) behind the feature map. A party's answers are the same bits whoever shares
    its group; they may be asked for in blocks of rows.
    """

    @property
    def parties(self) -> np.ndarray:
        """Ids (P,), int64."""
        ...

    def part(self, chosen: np.ndarray) -> Group:
        """Some of the parties: boolean `chosen` (P,)."""
        ...

    @property
    def gives_probabilities(self) -> bool:
        """Whether it can say how probable a class is; if not, it can only vote."""
        ...

    def votes(self, rows: np.ndarray) -> np.ndarray:
        """The class that each party gives to each row: codes (P, N) in the smallest unsigned integer type.

        Among the classes that the party has seen, the smallest on ties. May raise anything when a classifier fails;
        then its group holds no other party.
        """
        ...

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Class probabilities (P, N, C), float64; 0 for the classes that a party has not seen. Raises as `votes`."""
        ...


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

    def part(self, chosen: np.ndarray) -> ConstantGroup:
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
