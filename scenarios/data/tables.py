"""Tables: raw numbers in compact blocks, labels, groups and an official split.

`DataSet` describes a data set of the catalogue: its reader, its file, and its labels.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError, nearest_name
from federation.contract.validation import apart
from federation.features.feature_map import FeatureMap
from federation.numerics.rows import Floats, Integers, equal_rows
from scenarios.data.hashing import HashedRows, Hashing

_CLASSES_SHOWN, _TEXTS_SHOWN = 8, 6
_COLUMNS_SHOWN = 30
_CHARACTERS_SHOWN = 40
_JOINED_CHARACTERS = 24
_ROWS_READ = 1 << 16  # at a time, where one column is wanted
_ROWS_COUNTED = 1 << 20  # at a time, where classes are
_CELLS_COMPARED = 1 << 26  # of rows that are looked through for equal ones: 512 MiB
_CELLS_READ = 1 << 21  # at a time, where rows are only passed on: 16 MiB
_ROWS_PACKED = 1 << 10  # at a time, where they are brought together to be compared: they stay in cache

Outside = Literal["refuse", "clip"]  # what becomes of real labels outside the declared range


@dataclass(frozen=True, eq=False)
class CodedTexts:
    """A block of a `Table`: d columns of texts, of which each cell takes two bytes.

    `codes` (n, d), uint16, are positions in the columns' `vocabularies` of `text_code` numbers.
    """

    codes: NDArray[np.uint16]
    vocabularies: tuple[Floats, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d)."""
        return self.codes.shape

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Integers | range) -> Floats:
        """The texts of the rows at `rows` (m,) as `text_code` numbers, float64 (m, d)."""
        columns = zip(self.codes[rows].T, self.vocabularies, strict=True)
        return np.column_stack([vocabulary[codes] for codes, vocabulary in columns])


@dataclass(frozen=True, eq=False)
class Table:
    """n labelled rows of d raw columns.

    `blocks` stand side by side: 2-D arrays of n rows in their storage type, coded texts or hashed rows, together d
    columns. Those numbered in `text` hold codes of texts (`federation.features.feature_map.text_code`). `labels` (n,)
    are positions in `classes`; without classes they are real numbers, float64, from the public `label_range` [lo, hi]
    (None: nobody has declared it yet). `groups` holds (n,) arrays by which rows may be dealt to parties; `official` is
    the data set's own (training rows, test rows). `public` are the rows that the data set itself declares public, none
    of them a test row, and `shifted` says that these have other features than the rest: they are no random sample of
    the same rows. `remarks` is what there is to be said of how it was read (`describe`). Rows that are `drawn` are
    independent draws, made when they are read (`scenarios.data.generated_sets`): there are too many to hold, or to look
    at all. Raises `InputError` when these do not belong together, and for real labels that are not finite.

    Examples:
        >>> pixels, labels = np.arange(6, dtype=np.uint8).reshape(3, 2), np.array([1, 0, 1])
        >>> table = Table("toy", ("left", "right"), ("cat", "dog"), labels, (pixels,))
        >>> table
        Table('toy': 3 rows, 2 columns, 2 classes)
        >>> table.rows(np.array([2, 0]))
        array([[4., 5.],
               [0., 1.]])
        >>> table.with_positive(["cat"]).labels
        array([0, 1, 0])
    """

    name: str
    columns: tuple[str, ...]
    classes: tuple[str, ...]
    labels: NDArray[Any]
    blocks: tuple[NDArray[Any] | CodedTexts | HashedRows, ...]
    text: tuple[int, ...] = ()
    groups: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    official: tuple[Integers, Integers] | None = None
    label_range: tuple[float, float] | None = None
    public: Integers | None = None
    shifted: bool = False
    remarks: tuple[str, ...] = ()
    drawn: bool = False

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
            self._require_real()
        if self.public is not None and self.official is not None and np.isin(self.public, self.official[1]).any():
            raise InputError(f"some of the public rows of '{self.name}' are test rows")

    def _require_real(self) -> None:
        """Refuse labels that are not finite float64 numbers in their range, if there is one."""
        if self.labels.dtype != np.float64:
            raise InputError(f"the real labels of '{self.name}' must be float64, got {self.labels.dtype}")
        if not np.isfinite(self.labels).all():
            row = np.isfinite(self.labels).argmin()
            raise InputError(
                f"'{self.name}': the label in row {row} (counted from 0) is {self.labels[row]}, not a finite number; "
                "correct it or remove the row"
            )
        lo, hi = self.label_range or (-math.inf, math.inf)
        if not ((self.labels >= lo) & (self.labels <= hi)).all():
            raise InputError(f"'{self.name}' has labels outside its range [{', '.join(apart(lo, hi))}]")

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        labels = f"{len(self.classes)} classes" if self.classes else "real labels"
        return f"Table('{self.name}': {len(self)} rows, {len(self.columns)} columns, {labels})"

    def rows(self, indices: Integers | range) -> Floats:
        """The raw rows at `indices` (m,), shape (m, d), float64; nothing else is copied."""
        out = np.empty((len(indices), len(self.columns)))
        start = 0
        for block in self.blocks:
            out[:, start : start + block.shape[1]] = block[indices]
            start += block.shape[1]
        return out

    def different(self, indices: Integers | range) -> tuple[Integers, Integers]:
        """Places in `indices` (m,) of rows that differ in label or columns, and how often each is there, both (k,).

        The place of a row is the first at which it stands, and places ascend. All are taken to be different where they
        are drawn, or too many to be compared.

        Examples:
            >>> rows, labels = np.array([[1, 2], [3, 4], [1, 2], [1, 2]]), np.array([0, 1, 0, 1])
            >>> Table("toy", ("a", "b"), ("no", "yes"), labels, (rows,)).different(np.array([3, 2, 1, 0]))
            (array([0, 1, 2]), array([1, 2, 1]))
        """
        if self.drawn or len(indices) * len(self.columns) > _CELLS_COMPARED:
            return np.arange(len(indices)), np.ones(len(indices), dtype=np.int64)
        stored = [self.labels, *(block.codes if isinstance(block, CodedTexts) else block for block in self.blocks)]

        def packed(some: Integers | range) -> NDArray[np.uint8]:
            parts = [np.ascontiguousarray(part[some]).reshape(len(some), -1).view(np.uint8) for part in stored]
            padding = np.zeros((len(some), -sum(part.shape[1] for part in parts) % 8), np.uint8)  # to whole words
            return np.hstack([*parts, padding])

        together = np.empty((len(indices), packed(indices[:1]).shape[1]), np.uint8)
        for start in range(0, len(indices), _ROWS_PACKED):
            some = slice(start, start + _ROWS_PACKED)
            together[some] = packed(indices[some])
        first, twins = equal_rows(together)
        return first, np.bincount(twins, minlength=len(first))

    def class_counts(self, indices: Integers | range) -> Integers:
        """How many of the rows at `indices` (m,) have each class, int64 (C,)."""
        parts = (self.labels[indices[i : i + _ROWS_COUNTED]] for i in range(0, len(indices), _ROWS_COUNTED))
        return sum((np.bincount(part, minlength=len(self.classes)) for part in parts), np.zeros(len(self.classes), int))

    def behind(self, feature_map: FeatureMap, indices: Integers | range) -> Floats:
        """The rows at `indices` (m,) behind a map, (m, D); few of them stand with all their columns at a time."""
        out, start = np.empty((len(indices), feature_map.dimension)), 0
        for part in self.parts(indices):
            feature_map.transform(part, out[start : start + len(part)])
            start += len(part)
        return out

    def parts(self, indices: Integers | range) -> Iterator[Floats]:
        """The rows at `indices` (m,), few at a time (at least once, of no rows)."""
        step = max(1, _CELLS_READ // len(self.columns))
        return (self.rows(indices[start : start + step]) for start in range(0, max(1, len(indices)), step))

    def column(self, name: str, key: str) -> Floats:
        """The raw numbers (n,) of one column, float64.

        Raises `InputError`, which names the setting `key`, for an unknown column, one of texts and missing cells.
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
        values = np.concatenate([self.rows(part)[:, position] for part in parts])
        if np.isnan(values).any():
            row = np.isnan(values).argmax()
            raise InputError(
                f"{key}: the column '{cut(name)}' of '{self.name}' has missing cells, as in row {row} (counted from "
                "0); name another"
            )
        return values

    def with_classes(self, classes: Sequence[str]) -> "Table":
        """The same rows with labels as positions in the declared `classes`, which may name absent ones too.

        A number stands for every spelling of it: a declared 1 is also the 1.0 of the file. Raises `InputError`
        for fewer than two classes, repeated ones, and a label that is not declared.
        """
        self._require_classes("classes")
        code = {by_value(name): i for i, name in enumerate(classes)}
        if len(classes) < 2 or len(code) < len(classes):
            raise InputError(f"classes must name two or more different classes, got {list(classes)}")
        recode = np.array([code.get(by_value(name), -1) for name in self.classes], dtype=np.int64)
        labels = recode[self.labels]
        if (labels < 0).any():
            unknown = self.classes[self.labels[labels < 0].min()]
            raise InputError(
                f"'{self.name}' has the class '{cut(unknown)}', which is not among the declared classes "
                f"{_shown(classes)}{nearest_name(unknown, classes)}"
            )
        return replace(self, classes=tuple(classes), labels=labels)

    def with_positive(self, positive: Sequence[str]) -> "Table":
        """The same rows in two classes: label 1 for the classes `positive` together, 0 for all others.

        Their names join those of their members by "+" where that is short; else they are "positive" and "rest".
        Raises `InputError` for real labels, unknown or repeated classes, none of them and all of them.
        """
        self._require_classes("positive")
        code = {by_value(name): i for i, name in enumerate(self.classes)}
        for name in positive:
            if by_value(name) not in code:
                raise InputError(
                    f"data.positive: '{self.name}' has no class '{cut(name)}'; it has "
                    f"{_shown(self.classes)}{nearest_name(name, self.classes)}"
                )
        is_positive = np.isin(np.arange(len(self.classes)), [code[by_value(name)] for name in positive])
        if not 0 < is_positive.sum() == len(positive) < len(self.classes):
            raise InputError(
                f"data.positive must name one or more different classes of '{self.name}' and leave out at least one of "
                f"the {len(self.classes)}, got {list(positive)}"
            )
        labels = is_positive[self.labels].astype(np.int64)
        return replace(self, classes=_two_names(self.classes, is_positive), labels=labels)

    def _require_classes(self, key: str) -> None:
        if not self.classes:
            raise InputError(f"'{self.name}' has real labels, no classes: remove data.{key}")
        if self.drawn:
            raise InputError(f"the rows of '{self.name}' are drawn with its own classes: remove data.{key}")

    def with_range(self, label_range: tuple[float, float], outside: Outside = "refuse") -> "Table":
        """The same rows with real labels in the declared public range [lo, hi].

        Labels outside are refused, or with "clip" moved to the nearer end. Raises `InputError` for these, for classes
        and for anything but two finite numbers lo < hi.

        Examples:
            >>> table = Table("toy", ("x",), (), np.array([3.0, 70.0]), (np.ones((2, 1)),))
            >>> table.with_range((0, 50), "clip").labels
            array([ 3., 50.])
        """
        lo, hi = label_range
        if self.classes:
            raise InputError(f"data.range is for real labels, but '{self.name}' has classes; remove data.range")
        if not (math.isfinite(lo) and math.isfinite(hi) and lo < hi):
            raise InputError(f"data.range must be two finite numbers [lo, hi] with lo < hi, got [{lo:g}, {hi:g}]")
        labels = np.clip(self.labels, lo, hi)
        moved = np.flatnonzero(labels != self.labels)
        if len(moved) and outside == "refuse":
            low, high, label = apart(lo, hi, float(self.labels[moved[0]]))
            raise InputError(
                f"data.range: {len(moved)} of the {len(self)} labels of '{self.name}' lie outside [{low}, {high}], "
                f"such as {label} in row {moved[0]} (counted from 0); correct them, widen the range "
                "or choose data.outside: clip"
            )
        return replace(self, labels=labels, label_range=(float(lo), float(hi)))


def encode_labels(labels: NDArray[Any]) -> tuple[tuple[str, ...], Integers]:
    """Class names (numbers by value, then texts by alphabet) and every label's position, int64 (n,).

    Equal numbers are one class, named by the shortest of their spellings, the first in `labels` among those.

    Examples:
        >>> encode_labels(np.array(["10", "9", "1e1", "unknown"]))
        (('9', '10', 'unknown'), array([1, 0, 1, 2]))
    """
    values, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    whole = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values.tolist()]
    spelled = [*map(str, whole)]
    keys = [by_value(name) for name in spelled]
    shortest: dict[tuple[int, Decimal, str], str] = {}
    for i in np.argsort(first):
        shortest[keys[i]] = min(shortest.get(keys[i], spelled[i]), spelled[i], key=len)
    rank = {key: position for position, key in enumerate(sorted(shortest))}
    return tuple(shortest[key] for key in rank), np.array([rank[key] for key in keys], dtype=np.int64)[codes]


def describe(table: Table) -> str:
    """How a data set was read: rows, columns, which are text, missing cells, rows per class or label range; remarks.

    Examples:
        >>> describe(Table("toy", ("x",), ("a", "b"), np.array([0, 1, 1]), (np.ones((3, 1)),)))
        'toy: 3 rows, 1 columns, classes a 1, b 2'
    """
    text = listed([cut(table.columns[i]) for i in table.text], _TEXTS_SHOWN)
    if table.drawn:
        labels = f"classes {listed([*map(cut, table.classes)], _CLASSES_SHOWN)}, drawn when they are read"
    elif table.label_range is not None:
        labels = f"labels from {' to '.join(apart(*table.label_range))}"
    else:
        sizes = np.bincount(table.labels, minlength=len(table.classes))
        counts = [f"{cut(name)} {size}" for name, size in zip(table.classes, sizes, strict=True)]
        labels = f"classes {listed(counts, _CLASSES_SHOWN)}"
    columns = f"{len(table.columns)} columns{f' (text: {text})' if text else ''}"
    numbers = [block for block in table.blocks if isinstance(block, np.ndarray) and block.dtype.kind == "f"]
    missing = sum(np.count_nonzero(np.isnan(part)) for block in numbers for _, part in pieces(block))
    columns += f", {missing} missing cells" if missing else ""
    return "\n".join([f"{table.name}: {len(table)} rows, {columns}, {labels}", *table.remarks])


def pieces(rows: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Rows (n, d), which may be larger than memory, some at a time, each after the number of its first row."""
    step = max(1, _CELLS_READ // max(1, rows.shape[1]))
    return ((start, rows[start : start + step]) for start in range(0, len(rows), step))


def cut(text: str) -> str:
    """A text from a data file as a message shows it: on one line, of at most 40 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _CHARACTERS_SHOWN else f"{line[: _CHARACTERS_SHOWN - 1]}…"


def listed(parts: Sequence[str], most: int) -> str:
    """`a, b and 3 more`: the first `most` texts and the number of the others."""
    return ", ".join(parts[:most]) + (f" and {len(parts) - most} more" if len(parts) > most else "")


def _shown(classes: Sequence[str]) -> str:
    return listed([*map(cut, classes)], _CLASSES_SHOWN)


def _two_names(classes: Sequence[str], is_positive: NDArray[np.bool_]) -> tuple[str, str]:
    """Different names of the negative and the positive class, from those of their members."""
    negative, positive = ("+".join(np.array(classes)[is_positive == side].tolist()) for side in (False, True))
    negative = negative if len(negative) <= _JOINED_CHARACTERS else "rest"
    positive = positive if len(positive) <= _JOINED_CHARACTERS else "positive"
    return ("others" if negative == positive else negative), positive


def by_value(name: str) -> tuple[int, Decimal, str]:
    """A key of a class that is equal for equal numbers, and sorts numbers by value before texts by alphabet.

    Examples:
        >>> by_value("1") == by_value("1.0"), sorted(["b", "10", "9"], key=by_value)
        (True, ['9', '10', 'b'])
    """
    try:
        # Exact: as floats, identifiers of 17 digits would fall together.
        value = Decimal(name)
    except InvalidOperation:
        value = Decimal("nan")
    # Python reads 1_000 as a number; in a data file it is a text.
    return (0, value, "") if value.is_finite() and "_" not in name else (1, Decimal(0), name)


@dataclass(frozen=True)
class DataSet:
    """One data set by name: where its rows come from, and what is known of its labels before they are read.

    `origin` says who made it, and what it is called there, at the address `url`; `licence` is what its owners allow, as
    they say there. With a `file`, which lies in the data directory, `make(data_set, path)` reads it; `holds` says what
    the file must hold. A data set without a file comes with scikit-learn or is generated:
    `make()` gives it. One that is `generated` anew for every split is made by `make(instance)` of the instance 0, 1,
    ..., which depends on that number alone, whatever the seed of the scenario, so that everybody who names the data
    set has the same rows. With `regression` the labels are real numbers; `label_range` [lo, hi] is the range that its
    documentation gives, if any. Texts and sparse rows are `hashed`, in a scenario by a stage such as this one, and
    `make(data_set, path, hashes)` reads them.
    """

    name: str
    description: str
    make: Callable[..., Table]
    file: str | None = None
    holds: str = ""
    origin: str = ""
    url: str = ""
    licence: str = ""
    generated: bool = False
    regression: bool = False
    label_range: tuple[float, float] | None = None
    hashed: Hashing | None = None

    def read(self, path: Path | None, instance: int = 0, hashes: Sequence[Hashing] = ()) -> Table:
        """Its rows, from the file at `path` if it has one. Raises `InputError` for a file of another content."""
        if path is not None:
            return self.make(self, path, hashes) if self.hashed else self.make(self, path)
        return self.make(instance) if self.generated else self.make()

    @property
    def citation(self) -> str:
        """Where it comes from and what its owners allow, in one line.

        Examples:
            >>> DataSet("own", "two rows", dict, origin="'Two Rows' of us", url="https://a.org", licence="CC0").citation
            "own: 'Two Rows' of us (https://a.org); licence: CC0"
        """
        return f"{self.name}: {self.origin}{f' ({self.url})' if self.url else ''}; licence: {self.licence}"

    def require_hashable(self, hashes: Sequence[Hashing]) -> None:
        """Refuse stages {hash: ...} for columns of numbers, and none where they are needed. Raises `InputError`."""
        if hashes and not self.hashed:
            raise InputError(
                f"data.features: hash is for texts and sparse rows, and '{self.name}' has columns of numbers; use "
                "{project: DIMENSIONS} to have fewer of them"
            )
        if self.hashed and not hashes:
            raise InputError(
                f"data.features: '{self.name}' holds texts or sparse rows; let the features begin with "
                f"{self.hashed.stage}"
            )

    def refusal(self, path: Path, found: str = "") -> InputError:
        """The error to raise for a file of another content."""
        return InputError(f"{path} must hold {self.holds}{f'; got {found}' if found else ''}")
