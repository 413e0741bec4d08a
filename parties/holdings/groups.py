"""Classifiers of many parties behind one interface, whatever they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from parties.holdings.cohort import Cohort
from parties.holdings.isolation import Failure, isolated

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

    def votes(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The class that each party gives to each row: codes (P, N) in the smallest unsigned integer type.

        Among the classes that the party has seen, the smallest on ties. `out` takes the result where given. May raise
        anything when a classifier fails; then its group holds no other party.
        """
        ...

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Class probabilities (P, N, C), float64; 0 for the classes that a party has not seen. Raises as `votes`."""
        ...


def vote_type(classes: int) -> np.dtype[Any]:
    """The smallest unsigned integer type that holds the codes 0..classes-1."""
    return np.min_scalar_type(classes - 1)


@dataclass(frozen=True, eq=False)
class ConstantGroup:
    """Parties that have seen one class only, `seen` (P,) of `classes`, and so vote for it whatever they trained."""

    parties: np.ndarray
    seen: np.ndarray
    classes: int

    def votes(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The one class (`Group.votes`)."""
        if out is None:
            out = np.empty((len(self.parties), len(rows)), dtype=vote_type(self.classes))
        out[:] = self.seen[:, None]
        return out

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """1 for the one class (`Group.probabilities`)."""
        one_hot = np.eye(self.classes)[self.seen]
        return np.repeat(one_hot[:, None, :], len(rows), axis=1)


def asked(
    cohort: Cohort, groups: Iterable[Group], act: Callable[[Group], T]
) -> tuple[list[tuple[Group, T]], dict[int, str]]:
    """What `act` makes of each group, and why the parties of the other groups could not answer."""
    results: list[tuple[Group, T]] = []
    failures: dict[int, str] = {}
    for group in groups:
        parties = group.parties.tolist()
        outcome = isolated(cohort, parties[0], lambda group=group: act(group))  # type: ignore[misc]
        if isinstance(outcome, Failure):
            failures |= dict.fromkeys(parties, outcome.reason)
        else:
            results.append((group, outcome))
    return results, failures
