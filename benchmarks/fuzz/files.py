"""Data files as `scenarios.data` reads them, and files of released models and new rows as `federation predict` does."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

from benchmarks.fuzz import tables
from benchmarks.fuzz.inputs import Input, Target
from benchmarks.fuzz.mutation import Mutation
from benchmarks.fuzz.worlds import SmallWorld
from scenarios.commands.predict import predict_command
from scenarios.data import readers as parquet
from scenarios.data.files import read_table
from scenarios.data.tables import Table

# How a file is read, by the first part of a route: its label, and what `read_table` is told beside it. Of Parquet
# alone: `large`, by those of its columns that are used, and `several`, as one of two files of a pattern.
_READ: dict[str, tuple[str, Mapping[str, Any]]] = {
    "classes": ("grade", {}),
    "declared": ("grade", {"classes": ["a", "b", "c", "d"]}),
    "grouped": ("grade", {"groups": ["place"], "missing": True}),
    "real": ("income", {"real": True, "missing": True}),
}
_LARGE, _SEVERAL = "large", "several"
_NPZ_LABELS = {"grade": "y", "income": "income"}
_RELEASED = {  # small worlds whose models are applied
    "linear": "majority_vote",
    "ratio": "class_ratio",
    "means": "class_means",
    "network": "error_marginals",
    "line": "label_sums",
}
_WITH_SETS = ("ratio", "means")
_VARIANT, _NEW, _MODEL = "checked", "new", "model"
_CHANGES: dict[str, Callable[[random.Random, Mutation, bytes], bytes]] = {
    "csv": tables.changed_csv,
    "npz": tables.changed_npz,
    "parquet": tables.changed_parquet,
}


def _found(table: Table) -> str:
    return f"{len(table.classes)} classes, {len(table.text)} of {len(table.columns)} columns are texts"


class Files(Target):
    """Tables, new rows and models in files: with other cells, types, names and shapes, cut off, or with other bytes."""

    name: ClassVar[str] = "files"
    count: ClassVar[int] = 10_000

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._models: dict[str, bytes] = {}

    def seeds(self) -> Sequence[Input]:
        """A small table in every format, for every way to read it; new rows; and released models of every kind."""
        self._models = {kind: SmallWorld(name, self.folder).released() for kind, name in _RELEASED.items()}
        arrays = tables.arrays()
        formats = {
            "csv": tables.csv_text().encode(),
            "npz": tables.npz(arrays),
            "parquet": tables.parquet_file(tables.arrow()),
        }
        divided = tables.npz({f"{name}_{part}": array for name, array in arrays.items() for part in ("train", "test")})
        return [
            *(Input(f"{read}+{ending}", content) for read in _READ for ending, content in formats.items()),
            *(Input(f"{read}+npz", divided) for read in _READ),
            *(Input(f"{read}+parquet", formats["parquet"]) for read in (_LARGE, _SEVERAL) for _ in formats),
            *(Input(f"{_NEW}+{kind}+{ending}", content) for kind in _RELEASED for ending, content in formats.items()),
            *(Input(f"{_MODEL}+{kind}+npz", model) for kind, model in self._models.items() for _ in formats),
        ]

    def mutated(self, source: random.Random, known: Sequence[Input]) -> Input:
        """Changed as a table, as named arrays, or as bytes."""
        given, mutation = source.choice(known), Mutation(source)
        if source.random() < 0.25:
            return Input(given.route, mutation.raw(given.content))
        return Input(given.route, _CHANGES[self._ending(given)](source, mutation, given.content))

    def attempt(self, given: Input) -> str:
        """Read it, or apply the model."""
        how, ending = given.route.split("+")[0], self._ending(given)
        file = self.folder / f"mutated.{ending}"
        file.write_bytes(given.content)
        if how in _READ:
            label, options = _READ[how]
            table = read_table(file, _NPZ_LABELS[label] if ending == "npz" else label, **options)
            return _found(table)
        if how in (_LARGE, _SEVERAL):
            return self._pieces(file, how == _SEVERAL)
        kind = given.route.split("+")[1]
        stored = self.folder / "run" / "models" / _VARIANT / "split-0.npz"
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_bytes(self._models[kind] if how == _NEW else given.content)
        if how == _MODEL:
            file = self.folder / "rows.csv"
            file.write_text(tables.csv_text(), encoding="utf-8")
        by = "place" if how == _NEW and kind in _WITH_SETS else None
        predict_command(self.folder / "run", file, _VARIANT, None, 0, 0, by, None, False)
        return "applied"

    def _pieces(self, file: Path, several: bool) -> str:
        """Read a Parquet file as one that is too large for memory, alone or behind a sound one."""
        if several:
            first = self.folder / "a-mutated.parquet"
            first.write_bytes(tables.parquet_file(tables.arrow()))
            file = self.folder / "*mutated.parquet"
        with patch.object(parquet, "_WHOLE", 0), patch.object(tempfile, "tempdir", str(self.folder)):
            return _found(read_table(file, "grade", groups=["place"], missing=True))

    @classmethod
    def suffix(cls, given: Input) -> str:
        """That of the format."""
        return f".{cls._ending(given)}"

    @staticmethod
    def _ending(given: Input) -> str:
        return given.route.rpartition("+")[2]
