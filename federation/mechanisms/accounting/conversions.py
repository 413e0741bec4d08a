"""What a guarantee for one unit is worth for another: the conversions that can be proved, and no other."""

from __future__ import annotations

import math
from dataclasses import replace

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit

_MOST_EPSILON = 20.0  # beyond it a converted guarantee says nothing that is worth writing down


def group_delta(epsilon: float, delta: float, steps: int) -> float:
    """The delta of an (epsilon, delta)-private release for neighbours `steps` changes apart, at `steps` epsilon.

    delta (e^(k epsilon) - 1)/(e^epsilon - 1), by k triangle inequalities (Vadhan 2017, Lemma 2.2 with its exact sum).
    At most 1.

    Examples:
        >>> group_delta(1.0, 1e-6, 2)  # (1 + e) delta
        3.718e-06
    """
    return min(1.0, delta * math.fsum(math.exp(step * epsilon) for step in range(steps)))


def steps_between(held: Guarantee, unit: Unit, adjacency: Adjacency, rows_per_person: int = 0) -> int:
    """How many changes of the unit that a guarantee protects make up one change of another unit.

    - Replacing a unit replaces any part of it: 1.
    - Where units are added and removed, a replaced unit, or any change within one, is one that leaves and one that
      comes: 2. That takes for granted that one unit fewer is an input, too.
    - What protects labels or rows protects all labels of a person with at most `rows_per_person` rows as so many
      changes; 0 says that there is no such bound.

    Raises `InputError` where nothing is proved: a replaced unit says nothing of one that is added, as numbers of units
    may be told exactly, and labels nothing of rows, whose features may go out as they are.

    Examples:
        >>> party = Guarantee(1.0, 0.0, Unit.PARTY, Adjacency.REPLACE, "laplace")
        >>> steps_between(party, Unit.LABEL, Adjacency.REPLACE)
        1
        >>> row = Guarantee(1.0, 0.0, Unit.ROW, Adjacency.ADD_REMOVE, "laplace")
        >>> steps_between(row, Unit.ROW, Adjacency.REPLACE), steps_between(row, Unit.PERSON, Adjacency.REPLACE, 3)
        (2, 6)
    """
    if (held.unit, held.adjacency) == (unit, adjacency):
        return 1
    comes_and_goes = held.adjacency is Adjacency.ADD_REMOVE
    each = 2 if comes_and_goes else 1
    if comes_and_goes or adjacency is Adjacency.REPLACE:
        if held.unit.covers(unit) and (adjacency is Adjacency.REPLACE or unit is Unit.ROW):
            return each
        if unit is Unit.PERSON and adjacency is Adjacency.REPLACE and held.unit in (Unit.LABEL, Unit.ROW):
            if rows_per_person:
                return each * rows_per_person
            raise InputError(
                f"what protects one {held.unit} protects a person only where a person has at most so many rows; "
                "declare rows_per_person"
            )
    raise InputError(
        f"nothing is proved for {unit}/{adjacency} from a release that protects {held.unit}/{held.adjacency}"
    )


def converted(held: Guarantee, unit: Unit, adjacency: Adjacency, rows_per_person: int = 0) -> Guarantee:
    """The guarantee for another unit that follows from one that is held.

    Raises `InputError` as `steps_between`, and where the epsilon that follows is above 20.

    Examples:
        >>> row = Guarantee(1.0, 1e-6, Unit.ROW, Adjacency.ADD_REMOVE, "gaussian", gaussian_mu=0.25)
        >>> found = converted(row, Unit.ROW, Adjacency.REPLACE)
        >>> found.epsilon, found.delta, found.gaussian_mu
        (2.0, 3.718e-06, 0.5)
    """
    steps = steps_between(held, unit, adjacency, rows_per_person)
    epsilon = steps * held.epsilon
    if steps > 1 and epsilon > _MOST_EPSILON:
        raise InputError(
            f"epsilon {held.epsilon:g} for {held.unit}/{held.adjacency} is {epsilon:g} for {unit}/{adjacency}, which "
            "protects nobody"
        )
    delta = group_delta(held.epsilon, held.delta, steps)
    mu = None if held.gaussian_mu is None else steps * held.gaussian_mu
    return replace(held, unit=unit, adjacency=adjacency, epsilon=epsilon, delta=delta, gaussian_mu=mu)
