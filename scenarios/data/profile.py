"""Profiles of the columns in the user's own file, before the user has said what each column is for."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from aggregator.trial.feature_fitting import LARGEST_VOCABULARY, are_identifiers, names_somebody
from federation.contract.errors import InputError, nearest_name
from scenarios.data.files import CLASSES_OF_A_SMALL_FILE, open_sheet, suffix, too_many_classes, too_many_texts
from scenarios.data.readers import Archive
from scenarios.data.sheets import Sheet, is_missing
from scenarios.data.tables import cut, listed

Kind = Literal[
    "numbers",
    "whole numbers",
    "texts",
    "dates",
    "free text",
    "identifiers",
    "one value",
    "nothing",
    "mixed",
    "unusable",
    "decimal commas",
    "signed numbers",
]

NO_FEATURE: Mapping[str, str] = {  # why a column of that kind is none
    "dates": "dates",
    "free text": "free text",
    "identifiers": "every row has another value, as identifiers have",
    "one value": "the same value everywhere",
    "nothing": "nothing but missing cells",
    "mixed": "texts or infinities among its numbers",
    "unusable": "neither numbers nor texts",
    "signed numbers": "numbers with signs, which are read as texts; write them without to keep them",
}
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?")
_DECIMAL_COMMA = re.compile(r"[-+]?(\d{1,3}([. ]\d{3})+|\d*),\d+")
_SIGNED = re.compile(r"[^\w-]*[-+]?[^\w]*\d[\d.,' ]*[^\w]*(EUR|USD|GBP|CHF)?", re.IGNORECASE)
_LABEL = re.compile(r"^(y|labels?|class(es)?|targets?|outcomes?|diagnosis|response|result|income|species)$")
_MOST = 0.9  # of a column's cells that decide what it holds
_WORDS = 3.0  # in a cell of free text, on average
_SHOWN = 8


@dataclass(frozen=True)
class Column:
    """One column: how many values it has, how many cells are missing, and what it seems to hold.

    `counts` are the texts of a column with 1000 different values at most and how often each occurs, in their order.
    """

    name: str
    kind: Kind
    distinct: int
    missing: int
    counts: Mapping[str, int]

    @property
    def no_feature(self) -> str | None:
        """Why it should be none, in words."""
        return NO_FEATURE.get(self.kind)

    @property
    def names_somebody(self) -> bool:
        """Whether it is named as an identifier is and values come back, as with several rows of a person."""
        return self.kind in ("whole numbers", "texts") and names_somebody(self.name)


@dataclass(frozen=True)
class Profile:
    """A file: its rows and its columns in their order; of an npz file these are those of X, and the labels."""

    path: Path
    rows: int
    columns: tuple[Column, ...]

    def column(self, name: str, flag: str) -> Column:
        """The column of that name. Raises `InputError`, which names the `flag` that asked for it."""
        found = {column.name: column for column in self.columns}
        if name not in found:
            raise InputError(
                f"{flag}: {self.path} has no column '{cut(name)}'; it has {listed([*map(cut, found)], 20)}"
                + nearest_name(name, found)
            )
        return found[name]

    def is_real(self, column: Column) -> bool:
        """Whether labels of it are measurements: more than 20 numbers, and no whole ones that come back."""
        if column.kind == "numbers":
            return column.distinct > CLASSES_OF_A_SMALL_FILE
        return column.kind in ("whole numbers", "identifiers") and too_many_classes(column.distinct, self.rows)

    def label_candidates(self) -> list[Column]:
        """Columns that may hold the labels, the likeliest first: so named, whole and of classes, at either end."""
        ends = {0, len(self.columns) - 1}

        def rank(place: int) -> tuple[bool, bool, bool, bool, int]:
            column = self.columns[place]
            named, odd = _LABEL.match(column.name.lower()), column.missing > 0 or column.names_somebody
            return not named, self.is_real(column), odd, place not in ends, -place

        ordered = [self.columns[place] for place in sorted(range(len(self.columns)), key=rank)]
        return [column for column in ordered if column.no_feature is None and column.distinct > 1]

    def obvious_label(self) -> str | None:
        """The only column that bears the name of a label."""
        named = [column.name for column in self.columns if _LABEL.match(column.name.lower())]
        return named[0] if len(named) == 1 else None

    def groups(self) -> list[Column]:
        """Columns of a few values, five rows or more of each, by which rows may be dealt to parties."""
        return [
            column
            for column in self.columns
            if column.kind in ("texts", "whole numbers") and 2 <= column.distinct <= self.rows / 5 and column.counts
        ]


def profile(path: Path, label: str | None = None) -> Profile:
    """What the columns of a CSV, Parquet or npz file hold; `label` names another array than y of the latter.

    Raises `InputError` for a file that cannot be read, and for numbers with decimal commas.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "people.csv")
        ...     _ = path.write_text("born,age,city,ill\\n1990-01-02,30,,yes\\n1979-05-01,41,Oslo,no\\n")
        ...     [(column.name, column.kind, column.missing) for column in profile(path).columns]
        [('born', 'dates', 0), ('age', 'whole numbers', 0), ('city', 'texts', 1), ('ill', 'texts', 0)]
    """
    if suffix(path) == ".npz":
        archive = Archive(path)
        part = "" if "X" in archive else "_train"
        rows = archive.tables(f"X{part}", missing=True)[0]
        names = archive.column_names("feature_names", rows, needed=False)
        known = label or "y"
        values = archive.vector(f"{known}{part}", len(rows))
        labels = _of_texts(known, values.tolist()) if values.dtype.kind == "U" else _of_numbers(known, values)
        columns = (*(_of_numbers(name, values) for name, values in zip(names, rows.T, strict=True)), labels)
        return Profile(path, len(rows), columns)
    sheet = open_sheet(path)
    columns = tuple(_of_sheet(sheet, name) for name in sheet.header)
    if commas := [cut(column.name) for column in columns if column.kind == "decimal commas"]:
        raise InputError(
            f"{path}: {listed(commas, _SHOWN)} hold{'s' if len(commas) == 1 else ''} numbers with a decimal comma, "
            "which would be read as texts; write them with a decimal point"
        )
    return Profile(path, sheet.table.num_rows, columns)


def _of_sheet(sheet: Sheet, name: str) -> Column:
    try:
        texts = sheet.texts(name)
    except InputError:  # of a type that is neither numbers nor texts
        return Column(name, "unusable", 0, 0, {})
    if sheet.is_text(name):
        return _of_texts(name, texts)
    try:
        return _of_numbers(name, sheet.numbers(name, missing=True))
    except InputError:  # a cell that is no finite number
        return replace(_of_texts(name, texts), kind="mixed", counts={})


def _without_variation(different: int, missing: int) -> Kind | None:
    """The kind of a column with so many different values that says nothing; which cells are missing says something."""
    if different == 0:
        return "nothing"
    return "one value" if different == 1 and not missing else None


def _of_texts(name: str, cells: Sequence[str]) -> Column:
    counts = Counter(cell for cell in cells if not is_missing(cell))
    missing = len(cells) - sum(counts.values())
    kind = _without_variation(len(counts), missing) or _kind_of_texts(counts, len(cells))
    return Column(name, kind, len(counts), missing, _few(counts))


def _kind_of_texts(counts: Mapping[str, int], rows: int) -> Kind:
    if _share(counts, _DATE) >= _MOST:
        return "dates"
    if _share(counts, _DECIMAL_COMMA) >= _MOST:
        return "decimal commas"
    if not too_many_texts(len(counts), rows) and len(counts) <= LARGEST_VOCABULARY:
        return "texts"
    if _share(counts, _SIGNED) >= _MOST:
        return "signed numbers"
    words = sum(len(text.split()) * count for text, count in counts.items()) / sum(counts.values())
    return "free text" if words >= _WORDS else "identifiers"


def _share(counts: Mapping[str, int], form: re.Pattern[str]) -> float:
    """The share of the cells that are of a form."""
    return sum(count for text, count in counts.items() if form.fullmatch(text)) / sum(counts.values())


def _of_numbers(name: str, values: np.ndarray) -> Column:
    present = values[~np.isnan(values)].astype(np.float64)
    different, times = np.unique(present, return_counts=True)
    missing = len(values) - len(present)
    kind = _without_variation(len(different), missing) or _kind_of_numbers(name, present)
    few = different[: LARGEST_VOCABULARY + 1].tolist()
    texts = [f"{value:.0f}" if value.is_integer() else repr(value) for value in few]
    counts = dict(zip(texts, times[: len(texts)].tolist(), strict=True))
    return Column(name, kind, len(different), missing, _few(counts))


def _kind_of_numbers(name: str, cells: np.ndarray) -> Kind:
    """Return the kind of a column of numbers, from the cells that are not missing."""
    if not (cells == np.floor(cells)).all():
        return "numbers"
    return "identifiers" if are_identifiers(name, cells) else "whole numbers"


def _few(counts: Mapping[str, int]) -> Mapping[str, int]:
    return dict(counts) if len(counts) <= LARGEST_VOCABULARY else {}
