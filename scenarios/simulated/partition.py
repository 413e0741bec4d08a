"""Partition of a data set for a simulation: public rows, test rows, and the rows of each party and of each bag."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError, nearest_name
from federation.contract.randomness import generator
from federation.numerics.rows import Integers
from parties.responses.bags import kept_rows
from scenarios.data.catalogue import is_file_name
from scenarios.data.tables import Table
from scenarios.settings.words import PRESCRIBED
from scenarios.simulated.bags import bag_counts, bag_shares, bags_by_value, even_bags, require_one_holder
from scenarios.simulated.dealing import OFFICIAL, dealt, dealt_by_class, quantities, set_apart

_FEWEST_GROUPS = 8  # of which a quarter is held out


@dataclass(frozen=True, eq=False)
class Cut:
    """Disjoint row indices of a table (int64): `auxiliary` (N,), `test` (T,) and the parties' own.

    Party k holds order[offsets[k]:offsets[k + 1]]; `party_names` (K of them) are those of the groups, if any. Bag b of
    all, which are numbered party after party, is order[bag_offsets[b]:bag_offsets[b + 1]]; where bags of all parties
    follow from a column it is a part of the bag `common`[b], one of `common_bags`. `shifted` says that the
    auxiliary rows have other features than the rest, or come from elsewhere, which is public; otherwise they are a
    random sample of all.
    """

    auxiliary: Integers
    test: Integers
    order: Integers | range
    offsets: Integers
    bag_offsets: Integers
    party_names: tuple[str, ...] | None = None
    shifted: bool = False
    common: Integers | None = None
    common_bags: int = 0

    def __repr__(self) -> str:
        bags = f" in {len(self.bag_sizes)} bags" if self.bags_per_party > 1 else ""
        public, test, held = map(len, (self.auxiliary, self.test, self.order))
        return f"Cut({public} auxiliary, {test} test, {held} private rows of {self.parties} parties{bags})"

    @property
    def parties(self) -> int:
        """Number of parties K."""
        return len(self.offsets) - 1

    def party(self, k: int) -> Integers | range:
        """The row indices of party `k`."""
        return self.order[self.offsets[k] : self.offsets[k + 1]]

    def bags(self, k: int) -> Integers:
        """The bag 0, 1, ... of each row of party `k`."""
        first, last = self._first_bags[k : k + 2]
        numbers = np.arange(last - first) if self.common is None else self.common[first:last]
        return np.repeat(numbers, self.bag_sizes[first:last])

    @property
    def bag_sizes(self) -> Integers:
        """Rows of every bag of all parties; public, as is which row lies in which bag."""
        return np.diff(self.bag_offsets)

    @property
    def largest_bag(self) -> int:
        """Rows of the largest bag."""
        return int(self.bag_sizes.max())

    @cached_property
    def bags_per_party(self) -> int:
        """The most bags that a party has, or how many there are where those of all follow from a column."""
        return self.common_bags or int(np.diff(self._first_bags).max())

    @cached_property
    def _first_bags(self) -> Integers:
        """The number of each party's first bag (K + 1,)."""
        return np.searchsorted(self.bag_offsets, self.offsets)


def smallest_count(pieces: Cut, table: Table, persons: NDArray[Any] | None = None, rows_per_person: int = 1) -> int:
    """The rows of the rarest class in the bag that has fewest of them; private. Every row counts, honest or not.

    Where `persons` (n,) says whose row of the table each is, only those count that parties count
    (`parties.responses.bags.kept_rows`), and bags that have none are no bags.
    """
    bags, classes = len(pieces.bag_sizes), len(table.classes)
    bag, held = np.repeat(np.arange(bags), pieces.bag_sizes), np.asarray(pieces.order)
    if persons is not None:
        counted = kept_rows(bag, persons[held], rows_per_person)
        bag, held = bag[counted], held[counted]
    counts = np.bincount(bag * classes + table.labels[held], minlength=bags * classes).reshape(bags, classes)
    return int(counts[counts.any(axis=1)].min())


def cut(
    table: Table,
    *,
    auxiliary: int | float | str | Mapping[str, Any],
    test: str | int | float | Mapping[str, Any],
    parties: int | None,
    rows: int | None,
    partition: str | Mapping[str, Any],
    seed: int | None,
    split: int = 0,
    bags: int | Mapping[str, str] = 1,
    common_bags: bool = False,
    person: str | None = None,
) -> Cut:
    """Cut `table` into test, auxiliary and private rows, and deal the private ones to parties and their bags.

    `test` is "official", a count or a fraction of all rows, or {"by": group}: all rows of a quarter of the groups,
    drawn at random, so that nobody has rows on both sides; `auxiliary` a count or a fraction of the rows that are left
    (a count is an integer, a fraction lies between 0 and 1), or a file, whose rows are none of these: then none is
    auxiliary here. Where it is "official" or along a column (`scenarios.simulated.dealing.set_apart`), the public rows
    are set apart first: then `test` is a count or a fraction of the others, and they all go to tests and parties.
    `partition` is
    - "iid": shuffled; each of the `parties` gets `rows`, or all rows are dealt out as evenly as can be;
    - {"dirichlet": alpha}: sizes as of "iid", classes by proportions of each party's own (`skew.dealt_by_class`);
    - {"quantity": sigma}: shuffled; log-normal sizes from one row (`skew.quantities`), `rows` of them on average;
    - {"majority": r} or {"proportions": shares}: bags of equal size, `rows` / `bags` or as large as can be, with the
      class counts that `scenarios.simulated.bags.bag_shares` prescribes, drawn from each class without replacement;
    - {"by": group}: one party per group with private rows, in sorted order; `parties` of them if given, drawn at
      random; at most `rows` each.

    `bags` is the number of bags of each party, which are dealt as parties are when there is one bag each: a skew is
    one of bags, and `rows` go to a party's bags evenly. Groups are cut in bags of nearly equal size. With {"by":
    group} a party has a bag for every group among its rows. With `common_bags` these are parts of bags that are the
    same at all parties: one for each group of the table, or for each number. `person` names the group that says whose
    row it is: no two parties may hold rows of one person.

    Every draw depends on `seed` and `split` only: changing the parties moves no test or auxiliary row, and
    with `rows` given party k's rows are the same however many parties there are (but with "quantity"). Raises
    `InputError` when the rows do not suffice, a party or bag would be empty, or a name is unknown.

    Examples:
        >>> table = Table("toy", ("x",), ("a", "b"), np.arange(100) % 2, (np.zeros((100, 1)),))
        >>> pieces = cut(table, auxiliary=10, test=0.2, parties=3, rows=None, partition={"quantity": 1.0}, seed=1)
        >>> pieces
        Cut(10 auxiliary, 20 test, 70 private rows of 3 parties)
        >>> [len(pieces.party(k)) for k in range(3)]
        [16, 46, 8]
        >>> even = cut(table, auxiliary=10, test=20, parties=2, rows=20, partition={"majority": 0.2}, bags=2, seed=1)
        >>> [np.bincount(table.labels[even.order[a : a + 10]]).tolist() for a in even.bag_offsets[:-1]]
        [[8, 2], [2, 8], [8, 2], [2, 8]]
    """
    each, column = (1, bags.get("by")) if isinstance(bags, Mapping) else (bags, None)
    kind, value = next(iter(partition.items())) if isinstance(partition, Mapping) else (partition, "")
    if table.drawn:
        return _in_order(table, auxiliary, test, kind, parties, rows, bags)
    official = table.official if test == OFFICIAL else None
    if test == OFFICIAL and official is None:
        raise InputError(f"data.test: '{table.name}' has no official test rows; give a count or a fraction")
    reserved = np.empty(0, dtype=np.int64) if official is None else official[1]
    public, own = set_apart(table, auxiliary, reserved, seed, split)
    if official is not None:
        train, tested = official[0][np.isin(official[0], own)], official[1]
    elif isinstance(test, Mapping):
        train, tested = _held_out(own, _group(table, test["by"], "data.test"), generator(seed, "test", trial=split))
    else:
        count = 0 if test == 0 else _size("data.test", test, len(own))
        shuffled = generator(seed, "test", trial=split).permutation(own)
        train, tested = np.sort(shuffled[count:]), shuffled[:count]
    private = generator(seed, "auxiliary", trial=split).permutation(train)
    if not isinstance(auxiliary, Mapping) and auxiliary != OFFICIAL and not is_file_name(auxiliary):
        public, private = np.split(private, [_size("data.auxiliary", auxiliary, len(train))])
    names = None
    if kind == "by":
        groups = _group(table, value, "parties.partition")
        # All rows of a group may have gone to the public and test rows: then it is no party.
        chosen = np.unique(groups[private])
        if parties is not None and parties > len(chosen):
            raise InputError(
                f"parties.count is {parties}, but '{value}' has {len(chosen)} groups with private rows; "
                "lower or omit parties.count"
            )
        if parties is not None and parties < len(chosen):
            chosen = np.sort(generator(seed, "groups", trial=split).permutation(chosen)[:parties])
        order, offsets = _grouped(private, groups, chosen, rows)
        names = tuple(str(name) for name in chosen)
        bag_offsets = even_bags(offsets, each)
    else:
        taken = f"{len(public)} auxiliary and {len(tested)} test rows"
        even = _even_offsets(parties, rows, each, len(private), taken)
        order, bag_offsets = _dealt(table, private, even, kind, value, seed, split, fixed=rows is not None)
        offsets = bag_offsets[::each]
    if column is not None:
        order, bag_offsets = bags_by_value(order, offsets, _group(table, column, "parties.bags"))
    if person is not None:
        require_one_holder(order, offsets, _group(table, person, "data.person"), person)
    shifted = isinstance(auxiliary, Mapping) or is_file_name(auxiliary) or (auxiliary == OFFICIAL and table.shifted)
    pieces = Cut(public, tested, order, offsets, bag_offsets, names, shifted)
    return _with_common_bags(pieces, table.groups[column]) if common_bags and column is not None else pieces


def _with_common_bags(pieces: Cut, values: NDArray[Any]) -> Cut:
    """The same with bags that are the same at all parties, one for each of the `values` (n,) of a table's rows."""
    known, codes = np.unique(values, return_inverse=True)
    return replace(pieces, common=codes[pieces.order[pieces.bag_offsets[:-1]]], common_bags=len(known))


def _in_order(
    table: Table, auxiliary: Any, test: Any, kind: str, parties: int | None, rows: int | None, bags: Any
) -> Cut:
    """Return the cut of a table of independent draws: public, test and private rows follow each other unshuffled."""
    why = f"the rows of '{table.name}' are drawn when they are read"
    numbers = {"data.auxiliary": auxiliary, "data.test": test, "parties.rows": rows, "parties.bags": bags}
    for name, value in numbers.items():
        if not isinstance(value, int):
            raise InputError(f"{name} must be a whole number, as {why}, got {value!r}")
    if kind != "iid":
        raise InputError(f"parties.partition must be iid, as {why}, got {kind}")
    tested = 0 if test == 0 else _size("data.test", test, len(table))
    public = _size("data.auxiliary", auxiliary, len(table) - tested)
    private, each = range(tested + public, len(table)), int(bags)
    bag_offsets = _even_offsets(parties, rows, each, len(private), f"{public} auxiliary and {tested} test rows")
    first = np.arange(tested + public)
    return Cut(first[tested:], first[:tested], private[: bag_offsets[-1]], bag_offsets[::each], bag_offsets)


def _dealt(
    table: Table, private: Integers, even: Integers, kind: str, value: Any, seed: int | None, split: int, *, fixed: bool
) -> tuple[Integers, Integers]:
    """The rows of all bags, bag after bag, and the bags' offsets (B + 1,).

    `private` are shuffled; `even` are the offsets of bags of equal size, whose size was given when `fixed`.
    """
    held, bags = table.labels[private], len(even) - 1
    if kind == "quantity":
        sizes = quantities(int(even[-1]), bags, value, seed, split)
        return private[: even[-1]], np.append(0, np.cumsum(sizes))
    if kind == "dirichlet":
        return private[dealt_by_class(held, np.diff(even), value, seed, split, shuffle=not fixed)], even
    if kind in PRESCRIBED:
        available = np.bincount(held, minlength=len(table.classes))
        shares = bag_shares(kind, value, len(table.classes))
        counts = bag_counts(shares, bags, int(even[1]) if fixed else None, available, table.classes)
        return private[dealt(held, counts)], np.append(0, np.cumsum(counts.sum(axis=1)))
    return private[: even[-1]], even


def _held_out(own: Integers, groups: NDArray[Any], random: np.random.Generator) -> tuple[Integers, Integers]:
    """The rows of three quarters of the groups, and those of the others, of which there is one at least."""
    known = np.unique(groups[own])
    if len(known) < _FEWEST_GROUPS:
        raise InputError(f"data.test: {_FEWEST_GROUPS} groups or more are needed to hold some out, got {len(known)}")
    tested = np.isin(groups[own], random.permutation(known)[: len(known) // 4])
    return own[~tested], own[tested]


def _size(name: str, value: float | str, available: int) -> int:
    """A count, or a fraction of `available` rows as a count, that leaves at least one row."""
    count = max(1, round(value * available)) if isinstance(value, float) else int(value)
    if available < 2:
        raise InputError(f"{name} needs 2 rows at least, to take some and leave some, got {available}; add rows")
    if not 1 <= count < available:
        raise InputError(f"{name} must take from 1 to {available - 1} of the {available} rows, got {value!r}")
    return count


def _even_offsets(parties: int | None, rows: int | None, bags: int, available: int, taken: str) -> Integers:
    """Offsets of bags of `rows` / `bags` rows or, where `rows` is None, of all rows as evenly as can be."""
    assert parties is not None, "every partition but {by: COLUMN} has a number of parties"
    needed = parties * (rows or bags)
    if needed > available:
        least = "one row" if bags == 1 else f"{bags} rows"
        each = f" x parties.rows {rows}" if rows else f" with at least {least} each"
        raise InputError(
            f"parties.count {parties}{each} needs {needed} private rows, but {available} are left "
            f"after {taken}; lower parties.count, parties.rows, data.auxiliary or data.test"
        )
    number = np.arange(parties * bags + 1, dtype=np.int64)
    return number * (rows // bags) if rows is not None else number * available // (parties * bags)


def _group(table: Table, name: str, key: str) -> NDArray[Any]:
    if name not in table.groups:
        known = ", ".join(table.groups) or "none"
        raise InputError(
            f"{key}: '{table.name}' has no group '{name}'; allowed: {known}" + nearest_name(name, table.groups)
        )
    return table.groups[name]


def _grouped(
    private: Integers, labels: NDArray[Any], chosen: NDArray[Any], rows: int | None
) -> tuple[Integers, Integers]:
    """Private rows of the chosen groups, group by group, at most `rows` of each; and the offsets."""
    member = private[np.isin(labels[private], chosen)]
    party = np.searchsorted(chosen, labels[member])
    sizes = np.bincount(party, minlength=len(chosen))
    position = np.arange(len(member)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = np.argsort(party, kind="stable")[position < (rows or len(member))]
    return member[kept], np.append(0, np.cumsum(np.minimum(sizes, rows or len(member))))
