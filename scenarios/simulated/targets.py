"""Unlabelled sets with shifted class shares, drawn from the test rows: what class ratios are estimated of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import AfterValidator, Field

from federation.contract.errors import InputError, nearest_name
from federation.contract.randomness import generator
from scenarios.data.tables import Table
from scenarios.settings.problems import rule
from scenarios.settings.protocol_options import task
from scenarios.settings.section import Count, Section
from scenarios.settings.values import ClassName, Sweep
from scenarios.simulated.composition import exact_counts, largest_size, shifted_shares

if TYPE_CHECKING:
    from scenarios.settings.schema import Scenario

_MOST_ROWS = 1000  # of a set whose size is not given
_SHARES = tuple(round(0.1 * tenths, 1) for tenths in range(1, 10))


def _distinct(shares: tuple[float, ...]) -> tuple[float, ...]:
    if not shares or len(set(shares)) < len(shares):
        raise rule("must be one or more different shares")
    return shares


class Targets(Section):
    """The target sets: one for each share of one class, the other classes in equal parts."""

    rows: Annotated[Count | None, Sweep()] = Field(
        default=None,
        description=f"Rows of each set; null takes as many as the test rows allow for all shares, up to {_MOST_ROWS}.",
    )
    shares: Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], AfterValidator(_distinct)] = Field(
        default=_SHARES,
        description="Shares of the varied class, one set for each; the other classes have equal parts of the rest.",
    )
    vary: Annotated[ClassName | None, Sweep()] = Field(
        default=None, description="Name of the class whose share varies; null is the first class."
    )


def wants_targets(scenario: Scenario) -> bool:
    """Whether a scenario estimates class ratios."""
    return task(entry.kind for entry in scenario.protocols).targets


@dataclass(frozen=True, eq=False)
class Target:
    """One set: the wanted `share` of the varied class, `indices` (n,) into the table, exact `proportions` (C,)."""

    share: float
    indices: np.ndarray
    proportions: np.ndarray
    table: Table = field(repr=False)

    @property
    def rows(self) -> np.ndarray:
        """Raw rows (n, columns), float64, read anew at each call."""
        return self.table.rows(self.indices)


def target_sets(
    table: Table, test: np.ndarray, targets: Targets | None, *, seed: int | None, split: int
) -> list[Target]:
    """One set per share, drawn from the rows `test` (T,) of `table` without replacement within a set.

    `targets` None takes the defaults. Class counts are exact, fractions by the largest remainder. A set depends on
    `seed`, `split`, its share and its size, and not on the other shares. Raises `InputError` when the test rows of a
    class do not suffice or there is no such class.
    """
    known = targets or Targets()
    varied = _varied(table, known.vary)
    labels = table.labels[test]
    available = np.bincount(labels, minlength=len(table.classes))
    wanted = np.array(known.shares, dtype=np.float64)
    shares = shifted_shares(wanted, np.full(len(wanted), varied), len(table.classes))
    asked = known.rows or _MOST_ROWS
    most = largest_size(lambda rows: bool((exact_counts(shares, rows) <= available).all()), asked)
    size = known.rows or max(1, most)
    counts = exact_counts(shares, size)
    at, label = np.unravel_index(np.argmax(counts - available), counts.shape)
    if counts[at, label] > available[label]:
        smaller = f"sets of {most} rows would do: " if most else ""
        raise InputError(
            f"data.targets: a set of {size} rows with the share {known.shares[at]:g} of the class "
            f"'{table.classes[varied]}' needs {counts[at, label]} test rows of the class '{table.classes[label]}', but "
            f"there are {available[label]}; {smaller}lower data.targets.rows, leave out that share or "
            "raise data.test"
        )
    return [_drawn(table, test, share, needed, seed, split) for share, needed in zip(known.shares, counts, strict=True)]


def _varied(table: Table, name: str | None) -> int:
    if name is None:
        return 0
    if name not in table.classes:
        raise InputError(
            f"data.targets.vary: '{table.name}' has no class '{name}'; it has {', '.join(table.classes[:20])}"
            + nearest_name(name, table.classes)
        )
    return table.classes.index(name)


def _drawn(table: Table, test: np.ndarray, share: float, counts: np.ndarray, seed: int | None, split: int) -> Target:
    """The first counts[c] rows of each class in an order drawn for this share."""
    shuffled = generator(seed, f"target set {share!r}", trial=split).permutation(test)
    labels = table.labels[shuffled]
    by_class = np.argsort(labels, kind="stable")
    supply = np.bincount(labels, minlength=len(counts))
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(supply) - supply, supply)
    chosen = np.sort(by_class[rank < np.repeat(counts, supply)])
    return Target(share, shuffled[chosen], counts / counts.sum(), table)
