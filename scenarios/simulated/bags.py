"""Bags of simulated parties, as offsets into their rows, and sets of rows with prescribed class shares.

Sets with prescribed shares have exact counts and the largest size that the rows allow.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from federation.contract.validation import apart
from federation.numerics.rows import Floats, Integers
from scenarios.settings.words import MAJORITY


def even_bags(offsets: Integers, bags: int) -> Integers:
    """Bag offsets (K B + 1,) that cut each party's rows, offsets (K + 1,), in `bags` parts of nearly equal size.

    Raises `InputError` when a party has fewer rows than bags.

    Examples:
        >>> even_bags(np.array([0, 5, 9]), 2)  # parties of 5 and 4 rows
        array([0, 2, 5, 7, 9])
    """
    sizes = np.diff(offsets)
    if sizes.min() < bags:
        poorest = int(np.argmin(sizes))
        raise InputError(
            f"parties.bags is {bags}, but party {poorest} has {sizes[poorest]} rows, and every bag needs one; lower "
            "parties.bags, data.auxiliary or data.test"
        )
    starts = offsets[:-1, None] + sizes[:, None] * np.arange(bags) // bags
    return np.append(starts.ravel(), offsets[-1])


def bags_by_value(order: Integers, offsets: Integers, values: NDArray[Any]) -> tuple[Integers, Integers]:
    """Rows and bag offsets with one bag per value within each party, values in sorted order.

    Party k holds the rows order[offsets[k]:offsets[k + 1]] of a table with `values` (n,); it keeps them.

    Examples:
        >>> wards = np.array(["w", "v", "w", "v"])
        >>> bags_by_value(np.array([0, 1, 2, 3]), np.array([0, 3, 4]), wards)
        (array([1, 0, 2, 3]), array([0, 1, 3, 4]))
    """
    party = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    _, codes = np.unique(values[order], return_inverse=True)
    sorted_rows = np.lexsort((codes, party))
    party, codes = party[sorted_rows], codes[sorted_rows]
    starts = np.flatnonzero((np.diff(party) != 0) | (np.diff(codes) != 0)) + 1
    return order[sorted_rows], np.concatenate([[0], starts, [len(order)]]).astype(np.int64)


def require_one_holder(order: Integers, offsets: Integers, persons: NDArray[Any], column: str) -> None:
    """Refuse when two parties hold rows of one person; `persons` (n,) says whose row of the table each is.

    Raises `InputError`.
    """
    party = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    names, codes = np.unique(persons[order], return_inverse=True)
    first = np.full(len(names), len(offsets))
    np.minimum.at(first, codes, party)
    elsewhere = np.flatnonzero(party != first[codes])
    if len(elsewhere):
        number, row = len(np.unique(codes[elsewhere])), elsewhere[0]
        person = codes[row]
        raise InputError(
            f"data.person: {number} of the {len(names)} persons hold rows at several parties, such as "
            f"{column}={names[person]} at parties {first[person]} and {party[row]}; deal whole persons, with "
            "parties.partition: {by: COLUMN} or a single party"
        )


def bag_shares(kind: str, value: Any, classes: int) -> Floats:
    """Class shares (P, C) of bags 0, 1, ..., P - 1, which the bags after them repeat.

    {"majority": r}: P = C, and bag b has 1 - (C - 1) r of class b and r of every other (Iyer et al. 2016, Sec. 4.2).
    {"proportions": shares}: as listed. Raises `InputError` when these do not suit C classes.
    """
    if kind == MAJORITY:
        if value >= 1 / classes:
            limit, given = apart(1 / classes, value)
            equal = "" if limit == given else f" = {limit}"
            raise InputError(
                f"parties.partition.majority must be below 1/{classes}{equal} for {classes} classes, "
                f"got {given}: no class would be in the majority"
            )
        return shifted_shares(np.full(classes, 1 - (classes - 1) * value), np.arange(classes), classes)
    for listed in value:
        if len(listed) != classes:
            raise InputError(
                f"parties.partition.proportions must list one share for each of the {classes} classes, got {listed}"
            )
    shares = np.array(value, dtype=np.float64)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def shifted_shares(shares: Floats, varied: Integers, classes: int) -> Floats:
    """Class shares (P, C): shares[p] of class varied[p], the rest in equal parts of the others.

    Examples:
        >>> shifted_shares(np.array([0.8, 0.4]), np.array([0, 2]), classes=3)
        array([[0.8, 0.1, 0.1],
               [0.3, 0.3, 0.4]])
    """
    rest = (1 - shares) / (classes - 1)
    out = np.repeat(rest[:, None], classes, axis=1)
    out[np.arange(len(shares)), varied] = shares
    return out


def exact_counts(shares: Floats, size: int, *, in_turn: bool = False) -> Integers:
    """Class counts (P, C), int64, of sets of `size` rows: the shares (P, C) of it, fractions by largest remainder.

    Equal remainders go to the first classes; `in_turn` to those from class p on in set p, so that over many sets no
    class gets more than others.

    Examples:
        >>> exact_counts(np.array([[0.5, 0.3, 0.2], [0.9, 0.05, 0.05]]), 7)
        array([[4, 2, 1],
               [6, 1, 0]])
    """
    wanted = shares * size
    counts = np.floor(wanted).astype(np.int64)
    remainders = np.round(wanted - counts, 9)  # shares written with few digits are rounded themselves
    sets, classes = shares.shape
    turn = (np.arange(classes) - np.arange(sets)[:, None] * in_turn) % classes
    largest = np.lexsort((turn, -remainders), axis=1)
    rank = np.argsort(largest, axis=1, kind="stable")
    return np.asarray(counts + (rank < (size - counts.sum(axis=1))[:, None]))


def largest_size(fits: Callable[[int], bool], most: int) -> int:
    """A size from 1 to `most` that fits while one more does not, 0 when not even 1 does.

    Examples:
        >>> largest_size(lambda size: size**2 <= 200, 1000)
        14
    """
    if fits(most):
        return most
    low, high = 0, most  # bisection: `low` fits, or is 0; `high` does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def bag_counts(
    shares: Floats, bags: int, size: int | None, available: Integers, class_names: Sequence[str]
) -> Integers:
    """Class counts (B, C), int64, of `bags` bags of `size` rows, or as many as fit when None; shares (P, C) repeat.

    `available` (C,) rows of each class must suffice for all bags together, else `InputError`.
    """
    times = np.bincount(np.arange(bags) % len(shares), minlength=len(shares))

    def needed(rows: int) -> Integers:
        return np.asarray(times @ exact_counts(shares, rows, in_turn=True))

    most = largest_size(lambda rows: bool((needed(rows) <= available).all()), int(available.sum()))
    size = max(1, most) if size is None else size
    label = int(np.argmax(needed(size) - available))
    if needed(size)[label] > available[label]:
        smaller = f"bags of {most} rows would do: " if most else ""
        raise InputError(
            f"parties.partition: {bags} bags of {size} rows with these shares need {needed(size)[label]} private rows "
            f"of the class '{class_names[label]}', but there are {available[label]}; {smaller}lower parties.rows, "
            "the number of parties or bags, data.auxiliary or data.test"
        )
    return exact_counts(shares, size, in_turn=True)[np.arange(bags) % len(shares)]
