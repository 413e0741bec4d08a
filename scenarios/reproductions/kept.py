"""What stays of an item: its values as a small table, and a record of how they were made, beside each other."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from io import StringIO
from pathlib import Path

from federation.contract.errors import InputError, refusing, writing
from federation.contract.files import is_file, read_object
from scenarios.reproductions.paper import Item, Observation, Paper
from scenarios.runs.checksums import replaced

_COLUMNS = tuple(each.name for each in fields(Observation))
_REMEDY = "name another --out, or delete it"


@dataclass(frozen=True)
class Record:
    """How an item was measured: the command, the version, and for every setting its seed, number of splits and data.

    `data` says what each setting was measured on, where that is not the paper's own; `missing` why some were not.
    """

    command: str
    version: str
    quick: bool
    seeds: Mapping[str, int] = field(default_factory=dict)
    splits: Mapping[str, int] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kept:
    """The values of an item, and their record."""

    observations: Sequence[Observation]
    record: Record

    def by_split(self, setting: str, series: str, role: str, x: str) -> dict[int, float]:
        """The values of one cell; none where it was not measured."""
        return self._cells.get((setting, series, role, x), {})

    @cached_property
    def _cells(self) -> dict[tuple[str, str, str, str], dict[int, float]]:
        found: dict[tuple[str, str, str, str], dict[int, float]] = {}
        for one in self.observations:
            found.setdefault((one.setting, one.series, one.role, one.x), {})[one.split] = one.value
        return found


def table(folder: Path, paper: Paper, item: Item) -> Path:
    """Where the values of an item are: PAPER/ITEM.csv, with its record as ITEM.json beside it."""
    return folder / paper.name / f"{item.name}.csv"


def keep(folder: Path, paper: Paper, item: Item, found: Kept) -> None:
    """Write values with six digits, and the record, each file whole or not at all.

    Raises `InputError` where that is not possible.
    """
    path = table(folder, paper, item)
    values = StringIO()
    writer = csv.writer(values, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(_cells(found.observations))
    with writing(f"to {path.parent}", "name another --out"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replaced(path, values.getvalue())
        replaced(path.with_suffix(".json"), json.dumps(asdict(found.record), indent=2) + "\n")


def _cells(observations: Iterable[Observation]) -> Iterable[tuple[object, ...]]:
    for one in observations:
        yield one.setting, one.series, one.role, one.x, one.split, f"{one.value:.6g}"


def read(folder: Path, paper: Paper, item: Item) -> Kept | None:
    """What was kept of an item; None where nothing was. Raises `InputError` for files of another content."""
    path = table(folder, paper, item)
    if not is_file(path):
        return None
    with refusing(f"{path} and the .json beside it are not what `federation reproduce` writes; {_REMEDY}"):
        record = Record(**read_object(path.with_suffix(".json"), _REMEDY))
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        observations = [
            Observation(**{**row, "split": int(row["split"]), "value": float(row["value"])})  # type: ignore[arg-type]
            for row in rows
        ]
    if not observations:
        raise InputError(f"{path} holds no values; {_REMEDY}")
    return Kept(observations, record)
