"""What is measured: one row of a CSV file per value, kept job by job, so that an interrupted benchmark goes on."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from federation.contract.errors import InputError

DONE = "seconds"  # the metric of a job's last row: its rows are complete once it is there


class Record(NamedTuple):
    """The mean over noise draws of one metric of one variant; `key` identifies all that its job ran.

    `world` says how a set was dealt out, as in K=100; `noise` is a law where variants are compared under several;
    epsilon is infinite for references without privacy.
    """

    part: str
    set: str
    world: str
    split: int
    key: str
    variant: str
    noise: str
    epsilon: float
    metric: str
    value: float


class Store:
    """The records in a file. Raises `InputError` when it is no such file, or cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or not path.stat().st_size:
                path.write_text(",".join(Record._fields) + "\n", encoding="utf-8")
            self._repair()
        except OSError as error:
            raise InputError(f"--out {path} cannot be written: {error.strerror}; name another file") from error

    def _repair(self) -> None:
        """Cut off a row that an interruption has left unfinished."""
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if not whole.startswith(",".join(Record._fields) + "\n"):
            raise InputError(f"--out {self.path} is another kind of file; name a new one, or one of this benchmark")
        if whole != text:
            self.path.write_text(whole, encoding="utf-8")

    def add(self, records: Sequence[Record]) -> None:
        """Append a job's records, of which the last one says that it is done."""
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(records)

    def of(self, keys: Iterable[str]) -> list[Record]:
        """The records of those jobs that are complete, in the order of the keys; of a repeated job the first ones."""
        wanted = dict.fromkeys(keys)
        found: dict[str, list[Record]] = {}
        complete: dict[str, list[Record]] = {}
        with self.path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["key"] in wanted and row["key"] not in complete:
                    record = _read(row)
                    found.setdefault(record.key, []).append(record)
                    if record.metric == DONE:
                        complete[record.key] = found.pop(record.key)
        return [record for key in wanted for record in complete.get(key, [])]


def _read(row: dict[str, str]) -> Record:
    numbers = {"split": int(row["split"]), "epsilon": float(row["epsilon"]), "value": float(row["value"])}
    return Record(**{**row, **numbers})  # type: ignore[arg-type]
