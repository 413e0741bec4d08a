"""The small worlds of audits: their plans, and parties that hold the plain arrays of a worst case."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from aggregator.contract.protocol import Protocol
from aggregator.contract.registry import protocol
from aggregator.contract.session import Session
from aggregator.contract.worst_case import Rows, WorstCase
from aggregator.trial.plan import VariantPlan, WorldPlan
from aggregator.trial.trial import Views, World
from federation.contract.plugins import Reference
from parties.party_data.cohort import Cohort, Holdings
from scenarios.settings.classifier import LOGISTIC
from scenarios.settings.sweep import Variant
from scenarios.simulated.simulation import PublicRows

SEED = 1

_held: dict[int, Sequence[Rows]] = {}  # by number; the parties of an audit are in this process
_numbers = itertools.count()


def public_table(rows: list[list[float]]) -> PublicRows:
    """Of columns that are called by their numbers."""
    values = np.array(rows, dtype=np.float64)
    return PublicRows(values, tuple(map(str, range(values.shape[1]))), ())


class HeldRows:
    """Parties that hold rows by turns (`parties.party_data.cohort.Provider`)."""

    def __init__(self, number: int) -> None:
        self._rows = _held[number]

    def holdings(self, party: int) -> Holdings:
        """The rows of one party."""
        held = self._rows[party % len(self._rows)]
        return Holdings(party, held.rows, held.labels, held.bags, held.persons)

    def evaluation(self) -> None:
        """Nothing to evaluate on."""
        return None


@contextmanager
def cohort(rows: Sequence[Rows], parties: int) -> Iterator[Cohort]:
    """A simulation's node with so many parties that hold `rows` by turns."""
    number = next(_numbers)
    _held[number] = rows
    try:
        yield Cohort(
            Reference("scenarios.audits.small_worlds:HeldRows", {"number": number}).to_json(), 0, parties, SEED
        )
    finally:
        del _held[number]


def plan(worst: WorstCase, variant: Variant, epsilon: float, delta: float, there: bool) -> WorldPlan:
    """The plan of a worst case's world with one variant; noise is seeded, so that an audit finds the same each time."""
    public = worst.public_there if there and worst.public_there is not None else worst.public
    known: dict[str, Any] = {
        "world": f"audit|{variant.name}",
        "directory": "",
        "noise_seed": SEED,
        "simulation": True,
        "split": 0,
        "parties": 1,
        "parties_per_node": 1,
        "quorum": 1.0,
        "timeout": None,
        "classes": ("0", "1"),
        "class_names": "",
        "public": Reference("scenarios.audits.small_worlds:public_table", {"rows": public.tolist()}),
        "features": (),
        "classifier": {"name": LOGISTIC, "parameters": {}},
        "variants": (VariantPlan(variant.name, variant.kind, variant.options),),
        "epsilons": (epsilon,),
        "delta": delta,
        "budget": None,
        "draws": 1,
        "individual": 0,
    }
    return WorldPlan(**{**known, **worst.world})


def begun(worst: WorstCase, variant: Variant, epsilon: float, delta: float, there: bool = False) -> Session:
    """The session of a variant in the world of a worst case, with the options that make it small."""
    small = replace(variant, options={**variant.options, **worst.options})
    world = plan(worst, small, epsilon, delta, there)
    return chosen_of(small).begin(World(world, Views(world)).of(world.variants[0]), epsilon, 1)


def chosen_of(variant: Variant) -> Protocol:
    """The protocol with a variant's options. Raises `InputError`."""
    return protocol(variant.kind)(**variant.options)
