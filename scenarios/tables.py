"""A data set as this project sees it: raw numbers in compact blocks, labels, groups and an official split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from federation.errors import InputError, nearest_name

_CLASSES_SHOWN, _TEXTS_SHOWN = 8, 6


@dataclass(frozen=True, eq=False)
class Table:
    """n labelled rows of d raw columns.

    `blocks` stand side by side: 2-D arrays of n rows in their storage type, together d columns. The columns
    numbered in `text` hold codes of texts (`federation.features.text_code`). `labels` (n,) are positions in
    `classes`. `groups` holds (n,) arrays by which rows may be dealt to parties; `official` is the data set's
    own (training rows, test rows). Raises `InputError` when these do not belong together.
    """

    name: str
    columns: tuple[str, ...]
    classes: tuple[str, ...]
    labels: np.ndarray
    blocks: tuple[np.ndarray, ...]
    text: tuple[int, ...] = ()
    groups: Mapping[str, np.ndarray] = field(default_factory=dict)
    official: tuple[np.ndarray, np.ndarray] | None = None

    def __post_init__(self) -> None:
        widths = sum(block.shape[1] for block in self.blocks)
        lengths = {len(part) for part in (self.labels, *self.blocks, *self.groups.values())}
        if lengths != {len(self.labels)} or widths != len(self.columns) or not self.columns:
            raise InputError(
                f"the parts of '{self.name}' do not belong together: rows {sorted(lengths)}, "
                f"{widths} columns of numbers for {len(self.columns)} names"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        shape = f"{len(self)} rows, {len(self.columns)} columns, {len(self.classes)} classes"
        return f"Table('{self.name}': {shape})"

    def rows(self, indices: np.ndarray) -> np.ndarray:
        """The raw rows at `indices` (m,), shape (m, d), float64; nothing else is copied."""
        out = np.empty((len(indices), len(self.columns)))
        start = 0
        for block in self.blocks:
            out[:, start : start + block.shape[1]] = block[indices]
            start += block.shape[1]
        return out

    def with_classes(self, classes: Sequence[str]) -> Table:
        """The same rows with labels as positions in the declared `classes`, which may name absent ones too.

        Raises `InputError` for fewer than two classes, repeated ones, and a label that is not declared.
        """
        if len(classes) < 2 or len(set(classes)) < len(classes):
            raise InputError(f"classes must name two or more different classes, got {list(classes)}")
        code = {name: i for i, name in enumerate(classes)}
        present = [self.classes[i] for i in np.unique(self.labels)]
        for name in present:
            if name not in code:
                raise InputError(
                    f"'{self.name}' has the class '{name}', which is not among the declared classes "
                    f"{', '.join(classes)}{nearest_name(name, classes)}"
                )
        recode = np.array([code.get(name, -1) for name in self.classes], dtype=np.int64)
        return replace(self, classes=tuple(classes), labels=recode[self.labels])


def encode_labels(labels: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """Class names (numbers by value, then texts by alphabet) and every label's position, int64 (n,)."""
    values, codes = np.unique(labels, return_inverse=True)
    spelled = [_class_name(value) for value in values.tolist()]
    keys = [_by_value(name) for name in spelled]
    shortest: dict[tuple[int, float, str], str] = {}
    for key, name in zip(keys, spelled, strict=True):
        if key not in shortest or len(name) < len(shortest[key]):
            shortest[key] = name
    rank = {key: position for position, key in enumerate(sorted(shortest))}
    return tuple(shortest[key] for key in rank), np.array([rank[key] for key in keys], dtype=np.int64)[codes]


def describe(table: Table) -> str:
    """One line on how a data set was read: rows, columns, which of them are text, rows per class."""
    text = _some([table.columns[i] for i in table.text], _TEXTS_SHOWN)
    sizes = np.bincount(table.labels, minlength=len(table.classes))
    classes = _some([f"{name} {size}" for name, size in zip(table.classes, sizes, strict=True)], _CLASSES_SHOWN)
    columns = f"{len(table.columns)} columns{f' (text: {text})' if text else ''}"
    return f"{table.name}: {len(table)} rows, {columns}, classes {classes}"


def _some(parts: Sequence[str], most: int) -> str:
    return ", ".join(parts[:most]) + (f" and {len(parts) - most} more" if len(parts) > most else "")


def _class_name(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _by_value(name: str) -> tuple[int, float, str]:
    """Sorts numbers by value before texts by alphabet; 1 and 1.0 are the same."""
    try:
        return 0, float(name), ""
    except ValueError:
        return 1, 0.0, name
