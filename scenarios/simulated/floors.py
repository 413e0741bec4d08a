"""Floors that variants declare for the label counts of bags, against the bags of a simulation.

In a deployment nobody can check a floor without telling; whoever makes up the parties knows whether it is true.
"""

from __future__ import annotations

from federation.contract.errors import InputError
from scenarios.settings.schema import Scenario
from scenarios.settings.sweep import variants
from scenarios.simulated.partition import smallest_count
from scenarios.simulated.simulation import Split


def require_floors(scenario: Scenario, split: Split, place: str) -> None:
    """Refuse a variant whose `floor` some bag falls below, or would if any one label in it changed.

    `scenario` has no sweeps of worlds; `place` says in words which one this is. Raises `InputError`.
    """
    floors = {variant.name: variant.options.get("floor") for variant in variants(scenario)}
    declared = {name: floor for name, floor in floors.items() if floor is not None}
    if not declared:
        return
    person = scenario.data.person
    persons = None if person is None else split.table.groups[person]
    smallest = smallest_count(split.cut, split.table, persons, scenario.data.rows_per_person)
    for name, floor in declared.items():
        if floor >= smallest:
            lower = f"lower it to {smallest - 1}, " if smallest > 1 else ""
            raise InputError(
                f"'{name}' declares the floor {floor}: so many rows of every class in every bag, one changed label "
                f"aside; in {place} a bag has {smallest} of a class; {lower}deal larger or less skewed bags, or "
                "choose noise: dirichlet_shifted, which needs no floor"
            )
