"""Target sets of `class_ratio`, and the check of floors on the label counts of bags, for simulations.

Target sets are unlabelled sets with shifted class shares, drawn from the test rows. Floors that variants declare for
label counts are checked against the bags of a simulation (`require_floors`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from federation.contract.errors import InputError, nearest_name
from federation.contract.randomness import generator
from federation.numerics.rows import Floats, Integers
from scenarios.data.tables import Table
from scenarios.settings.protocol_options import task
from scenarios.settings.schema import Scenario
from scenarios.settings.sweep import variants
from scenarios.settings.words import MOST_TARGET_ROWS, SHARES
from scenarios.simulated.bags import exact_counts, largest_size, shifted_shares
from scenarios.simulated.dealing import dealt
from scenarios.simulated.partition import smallest_count
from scenarios.simulated.simulation import Split


def wants_targets(scenario: Scenario) -> bool:
    """Whether a scenario estimates class ratios of sets that are drawn from its test rows, of which there are some."""
    return scenario.data.test != 0 and task(entry.kind for entry in scenario.protocols).targets


@dataclass(frozen=True, eq=False)
class Target:
    """One set: the wanted `share` of the varied class, `indices` (n,) into the table, exact `proportions` (C,)."""

    share: float
    indices: Integers
    proportions: Floats


def target_sets(
    table: Table,
    test: Integers,
    *,
    rows: int | None = None,
    shares: Sequence[float] = SHARES,
    vary: str | None = None,
    seed: int | None,
    split: int,
) -> list[Target]:
    """One set per share of the class `vary`, drawn from the rows `test` (T,) of `table` without replacement in a set.

    `vary` None is the first class, `rows` None as many as the test rows allow for all shares, up to 1000. Class counts
    are exact, fractions by the largest remainder. A set depends on `seed`, `split`, its share and its size, and not on
    the other shares. Raises `InputError` when the test rows of a class do not suffice or there is no such class.

    Examples:
        >>> table = Table("toy", ("x",), ("a", "b"), np.arange(100) % 2, (np.zeros((100, 1)),))
        >>> for one in target_sets(table, np.arange(100), rows=40, shares=(0.2, 0.5), seed=1, split=0):
        ...     print(len(one.indices), one.proportions)
        40 [0.2 0.8]
        40 [0.5 0.5]
    """
    if vary is not None and vary not in table.classes:
        raise InputError(
            f"data.targets.vary: '{table.name}' has no class '{vary}'; it has {', '.join(table.classes[:20])}"
            + nearest_name(vary, table.classes)
        )
    varied = 0 if vary is None else table.classes.index(vary)
    labels = table.labels[test]
    available = np.bincount(labels, minlength=len(table.classes))
    wanted = shifted_shares(np.array(shares, dtype=np.float64), np.full(len(shares), varied), len(table.classes))
    most = largest_size(lambda size: bool((exact_counts(wanted, size) <= available).all()), rows or MOST_TARGET_ROWS)
    size = rows or max(1, most)
    counts = exact_counts(wanted, size)
    at, label = np.unravel_index(np.argmax(counts - available), counts.shape)
    if counts[at, label] > available[label]:
        smaller = f"sets of {most} rows would do: " if most else ""
        raise InputError(
            f"data.targets: a set of {size} rows with the share {shares[int(at)]:g} of the class "
            f"'{table.classes[varied]}' needs {counts[at, label]} test rows of the class '{table.classes[label]}', but "
            f"there are {available[label]}; {smaller}lower data.targets.rows, leave out that share or "
            "raise data.test"
        )
    return [_drawn(table, test, share, needed, seed, split) for share, needed in zip(shares, counts, strict=True)]


def _drawn(table: Table, test: Integers, share: float, counts: Integers, seed: int | None, split: int) -> Target:
    """The first counts[c] rows of each class in an order drawn for this share."""
    shuffled = generator(seed, f"target set {share!r}", trial=split).permutation(test)
    labels = table.labels[shuffled]
    chosen = np.sort(dealt(labels, counts[None]))
    return Target(share, shuffled[chosen], counts / counts.sum())


def require_floors(scenario: Scenario, split: Split, place: str) -> None:
    """Refuse a variant whose `floor` some bag falls below, or would if any one label in it changed.

    In a deployment a floor cannot be checked without revealing something. A simulation makes up the parties, so it
    knows whether the floor holds.

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
