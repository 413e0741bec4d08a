"""Parties with rows and real labels of a linear law for tests: a provider and a public table, loadable by reference."""

import numpy as np
from support.synthetic import Table

from federation.contract.plugins import Reference
from parties.party_data.cohort import Holdings

WEIGHTS = np.array([1.0, -2.0, 0.5])
RANGE = (-10.0, 10.0)
ROWS = 80
FIELDS = {  # of a plan for six such parties
    "public": Reference("support.linear_labels:public_table"),
    "features": ("constant",),
    "classes": (),
    "class_names": "the range is declared",
    "label_range": RANGE,
    "parties": 6,
    "largest_bag": 87,
    "smallest_bag": 80,
    "delta": 1e-3,
}


def draw(key: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, 3) and labels x'w + e, e of variance .01."""
    random = np.random.default_rng(key)
    features = random.normal(size=(rows, 3))
    return features, features @ WEIGHTS + 0.1 * random.normal(size=rows)


def public_table() -> Table:
    """Rows without labels."""
    return Table(draw(99, 200)[0], ("p", "q", "r"))


class Parties:
    """Every party holds 80 rows, odd ones 7 more; a `broken` one holds texts for labels, a `loud` one enormous ones."""

    def __init__(self, broken: tuple[int, ...] = (), loud: tuple[int, ...] = ()) -> None:
        self._broken, self._loud = set(broken), set(loud)

    def holdings(self, party: int) -> Holdings:
        rows, labels = draw(party, ROWS + 7 * (party % 2))
        if party in self._broken:
            return Holdings(party, rows, labels.astype(str))
        if party in self._loud:
            labels = labels * 1e9
            labels[0] = np.nan
        return Holdings(party, rows, labels)

    def evaluation(self) -> None:
        return None
