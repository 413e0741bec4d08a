"""Parties with rows of two classes for tests: a provider and a public table, loadable by reference."""

from collections.abc import Sequence

import numpy as np
from support import worlds
from support.synthetic import Table

from aggregator.trial.plan import VariantPlan
from federation.contract.plugins import Reference
from parties.party_data.cohort import Cohort, Holdings

CENTRE = np.array([1.0, -0.5, 0.0])
ROWS = 60


def draw(key: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, 3) around CENTRE (class 1) or -CENTRE (class 0)."""
    random = np.random.default_rng(key)
    labels = random.integers(0, 2, rows)
    return random.normal(scale=0.7, size=(rows, 3)) + np.outer(2 * labels - 1, CENTRE), labels


def public_table() -> Table:
    """Rows without labels."""
    return Table(draw(99, 400)[0], ("p", "q", "r"))


def plan_fixture(kind, variants):
    """A fixture that makes plans for six such parties, with variants of one protocol: their options by name."""
    return worlds.plan_fixture(
        {name: VariantPlan(name, kind, options) for name, options in variants.items()},
        public=Reference("support.two_class_parties:public_table"),
        features=("standardise",),
        classes=("no", "yes"),
        parties=6,
        largest_bag=67,
        smallest_bag=60,
        private_rows=381,
        epsilons=(1.0, 8.0),
        delta=1e-5,
        draws=2,
    )


class Parties:
    """Every party holds 60 rows, odd ones 7 more.

    A `broken` one holds texts for labels, a `strange` one labels that are no classes, a `huge` one a row of 1.7e308, a
    `doubled` one two rows of one person, an `empty` one no row, and a `missing` one a NaN.
    """

    def __init__(self, **odd: Sequence[int]) -> None:
        assert odd.keys() <= {"broken", "strange", "huge", "doubled", "empty", "missing"}
        self._odd = odd

    def holdings(self, party: int) -> Holdings:
        rows, labels = draw(party, ROWS + 7 * (party % 2))
        kinds = {kind for kind, parties in self._odd.items() if party in parties}
        persons = np.arange(len(labels)) // 2 if "doubled" in kinds else None
        if "broken" in kinds:
            return Holdings(party, rows, labels.astype(str))
        if "strange" in kinds:
            labels = labels * 1e9
            labels[0] = np.nan
        if "empty" in kinds:
            rows, labels = rows[:0], labels[:0]
        if "missing" in kinds:
            rows[0, 0] = np.nan
        if "huge" in kinds:
            rows[0] = 1.7e308
        return Holdings(party, rows, labels, persons=persons)

    def evaluation(self) -> None:
        return None


ODD = Reference("support.two_class_parties:Parties", {"broken": [1], "strange": [2], "huge": [3], "doubled": [4]})


def cohort(first=0, count=6):
    return Cohort(ODD.to_json(), first, count, 1)


def deployed(public=True):
    """One party at a site that has paid."""
    return Cohort(ODD.to_json(), 0, 1, None, public, paid=True)
