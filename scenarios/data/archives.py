"""Tables and vectors in npz files, with errors that name the file and the array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from federation.contract.npz_files import NpzFile
from scenarios.data.sheets import is_missing
from scenarios.data.tables import pieces


class Archive(NpzFile):
    """The arrays of one npz file of rows and labels.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     np.savez(Path(folder, "toy.npz"), X=np.ones((3, 2)), y=np.array([0, 1, 0]))
        ...     archive = Archive(Path(folder, "toy.npz"))
        >>> list(archive), archive.vector("y", 3).tolist(), archive.tables("X")[0].shape
        (['X', 'y'], [0, 1, 0], (3, 2))
    """

    def tables(self, *names: str, missing: bool = False) -> list[NDArray[Any]]:
        """The arrays (n, d) of those names.

        Raises `InputError` unless they are of equal width, and of numbers that are finite or, if cells may be
        `missing`, NaN.
        """
        tables = [self.mapped(name) for name in names]
        for name, values in zip(names, tables, strict=True):
            if values.ndim != 2 or values.dtype.kind not in "iufb" or values.size == 0:
                raise self._of_another_form(name, "numbers in rows and columns", values)
            if values.dtype.kind != "f":
                continue
            for start, part in pieces(values):
                with np.errstate(over="ignore"):
                    part = part.astype(np.float64, copy=False)  # as it will be used: a long double may be beyond
                allowed = ~np.isinf(part) if missing else np.isfinite(part)
                if not allowed.all():
                    row, column = np.argwhere(~allowed)[0]
                    raise InputError(
                        f"{self.path}: array '{name}', row {start + row}, column {column} (counted from 0) is "
                        f"{part[row, column]}; remove or replace such values"
                    )
        widths = {table.shape[1] for table in tables}
        if len(widths) > 1:
            raise InputError(f"{self.path}: {' and '.join(names)} must have equal columns, got {sorted(widths)}")
        return tables

    def vector(self, name: str, length: int, *, names: bool = False) -> NDArray[Any]:
        """The array (length,) of that name: numbers or texts, none of them missing. Raises `InputError` for others.

        NaN, blank texts and words such as NA are missing values; among `names` such a word is one.
        """
        values = self[name]
        if values.shape != (length,) or values.dtype.kind not in "iufbU":
            raise self._of_another_form(name, f"{length} numbers or texts", values)
        different, first = np.unique(values, return_index=True)
        missing = [is_missing(value) and not (names and value) for value in different.tolist()]
        if any(missing):
            row = first[missing].min()
            raise InputError(
                f"{self.path}: array '{name}', row {row} (counted from 0) is missing; correct it or remove the row"
            )
        return values

    def joined(self, name: str, parts: Sequence[str], blocks: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The arrays of that name with the endings `parts`, one after the other, with a value per row of `blocks`."""
        return np.concatenate(
            [self.vector(f"{name}{part}", len(block)) for part, block in zip(parts, blocks, strict=True)]
        )

    def column_names(self, name: str, rows: NDArray[Any], *, needed: bool = True) -> tuple[str, ...]:
        """The texts of the array `name`, one for each column of `rows` (n, d); x0, x1, ... where it need not exist."""
        if not needed and name not in self:
            return tuple(f"x{i}" for i in range(rows.shape[1]))
        return tuple(map(str, self.vector(name, rows.shape[1], names=True).tolist()))

    def _of_another_form(self, name: str, wanted: str, values: NDArray[Any]) -> InputError:
        return InputError(f"{self.path}: array '{name}' must hold {wanted}, got {values.dtype} of shape {values.shape}")
