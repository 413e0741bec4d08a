"""A data set as this project sees it: raw numbers in compact blocks, labels, groups and an official split."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, Protocol

import numpy as np

from federation.contract.errors import InputError, nearest_name

_CLASSES_SHOWN, _TEXTS_SHOWN = 8, 6
_COLUMNS_SHOWN = 30
_CHARACTERS_SHOWN = 40
_JOINED_CHARACTERS = 24
_ROWS_READ = 1 << 16  # at a time, where one column is wanted

Outside = Literal["refuse", "clip"]  # what becomes of real labels outside the declared range


class Block(Protocol):
    """Raw columns side by side: a 2-D array, or what is read like one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d)."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: np.ndarray, /) -> Any:
        """The rows at `rows` (m,): numbers (m, d)."""
        ...


@dataclass(frozen=True, eq=False)
class Table:
    """n labelled rows of d raw columns.

    `blocks` stand side by side: 2-D arrays of n rows in their storage type, or what is read like them, together d
    columns. Those numbered in `text` hold codes of texts (`federation.features.feature_map.text_code`). `labels` (n,) are positions
    in `classes`; without classes they are real numbers, float64, from the public `label_range` [lo, hi] (None: nobody
    has declared it yet). `groups` holds (n,) arrays by which rows may be dealt to parties; `official` is the data set's
    own (training rows, test rows). `public` are the rows that the data set itself declares public, none of them a test
    row, and `shifted` says that these have other features than the rest: they are no random sample of the same rows.
    Raises `InputError` when these do not belong together, and for real labels that are not finite.
    """

    name: str
    columns: tuple[str, ...]
    classes: tuple[str, ...]
    labels: np.ndarray
    blocks: tuple[Block, ...]
    text: tuple[int, ...] = ()
    groups: Mapping[str, np.ndarray] = field(default_factory=dict)
    official: tuple[np.ndarray, np.ndarray] | None = None
    label_range: tuple[float, float] | None = None
    public: np.ndarray | None = None
    shifted: bool = False

    def __post_init__(self) -> None:
        widths = sum(block.shape[1] for block in self.blocks)
        lengths = {len(part) for part in (self.labels, *self.blocks, *self.groups.values())}
        if lengths != {len(self.labels)} or widths != len(self.columns) or not self.columns:
            raise InputError(
                f"the parts of '{self.name}' do not belong together: rows {sorted(lengths)}, "
                f"{widths} columns of numbers for {len(self.columns)} names"
            )
        if self.classes and self.label_range is not None:
            raise InputError(f"'{self.name}' has classes, so its labels have no range")
        if not self.classes:
            _require_real(self)
        if self.public is not None and self.official is not None and np.isin(self.public, self.official[1]).any():
            raise InputError(f"some of the public rows of '{self.name}' are test rows")

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        labels = f"{len(self.classes)} classes" if self.classes else "real labels"
        shape = f"{len(self)} rows, {len(self.columns)} columns, {labels}"
        return f"Table('{self.name}': {shape})"

    def rows(self, indices: np.ndarray) -> np.ndarray:
        """The raw rows at `indices` (m,), shape (m, d), float64; nothing else is copied."""
        out = np.empty((len(indices), len(self.columns)))
        start = 0
        for block in self.blocks:
            out[:, start : start + block.shape[1]] = block[indices]
            start += block.shape[1]
        return out

    def column(self, name: str, key: str) -> np.ndarray:
        """The raw numbers (n,) of one column, float64.

        Raises `InputError`, which names the setting `key`, for an unknown column and for one of texts.
        """
        if name not in self.columns:
            known = listed([*map(cut, self.columns)], _COLUMNS_SHOWN)
            raise InputError(
                f"{key}: '{self.name}' has no column '{cut(name)}'; it has {known}{nearest_name(name, self.columns)}"
            )
        position = self.columns.index(name)
        if position in self.text:
            raise InputError(f"{key}: the column '{cut(name)}' of '{self.name}' holds texts; name one of numbers")
        parts = np.array_split(np.arange(len(self)), len(self) // _ROWS_READ + 1)
        return np.concatenate([self.rows(part)[:, position] for part in parts])

    def with_classes(self, classes: Sequence[str]) -> Table:
        """The same rows with labels as positions in the declared `classes`, which may name absent ones too.

        A number stands for every spelling of it: a declared 1 is also the 1.0 of the file. Raises `InputError`
        for fewer than two classes, repeated ones, and a label that is not declared.
        """
        if not self.classes:
            raise InputError(f"'{self.name}' has real labels, no classes: remove data.classes")
        code = {_by_value(name): i for i, name in enumerate(classes)}
        if len(classes) < 2 or len(code) < len(classes):
            raise InputError(f"classes must name two or more different classes, got {list(classes)}")
        present = [self.classes[i] for i in np.unique(self.labels)]
        for name in present:
            if _by_value(name) not in code:
                raise InputError(
                    f"'{self.name}' has the class '{cut(name)}', which is not among the declared classes "
                    f"{listed([*map(cut, classes)], _CLASSES_SHOWN)}{nearest_name(name, classes)}"
                )
        recode = np.array([code.get(_by_value(name), -1) for name in self.classes], dtype=np.int64)
        return replace(self, classes=tuple(classes), labels=recode[self.labels])

    def with_positive(self, positive: Sequence[str]) -> Table:
        """The same rows in two classes: label 1 for the classes `positive` together, 0 for all others.

        Their names join those of their members by "+" where that is short; else they are "positive" and "rest".
        Raises `InputError` for real labels, unknown or repeated classes, none of them and all of them.
        """
        if not self.classes:
            raise InputError(f"'{self.name}' has real labels, no classes: remove data.positive")
        code = {_by_value(name): i for i, name in enumerate(self.classes)}
        for name in positive:
            if _by_value(name) not in code:
                raise InputError(
                    f"data.positive: '{self.name}' has no class '{cut(name)}'; it has "
                    f"{listed([*map(cut, self.classes)], _CLASSES_SHOWN)}{nearest_name(name, self.classes)}"
                )
        chosen = {code[_by_value(name)] for name in positive}
        if not 0 < len(chosen) == len(positive) < len(self.classes):
            raise InputError(
                f"data.positive must name one or more different classes of '{self.name}' and leave out at least one of "
                f"the {len(self.classes)}, got {list(positive)}"
            )
        is_positive = np.array([i in chosen for i in range(len(self.classes))])
        return replace(
            self, classes=_two_names(self.classes, is_positive), labels=is_positive[self.labels].astype(np.int64)
        )

    def with_range(self, label_range: tuple[float, float], outside: Outside = "refuse") -> Table:
        """The same rows with real labels in the declared public range [lo, hi].

        Labels outside are refused, or with "clip" moved to the nearer end. Raises `InputError` for these, for classes
        and for anything but two finite numbers lo < hi.
        """
        lo, hi = label_range
        if self.classes:
            raise InputError(f"data.range is for real labels, but '{self.name}' has classes; remove data.range")
        if not (math.isfinite(lo) and math.isfinite(hi) and lo < hi):
            raise InputError(f"data.range must be two finite numbers [lo, hi] with lo < hi, got [{lo:g}, {hi:g}]")
        labels = np.clip(self.labels, lo, hi)
        moved = np.flatnonzero(labels != self.labels)
        if len(moved) and outside == "refuse":
            raise InputError(
                f"data.range: {len(moved)} of the {len(self)} labels of '{self.name}' lie outside [{lo:g}, {hi:g}], "
                f"such as {self.labels[moved[0]]:g} in row {moved[0]} (counted from 0); correct them, widen the range "
                "or choose data.outside: clip"
            )
        return replace(self, labels=labels, label_range=(float(lo), float(hi)))


def _require_real(table: Table) -> None:
    """Refuse labels that are not finite float64 numbers in their range, if there is one."""
    labels, known = table.labels, table.label_range
    if labels.dtype != np.float64:
        raise InputError(f"the real labels of '{table.name}' must be float64, got {labels.dtype}")
    if not np.isfinite(labels).all():
        row = int(np.argmin(np.isfinite(labels)))
        raise InputError(
            f"'{table.name}': the label in row {row} (counted from 0) is {labels[row]}, not a finite number; correct "
            "it or remove the row"
        )
    if known is not None and not (known[0] <= labels.min() and labels.max() <= known[1]):
        raise InputError(f"'{table.name}' has labels outside its range [{known[0]:g}, {known[1]:g}]")


def encode_labels(labels: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """Class names (numbers by value, then texts by alphabet) and every label's position, int64 (n,).

    Equal numbers are one class, named by the shortest of their spellings, the first in `labels` among those.
    """
    values, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    spelled = [_class_name(value) for value in values.tolist()]
    keys = [_by_value(name) for name in spelled]
    shortest: dict[tuple[int, Decimal, str], str] = {}
    for i in np.argsort(first):
        if keys[i] not in shortest or len(spelled[i]) < len(shortest[keys[i]]):
            shortest[keys[i]] = spelled[i]
    rank = {key: position for position, key in enumerate(sorted(shortest))}
    return tuple(shortest[key] for key in rank), np.array([rank[key] for key in keys], dtype=np.int64)[codes]


def describe(table: Table) -> str:
    """One line on how a data set was read: rows, columns, which of them are text, rows per class or label range."""
    text = listed([cut(table.columns[i]) for i in table.text], _TEXTS_SHOWN)
    columns = f"{len(table.columns)} columns{f' (text: {text})' if text else ''}"
    return f"{table.name}: {len(table)} rows, {columns}, {_labels(table)}"


def _labels(table: Table) -> str:
    """The classes with their rows, or the range of real labels, of which the data itself says nothing."""
    if table.label_range is not None:
        return f"labels from {table.label_range[0]:g} to {table.label_range[1]:g}"
    sizes = np.bincount(table.labels, minlength=len(table.classes))
    counts = [f"{cut(name)} {size}" for name, size in zip(table.classes, sizes, strict=True)]
    return f"classes {listed(counts, _CLASSES_SHOWN)}"


def cut(text: str) -> str:
    """A text from a data file as a message shows it: on one line, of at most 40 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _CHARACTERS_SHOWN else f"{line[: _CHARACTERS_SHOWN - 1]}…"


def listed(parts: Sequence[str], most: int) -> str:
    """`a, b and 3 more`: the first `most` texts and the number of the others."""
    return ", ".join(parts[:most]) + (f" and {len(parts) - most} more" if len(parts) > most else "")


def _two_names(classes: Sequence[str], is_positive: np.ndarray) -> tuple[str, str]:
    """Different names of the negative and the positive class, from those of their members."""
    sides = ["+".join(name for name, on in zip(classes, is_positive, strict=True) if on == side) for side in (0, 1)]
    negative, positive = (
        name if len(name) <= _JOINED_CHARACTERS else known
        for name, known in zip(sides, ("rest", "positive"), strict=True)
    )
    return ("others" if negative == positive else negative), positive


def _class_name(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _by_value(name: str) -> tuple[int, Decimal, str]:
    """Equal for equal numbers, 1 and 1.0; sorts numbers by value before texts by alphabet."""
    try:
        # Exact: as floats, identifiers of 17 digits would fall together.
        value = Decimal(name)
    except InvalidOperation:
        value = Decimal("nan")
    # Python reads 1_000 as a number; in a data file it is a text.
    return (0, value, "") if value.is_finite() and "_" not in name else (1, Decimal(0), name)
