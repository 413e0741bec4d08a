"""Parties with bags of Gaussian rows for tests: a provider and a public table, loadable by reference in any process."""

import numpy as np
from support.synthetic import Table

from federation.contract.plugins import Reference
from parties.party_data.cohort import Holdings

COUNTS = np.array([[40, 10, 10], [10, 40, 10]])  # of the two bags of every party but those that differ
FIELDS = {  # of a plan for six such parties
    "public": Reference("support.bagged:public_table"),
    "features": ("standardise",),
    "parties": 6,
    "bags": 2,
    "largest_bag": 60,
    "delta": 1e-3,
}


def counts_of(party: int) -> np.ndarray:
    """Label counts (2, 3) of a party's bags; odd parties have more of the last class."""
    return COUNTS if party % 2 == 0 else COUNTS[:, ::-1]


def draw(labels: np.ndarray, key: int) -> np.ndarray:
    """Rows (n, 3) of three well separated classes."""
    return np.random.default_rng(key).normal(scale=0.7, size=(len(labels), 3)) + 2.0 * np.eye(3)[labels]


def public_table() -> Table:
    """Unlabelled rows of all classes."""
    return Table(draw(np.repeat(np.arange(3), 100), 99), ("p", "q", "r"))


class Parties:
    """Every party holds two bags of 60 rows in three classes; `broken` ones hold labels that do not exist.

    With `persons` the i-th row of a bag belongs to person i, who is in both bags.
    """

    def __init__(self, broken: tuple[int, ...] = (), persons: bool = False) -> None:
        self._broken, self._persons = set(broken), persons

    def holdings(self, party: int) -> Holdings:
        counts = counts_of(party)
        labels = np.concatenate([np.repeat(np.arange(3), bag) for bag in counts])
        bags = np.repeat([0, 1], counts.sum(axis=1))
        persons = np.tile(np.arange(60), 2) if self._persons else None
        return Holdings(party, draw(labels, party), labels + (9 if party in self._broken else 0), bags, persons)

    def evaluation(self) -> None:
        return None
