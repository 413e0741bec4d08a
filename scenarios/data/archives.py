"""Arrays of npz files, read without pickles and with errors that name the file."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError, nearest_name
from scenarios.data.sheets import is_missing


class Archive:
    """The named arrays of one npz file. Raises `InputError` when it is not readable as such.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     np.savez(Path(folder, "toy.npz"), X=np.ones((3, 2)), y=np.array([0, 1, 0]))
        ...     archive = Archive(Path(folder, "toy.npz"))
        >>> archive.names, archive.vector("y", 3).tolist(), archive.tables("X")[0].shape
        (['X', 'y'], [0, 1, 0], (3, 2))
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            opened = np.load(path, allow_pickle=False)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}; check the path") from error
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(f"{path} is damaged or not an npz file; save it again with numpy.savez") from error
        if not isinstance(opened, np.lib.npyio.NpzFile):
            raise InputError(f"{path} holds one array, not an npz archive of named arrays; save with numpy.savez")
        self._opened = opened

    def __contains__(self, name: str) -> bool:
        return name in self._opened.files

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return list(self._opened.files)

    def array(self, name: str) -> NDArray[Any]:
        """The array of that name. Raises `InputError` when it is missing, pickled or damaged."""
        if name not in self:
            raise InputError(
                f"{self.path} has no array '{name}'; it has {', '.join(self.names) or 'none'}"
                + nearest_name(name, self.names)
            )
        try:
            return np.asarray(self._opened[name])
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            if "Object arrays" in str(error):  # numpy's advice is to load them as pickles, which run code
                raise InputError(
                    f"{self.path}: array {name} holds Python objects; save it as numbers or as text, {name}.astype(str)"
                ) from error
            raise InputError(f"{self.path} is damaged: array '{name}' cannot be read; save the file again") from error

    def tables(self, *names: str, missing: bool = False) -> list[NDArray[Any]]:
        """The arrays (n, d) of those names.

        Raises `InputError` unless they are of equal width, and of numbers that are finite or, if cells may be
        `missing`, NaN.
        """
        tables = [self.array(name) for name in names]
        for name, values in zip(names, tables, strict=True):
            if values.ndim != 2 or values.dtype.kind not in "iufb" or values.size == 0:
                raise self._of_another_form(name, "numbers in rows and columns", values)
            if values.dtype.kind != "f":
                continue
            allowed = ~np.isinf(values) if missing else np.isfinite(values)
            if not allowed.all():
                row, column = np.argwhere(~allowed)[0]
                raise InputError(
                    f"{self.path}: array '{name}', row {row}, column {column} (counted from 0) is "
                    f"{values[row, column]}; remove or replace such values"
                )
        widths = {table.shape[1] for table in tables}
        if len(widths) > 1:
            raise InputError(f"{self.path}: {' and '.join(names)} must have equal columns, got {sorted(widths)}")
        return tables

    def vector(self, name: str, length: int, *, names: bool = False) -> NDArray[Any]:
        """The array (length,) of that name: numbers or texts, none of them missing. Raises `InputError` for others.

        NaN, blank texts and words such as NA are missing values; among `names` such a word is one.
        """
        values = self.array(name)
        if values.shape != (length,) or values.dtype.kind not in "iufbU":
            raise self._of_another_form(name, f"{length} numbers or texts", values)
        for row, value in enumerate(values.tolist()):
            if is_missing(value) and not (names and value):
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
