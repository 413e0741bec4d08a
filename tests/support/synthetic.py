"""Gaussian classes for tests: a provider of parties and a public table, loadable by reference in any process."""

import os
from dataclasses import dataclass

import numpy as np

from parties.party_data.cohort import Holdings


def draw(key: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, 4) of three well separated classes."""
    random = np.random.default_rng(key)
    labels = random.integers(0, 3, rows)
    centres = np.array([[2.0, 0, 0, 0], [0, 2.0, 0, 0], [0, 0, 2.0, 0]])
    return random.normal(scale=0.7, size=(rows, 4)) + centres[labels], labels


@dataclass(frozen=True)
class Table:
    rows: np.ndarray
    columns: tuple[str, ...] = ("p", "q", "r", "s")
    text_columns: tuple[int, ...] = ()


def public_table() -> Table:
    return Table(draw(99, 120)[0])


class Parties:
    """Every party holds 6 rows, `small` ones 3; `broken` ones hold a NaN, `deadly` ones kill their process."""

    def __init__(
        self,
        broken: tuple[int, ...] = (),
        small: tuple[int, ...] = (),
        deadly: tuple[int, ...] = (),
        flag: str = "",
    ) -> None:
        self._broken, self._small, self._deadly, self._flag = set(broken), set(small), set(deadly), flag

    def holdings(self, party: int) -> Holdings:
        if party in self._deadly and not (self._flag and os.path.exists(self._flag)):
            if self._flag:
                open(self._flag, "w").close()
            os._exit(1)
        rows, labels = draw(1000 + party, 6)
        if party in self._broken:
            rows[0, 0] = np.nan
        if party in self._small:
            rows, labels = rows[:3], np.arange(3)
        return Holdings(party, rows, labels)

    def evaluation(self) -> tuple[np.ndarray, np.ndarray]:
        return draw(98, 90)
