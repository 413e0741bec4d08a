"""Which rows are public, which are for testing, and which party holds each of the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from federation.errors import InputError, nearest_name
from federation.randomness import generator
from scenarios.skew import LEAST, MOST, SKEWS, dealt_by_class, is_skew, quantities
from scenarios.tables import Table


@dataclass(frozen=True, eq=False)
class Cut:
    """Disjoint row indices of a table (int64): `auxiliary` (N,), `test` (T,) and the parties' own.

    Party k holds order[offsets[k]:offsets[k + 1]]; `party_names` (K of them) are those of the groups, if any.
    """

    auxiliary: np.ndarray
    test: np.ndarray
    order: np.ndarray
    offsets: np.ndarray
    party_names: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return (
            f"Cut({len(self.auxiliary)} auxiliary, {len(self.test)} test, "
            f"{len(self.order)} private rows of {self.parties} parties)"
        )

    @property
    def parties(self) -> int:
        """Number of parties K."""
        return len(self.offsets) - 1

    def party(self, k: int) -> np.ndarray:
        """The row indices of party `k`."""
        return self.order[self.offsets[k] : self.offsets[k + 1]]


def cut(
    table: Table,
    *,
    auxiliary: int | float,
    test: str | int | float,
    parties: int | None,
    rows: int | None,
    partition: str | Mapping[str, Any],
    seed: int | None,
    split: int = 0,
) -> Cut:
    """Cut `table` into test, auxiliary and private rows, and deal the private ones to parties.

    `test` is "official", a count or a fraction of all rows; `auxiliary` a count or a fraction of the rows
    that are left (a count is an integer, a fraction lies between 0 and 1). `partition` is
    - "iid": shuffled; each of the `parties` gets `rows`, or all rows are dealt out as evenly as can be;
    - {"dirichlet": alpha}: sizes as of "iid", classes by proportions of each party's own (`skew.dealt_by_class`);
    - {"quantity": sigma}: shuffled; log-normal sizes from one row (`skew.quantities`), `rows` of them on average;
    - {"by": group}: one party per group, in sorted order; `parties` of them if given, drawn at random; at most
      `rows` each.

    Every draw depends on `seed` and `split` only: changing the parties moves no test or auxiliary row, and
    with `rows` given party k's rows are the same however many parties there are (but with "quantity"). Raises
    `InputError` when the rows do not suffice, a party would be empty, or a name is unknown.
    """
    for name, value in (("parties.count", parties), ("parties.rows", rows)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or value < 1):
            raise InputError(f"{name} must be a whole number from 1, got {value!r}")
    train, tested = _test_rows(table, test, seed, split)
    shuffled = generator(seed, "auxiliary", trial=split).permutation(train)
    count = _size("data.auxiliary", auxiliary, len(train))
    public, private = shuffled[:count], shuffled[count:]
    kind, value = _form(partition)
    if kind == "by":
        labels = _group(table, value)
        # An official split may keep whole groups for testing: those are no parties.
        present = np.unique(labels[train] if test == "official" else labels)
        chosen = _chosen_groups(present, parties, value, seed, split)
        order, offsets = _grouped(private, labels, chosen, rows, value)
        return Cut(public, tested, order, offsets, tuple(str(name) for name in chosen))
    offsets = _even_offsets(kind, parties, rows, len(private), f"{count} auxiliary and {len(tested)} test rows")
    if kind == "quantity":
        sizes = quantities(int(offsets[-1]), len(offsets) - 1, value, seed, split)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
    elif kind == "dirichlet":
        held = table.labels[private]
        private = private[dealt_by_class(held, np.diff(offsets), value, seed, split, shuffle=rows is None)]
    return Cut(public, tested, private[: offsets[-1]], offsets)


def _form(partition: str | Mapping[str, Any]) -> tuple[str, Any]:
    """The kind of a partition, and the value that it is given."""
    if partition == "iid":
        return "iid", None
    if isinstance(partition, Mapping) and len(partition) == 1:
        ((kind, value),) = partition.items()
        if kind == "by" or (kind in SKEWS and is_skew(value)):
            return kind, value
    skews = ", ".join(f"{{{kind}: NUMBER}}" for kind in SKEWS)
    raise InputError(
        f"parties.partition must be iid, {{by: COLUMN}}, {skews} with a number from {LEAST:g} to {MOST:g}, "
        f"got {partition!r}"
    )


def _test_rows(table: Table, test: str | int | float, seed: int | None, split: int) -> tuple[np.ndarray, np.ndarray]:
    """(training rows, test rows)."""
    if test == "official":
        if table.official is None:
            raise InputError(f"data.test: '{table.name}' has no official test rows; give a count or a fraction")
        return table.official
    count = _size("data.test", test, len(table))
    shuffled = generator(seed, "test", trial=split).permutation(len(table))
    return np.sort(shuffled[count:]), shuffled[:count]


def _size(name: str, value: object, available: int) -> int:
    """A count, or a fraction of `available` rows as a count, that leaves at least one row."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        count = int(value)
    elif isinstance(value, float) and 0 < value < 1:
        count = max(1, round(value * available))
    else:
        raise InputError(f"{name} must be a count or a fraction between 0 and 1, got {value!r}")
    if not 1 <= count < available:
        raise InputError(f"{name} must take from 1 to {available - 1} of the {available} rows, got {value!r}")
    return count


def _even_offsets(kind: str, parties: int | None, rows: int | None, available: int, taken: str) -> np.ndarray:
    if parties is None:
        raise InputError(f"parties.count is needed for the {kind} partition: give the number of parties")
    needed = parties * (rows or 1)
    if needed > available:
        each = f" x parties.rows {rows}" if rows else " with at least one row each"
        raise InputError(
            f"parties.count {parties}{each} needs {needed} private rows, but {available} are left "
            f"after {taken}; lower parties.count, parties.rows, data.auxiliary or data.test"
        )
    if rows is not None:
        return np.arange(parties + 1, dtype=np.int64) * rows
    return np.arange(parties + 1, dtype=np.int64) * available // parties


def _group(table: Table, name: str) -> np.ndarray:
    if name not in table.groups:
        known = ", ".join(table.groups) or "none"
        raise InputError(
            f"parties.partition: '{table.name}' has no group '{name}'; allowed: {known}"
            + nearest_name(name, table.groups)
        )
    return table.groups[name]


def _chosen_groups(present: np.ndarray, parties: int | None, name: str, seed: int | None, split: int) -> np.ndarray:
    if parties is None or parties == len(present):
        return present
    if parties > len(present):
        raise InputError(
            f"parties.count is {parties}, but '{name}' has {len(present)} groups outside the test rows; "
            "lower or omit parties.count"
        )
    return np.sort(generator(seed, "groups", trial=split).permutation(present)[:parties])


def _grouped(
    private: np.ndarray, labels: np.ndarray, chosen: np.ndarray, rows: int | None, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Private rows of the chosen groups, group by group, at most `rows` of each; and the offsets."""
    member = private[np.isin(labels[private], chosen)]
    party = np.searchsorted(chosen, labels[member])
    sizes = np.bincount(party, minlength=len(chosen))
    if not sizes.all():
        empty = chosen[np.flatnonzero(sizes == 0)[0]]
        raise InputError(
            f"parties.partition: all rows of the party {name}={empty} went to the auxiliary or test rows; "
            "lower data.auxiliary or data.test"
        )
    by_party = np.argsort(party, kind="stable")
    position = np.arange(len(member)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = by_party if rows is None else by_party[position < rows]
    capped = sizes if rows is None else np.minimum(sizes, rows)
    return member[kept], np.concatenate([[0], np.cumsum(capped)]).astype(np.int64)
