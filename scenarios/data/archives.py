"""Arrays of npz files, read without pickles and with errors that name the file."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from federation.contract.errors import InputError, nearest_name


class Archive:
    """The named arrays of one npz file. Raises `InputError` when it is not readable as such."""

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

    def array(self, name: str) -> np.ndarray:
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

    def tables(self, *names: str) -> list[np.ndarray]:
        """The arrays (n, d) of those names, checked to be finite numbers and of equal width."""
        tables = [self._numbers(name) for name in names]
        widths = {table.shape[1] for table in tables}
        if len(widths) > 1:
            raise InputError(f"{self.path}: {' and '.join(names)} must have equal columns, got {sorted(widths)}")
        return tables

    def _numbers(self, name: str) -> np.ndarray:
        values = self.array(name)
        if values.ndim != 2 or values.dtype.kind not in "iufb" or values.size == 0:
            raise InputError(
                f"{self.path}: array '{name}' must hold numbers in rows and columns, "
                f"got {values.dtype} of shape {values.shape}"
            )
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise InputError(
                f"{self.path}: array '{name}', row {row}, column {column} (counted from 0) is "
                f"{values[row, column]}; remove or replace such values"
            )
        return values

    def vector(self, name: str, length: int) -> np.ndarray:
        """The array (length,) of that name: numbers or texts, none of them missing."""
        values = self.array(name)
        if values.shape != (length,) or values.dtype.kind not in "iufbU":
            raise InputError(
                f"{self.path}: array '{name}' must hold {length} numbers or texts, "
                f"got {values.dtype} of shape {values.shape}"
            )
        missing = np.isnan(values) if values.dtype.kind == "f" else values == ""
        if values.dtype.kind in "fU" and missing.any():
            raise InputError(f"{self.path}: array '{name}', row {np.argmax(missing)} (counted from 0) is missing")
        return values
