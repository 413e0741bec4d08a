"""The check of a site's table against a plan: the rows that the site will use, or everything that is wrong with them.

Findings are shown in full at the site, and nowhere else. Where a plan protects whole rows against replacement, the
number of rows is public, so no value of a row may change it. An unusable value is then replaced, and its row stays.
Under other plans the site administrator decides.

`SiteTable` refers to the rows for the process that responds. `WatchedTable` watches the rows for the service that
starts this process.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from federation.contract.errors import InputError, nearest_name
from federation.contract.guarantee import Adjacency, Unit
from federation.contract.plugins import Reference
from federation.contract.validation import apart
from federation.features.feature_map import text_code
from federation.numerics.rows import Floats, Integers
from federation.signed_messages.agreement import Agreement
from parties.party_data.cohort import Holdings
from parties.site.settings import Table as Where
from scenarios.data.hashing import made_from, read_for
from scenarios.data.sheets import NO_TEXT, Sheet, is_missing
from scenarios.data.tables import by_value, cut, listed
from scenarios.deployment.site_data import renamed, require_there, source

_SHOWN = 8  # classes, columns or texts that a sentence names
_NO_VALUE = 'say data.missing = "drop" to leave such rows out, or give a value in [data.missing]'
_NO_LABEL = "give a value in [data.missing]; no row is left out for its label, as the number of rows is public"


@dataclass(frozen=True)
class Finding:
    """A sentence about a table; an `error` keeps its site from being ready."""

    text: str
    error: bool = True


@dataclass(frozen=True, repr=False)
class Examined:
    """What is known of a table: what was found, and rows to answer with, None where there are none of such columns.

    Where a finding is an error they are repaired all the same, for a question that has been paid for: not to answer it
    would tell of a row.
    """

    findings: tuple[Finding, ...]
    holdings: Holdings | None

    @property
    def errors(self) -> list[str]:
        """What keeps a site from being ready."""
        return [one.text for one in self.findings if one.error]


def examined(sheet: Sheet, agreement: Agreement, where: Where, party: int) -> Examined:
    """A table as the rows of a party, and what was found on the way. Raises `InputError` of columns of other types."""
    wanted = [*(column.name for column in agreement.columns), agreement.label.name]
    if agreement.bags is not None:
        wanted.append(agreement.bags.column)
    if agreement.person is not None:
        wanted.append(agreement.person)
    known, wrong = renamed(sheet, where.columns, wanted)
    wrong += _settings(agreement, where)
    wrong += _told_twice(agreement, where, wanted)
    if wrong:
        return Examined(tuple(map(Finding, wrong)), None)
    reading = _Reading(known, agreement, where)
    holdings = reading.holdings(party)
    return Examined(tuple(reading.findings), holdings)


def rows_are_fixed(agreement: Agreement) -> bool:
    """Whether no value of a row may change how many rows there are, or whether the site answers."""
    hidden = (Unit.ROW, Unit.PARTY, Unit.PARTY_AND_AUXILIARY_ROW)
    return any(one.unit in hidden and one.adjacency is Adjacency.REPLACE for one in agreement.promises)


def _settings(agreement: Agreement, where: Where) -> Iterator[str]:
    """What of a site's own configuration does not go with a plan."""
    if where.missing in ("drop", "refuse") and rows_are_fixed(agreement):
        yield (
            f'data.missing = "{where.missing}" is not for this plan: it protects whole rows, whose number is public, '
            "so that no value may change it; leave data.missing out, and rows without a value count as rows of zeros, "
            "or give values in [data.missing]"
        )
    kinds = {column.name: column.text for column in agreement.columns}
    kinds[agreement.label.name] = bool(agreement.label.classes)
    for name, value in where.missing.items() if isinstance(where.missing, dict) else ():
        if name not in kinds:
            yield f"data.missing: '{name}' is no feature or label of the plan{nearest_name(name, kinds)}"
        elif isinstance(value, str) and not kinds[name]:
            yield f"data.missing: '{name}' is a column of numbers, so that its value must be one, got '{cut(value)}'"


def _told_twice(agreement: Agreement, where: Where, wanted: Sequence[str]) -> Iterator[str]:
    """What of a plan would tell the label under another name, as a feature, bag or person that it does not protect."""
    label = column_here(agreement.label.name, where)
    others = [read_for(name) for i, name in enumerate(wanted) if i != len(agreement.columns)]
    for name in dict.fromkeys(others):
        if column_here(name, where) == label:
            yield (
                f"the plan takes the column '{cut(label)}' for the label, which it protects, and for '{cut(name)}', "
                "which may leave as it is; map one of them to another column in [data.columns], or do not serve it"
            )


def column_here(name: str, where: Where) -> str:
    """What a column of the plan is called in a site's own table."""
    here = where.columns.get(name, name)
    return here if isinstance(here, str) else here.column


@dataclass(eq=False)
class _Reading:
    """One table on its way to being the rows of a party."""

    sheet: Sheet  # columns as the plan calls them
    agreement: Agreement
    where: Where
    findings: list[Finding] = field(default_factory=list)

    def holdings(self, party: int) -> Holdings:
        """The rows, repaired."""
        rows, lacking = self._features()
        labels, unlabelled = self._labels()
        kept = np.ones(len(rows), dtype=bool)
        rows[lacking] = 0.0
        if self.fixed:
            self._tell(lacking, "have a missing or unreadable value, and count as rows of zeros")
        elif self.where.missing == "drop":
            kept = ~(lacking | unlabelled) if self.labels_may_go else ~lacking
            self._tell(~kept, "have a missing or unreadable value, and are left out")
        bags, persons = self._bags(), self._persons()
        self._check_sizes(kept, bags)
        self._check_variety(rows[kept], labels[kept])
        return Holdings(
            party,
            rows[kept],
            labels[kept],
            None if bags is None else bags[kept],
            None if persons is None else persons[kept],
        )

    @cached_property
    def fixed(self) -> bool:
        """Whether rows are repaired, and never left out or refused."""
        return rows_are_fixed(self.agreement)

    @cached_property
    def labels_may_go(self) -> bool:
        """Whether a row may be left out for its label: where nobody knows exactly how many there are."""
        adding = all(one.adjacency is Adjacency.ADD_REMOVE for one in self.agreement.promises)
        return adding and self.where.missing == "drop"

    def _here(self, name: str) -> str:
        """What a column of the plan is called here, for a sentence."""
        column = column_here(name, self.where)
        return f"'{cut(name)}'" if column == name else f"'{cut(column)}' ('{cut(name)}' of the plan)"

    @property
    def _values(self) -> dict[str, float | str]:
        return self.where.missing if isinstance(self.where.missing, dict) else {}

    def _features(self) -> tuple[Floats, np.ndarray]:
        """Raw features (n, d), and which rows (n,) lack one that they must have."""
        n = self.sheet.table.num_rows
        rows, lacking = np.zeros((n, len(self.agreement.columns))), np.zeros(n, dtype=bool)
        for i, column in enumerate(self.agreement.columns):
            name, other = column.name, np.empty(0, dtype=np.int64)
            if column.text:
                rows[:, i] = self.sheet.codes(name)
                absent = rows[:, i] == NO_TEXT
            else:
                rows[:, i], other = self.sheet.readings(name)
                absent = np.isnan(rows[:, i])
            if name in self._values:
                value = self._values[name]
                rows[absent, i] = text_code(str(value)) if column.text else value
                self._tell(absent, f"have no value in {self._here(name)} that can be read, and get {value!r}")
                continue
            if self.agreement.missing:  # which the plan's features fill in
                unreadable = np.zeros(n, dtype=bool)
                unreadable[other] = True
                absent = unreadable & (not self.fixed)
            lacking |= absent
            if not self.fixed and self.where.missing != "drop":
                self._refuse(name, np.flatnonzero(absent), "no number", _NO_VALUE)
        return rows, lacking

    def _labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Class codes or numbers (n,), and of which rows (n,) there is none that can be used."""
        return self._classes() if self.agreement.label.classes else self._numbers()

    def _classes(self) -> tuple[Integers, np.ndarray]:
        name, classes = self.agreement.label.name, self.agreement.label.classes
        texts = np.array(self.sheet.texts(name), dtype=object)
        absent = np.array([is_missing(text) for text in texts])
        if name in self._values:
            texts[absent] = str(self._values[name])
            self._tell(absent, f"have no {self._here(name)}, and get {self._values[name]!r}")
            absent[:] = False
        known = {by_value(one): code for code, one in enumerate(classes)}
        code = {text: known.get(by_value(text), -1) for text in {*texts}}
        codes = np.array([code[text] for text in texts], dtype=np.int64)
        unknown = codes < 0
        codes[unknown] = 0
        if self.fixed:
            self._tell(unknown, f"have no class in {self._here(name)}, and count as '{cut(classes[0])}'")
        elif not self.labels_may_go:
            self._refuse(name, np.flatnonzero(absent), "no class", _NO_LABEL)
            rows = np.flatnonzero(unknown & ~absent)
            others = [*dict.fromkeys(texts[rows].tolist())]
            column = column_here(name, self.where)
            for first in others[:1]:
                self._refuse(
                    name,
                    rows,
                    f"none of the classes {listed([*map(cut, classes)], _SHOWN)}{nearest_name(first, classes)}",
                    f'say in [data.columns] which class it is: {name} = {{from = "{column}", map = {{"{cut(first)}" = '
                    f'"{cut(classes[0])}"}}}}; no classes are {listed([repr(cut(one)) for one in others], _SHOWN)}',
                )
        return codes, unknown

    def _numbers(self) -> tuple[Floats, np.ndarray]:
        name, (low, high) = self.agreement.label.name, self.agreement.label.range or (-np.inf, np.inf)
        values, _ = self.sheet.readings(name)
        if name in self._values:
            self._tell(np.isnan(values), f"have no number in {self._here(name)}, and get {self._values[name]!r}")
            values[np.isnan(values)] = self._values[name]
        absent = np.isnan(values)
        outside = ~absent & ((values < low) | (values > high))
        between = f"[{', '.join(apart(low, high))}]"
        if self.fixed:
            self._tell(absent, f"have no number in {self._here(name)}, and count as {low:g}")
            self._tell(outside, f"have a number outside {between} in {self._here(name)}, and count as its nearer end")
        elif not self.labels_may_go:
            self._refuse(name, np.flatnonzero(absent), "no number", _NO_LABEL)
            self._refuse(name, np.flatnonzero(outside), f"outside {between}", "agree on another range with all sites")
        return np.clip(np.where(absent, low, values), low, high), absent | outside

    def _bags(self) -> Integers | None:
        """Which bag each row is in, by the order of their names."""
        if self.agreement.bags is None:
            return None
        values, codes = self._named(self.agreement.bags.column)
        if len(values) > self.agreement.bags.most:
            self._error(
                f"column {self._here(self.agreement.bags.column)} has {len(values)} values ({listed(values, _SHOWN)}), "
                f"each of which is a bag, and the plan has {self.agreement.bags.most} at most; map some to one"
            )
        return codes

    def _persons(self) -> Integers | None:
        """Whose each row is."""
        if self.agreement.person is None:
            return None
        values, codes = self._named(self.agreement.person)
        rows = np.bincount(codes)
        most = self.where.rows_per_person if self.agreement.rows_per_person else 1
        if most and (rows > most).any():
            several = int(np.count_nonzero(rows > most))
            remedy = "correct data.rows-per-person" if self.agreement.rows_per_person else "keep one row of each"
            self._error(
                f"column {self._here(self.agreement.person)}: persons with more rows than {most}: {several}, such as "
                f"'{values[int(rows.argmax())]}'; {remedy}"
            )
        return codes

    def _named(self, name: str) -> tuple[list[str], Integers]:
        """Values of a column by order, numbers by value, and the position of each row's among them."""
        texts = self.sheet.texts(name)
        self._refuse(name, np.flatnonzero([is_missing(text) for text in texts]), "no value", "leave the row out")
        keys = {text: by_value(text) for text in {*texts}}
        order = {key: code for code, key in enumerate(sorted({*keys.values()}))}
        values = {order[key]: cut(text) for text, key in keys.items()}
        return [values[code] for code in range(len(order))], np.array([order[keys[text]] for text in texts], np.int64)

    def _check_sizes(self, kept: np.ndarray, bags: Integers | None) -> None:
        """Each bag, or the whole table, is to have as many rows as the plan says."""
        fewest, most = self.agreement.rows
        sizes = [int(kept.sum())] if bags is None else np.bincount(bags, weights=kept).astype(int).tolist()
        of = "the table has" if bags is None else "a bag has"
        for size in (min(sizes), max(sizes)):
            if not fewest <= size <= most:
                text = f"{of} {size} rows, and the plan has {fewest} to {most} in each; ask its coordinator for another"
                self._error(text)
                return

    def _check_variety(self, rows: Floats, labels: np.ndarray) -> None:
        """Tell of columns and classes that nothing can be learned from."""
        if not len(rows):
            return
        same = np.all((rows == rows[0]) | (np.isnan(rows) & np.isnan(rows[0])), axis=0)
        for column, constant in zip(self.agreement.columns, same.tolist(), strict=True):
            if constant and len(rows) > 1 and made_from(column.name) is None:
                self.findings.append(Finding(f"'{column.name}' has the same value in every row", error=False))
        classes = self.agreement.label.classes
        counts = np.bincount(labels, minlength=len(classes)).tolist() if classes else []
        for name, count in zip(classes, counts, strict=True):
            if not count:
                self.findings.append(Finding(f"no row has the class '{cut(name)}'", error=False))

    def _refuse(self, name: str, rows: Integers, wrong: str, remedy: str) -> None:
        """An error about the cells of some rows: the first by its place and text, and how many there are."""
        if len(rows):
            cell = self.sheet.texts(name)[int(rows[0])]
            told = "is missing" if is_missing(cell) else f"is '{cut(cell)}', {wrong}"
            count = f" ({len(rows)} such rows)" if len(rows) > 1 else ""
            self._error(
                f"{self.sheet.place(int(rows[0]))}: column {self._here(name)} {told}{count}; correct it, or {remedy}"
            )

    def _tell(self, rows: np.ndarray, what: str) -> None:
        if count := int(np.count_nonzero(rows)):
            self.findings.append(Finding(f"{count} of {len(rows)} rows {what}", error=False))

    def _error(self, text: str) -> None:
        self.findings.append(Finding(text))


_QUERY_SECONDS = 600  # after which a query is made again


class SiteTable:
    """The rows of one site, for the process that answers a question: it reads them, and checks them, by itself.

    `data` is the section of that name of the site's configuration, and `agreement` the plan; both as JSON values.
    """

    def __init__(self, data: dict[str, Any], agreement: dict[str, Any]) -> None:
        self._where = Where.model_validate_json(json.dumps(data))
        self._agreement = Agreement.model_validate_json(json.dumps(agreement))

    def holdings(self, party: int) -> Holdings:
        """The rows as they now are, repaired. Raises `InputError` where there are none of such columns."""
        rows = source(self._where, self._agreement.feature_names)
        found = examined(rows, self._agreement, self._where, party)
        if found.holdings is None:
            raise InputError("; ".join(found.errors))
        return found.holdings

    def require_there(self) -> None:
        """Raises `InputError` where the rows could not be read now, whatever they are; none is read."""
        require_there(self._where)

    def evaluation(self) -> None:
        """None: there is no truth to compare with."""


@dataclass(frozen=True)
class WatchedTable:
    """The rows of a site for its service, which has them read again when they may have changed."""

    where: Where
    agreement: Agreement
    party: int

    @property
    def reference(self) -> str:
        """The reference of the provider that a process of its own makes."""
        known = {"data": self.where, "agreement": self.agreement}
        arguments = {name: of.model_dump(mode="json", by_alias=True) for name, of in known.items()}
        return Reference(f"{SiteTable.__module__}:{SiteTable.__name__}", arguments).to_json()

    def version(self) -> object:
        """What is another where the file is another one, and for a query every ten minutes."""
        if self.where.file is None:
            return time.monotonic() // _QUERY_SECONDS
        try:
            known = self.where.file.stat()
        except OSError:
            return None
        return known.st_mtime_ns, known.st_size, known.st_ino

    def read(self) -> tuple[Holdings | None, list[str]]:
        """The rows, None where they cannot be used; and what was found, only the errors where there are some."""
        try:
            rows = source(self.where, self.agreement.feature_names)
            found = examined(rows, self.agreement, self.where, self.party)
        except InputError as error:
            return None, [str(error)]
        if found.errors:
            return None, found.errors
        return found.holdings, [one.text for one in found.findings]
