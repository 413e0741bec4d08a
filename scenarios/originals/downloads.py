"""A folder of downloads: its files by their official names, packed or not, as tables and matrices."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from federation.numerics.rows import Integers

if TYPE_CHECKING:  # imported where it is used, because it takes a while
    import pyarrow
    from scipy.sparse import csr_matrix

Arrays = dict[str, NDArray[Any]]
_PACKED = {".gz": gzip.open, ".bz2": bz2.open}
_SHOWN = 160  # characters of what a library says


@dataclass(frozen=True)
class Downloads:
    """What lies in a folder and the folders in it.

    Everything raises `InputError`, which names the file, for one that is not there or of another format.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "labels.txt").write_text("1 walking\\n2 sitting\\n")
        ...     Downloads(Path(folder)).table("labels.txt", ["code", "name"], " ")["name"].to_pylist()
        ['walking', 'sitting']
    """

    folder: Path

    def path(self, name: str) -> Path:
        """The file of that name, which may begin with names of folders, or the same packed by gzip or bzip2."""
        for ending in ("", *_PACKED):
            if found := sorted(self.folder.rglob(name + ending), key=lambda path: (len(path.parts), path)):
                return found[0]
        raise InputError(
            f"there is no file {name} in {self.folder}; unpack the download there, and leave its files their names"
        )

    def open(self, name: str) -> IO[bytes]:
        """The bytes of a file, unpacked."""
        path = self.path(name)
        unpack: Any = _PACKED.get(path.suffix, open)
        try:
            return unpack(path, "rb")  # type: ignore[no-any-return]
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from error

    def table(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        separator: str = ",",
        *,
        numbers: Sequence[str] = (),
        skip: int = 0,
        rows: int | None = None,
    ) -> pyarrow.Table:
        """The cells of a text file, with the names of its first line or those of `columns`; the first `rows` of them.

        The columns `numbers` are real numbers, the others of `columns` texts, and those of a header whatever they seem.
        """
        import pyarrow
        from pyarrow import csv

        block = csv.ReadOptions(column_names=columns, skip_rows=skip, use_threads=False)
        header = columns is None
        parse = csv.ParseOptions(delimiter=separator, quote_char='"' if header else False, newlines_in_values=header)
        types = dict.fromkeys(columns or (), pyarrow.string()) | dict.fromkeys(numbers, pyarrow.float64())
        convert = csv.ConvertOptions(column_types=types, strings_can_be_null=False)
        try:
            if rows is None:
                return csv.read_csv(self.path(name), block, parse, convert)
            batches, count = [], 0
            for batch in csv.open_csv(self.path(name), block, parse, convert):
                batches.append(batch)
                count += len(batch)
                if count >= rows:
                    break
            return pyarrow.Table.from_batches(batches).slice(0, rows)
        except (pyarrow.ArrowException, OSError) as error:
            raise self._refusal(name, error) from error

    def matrix(self, name: str) -> NDArray[np.float64]:
        """Lines of as many numbers each, with spaces between."""
        try:
            return np.loadtxt(self.open(name), ndmin=2)
        except (ValueError, OSError, EOFError) as error:
            raise self._refusal(name, error) from error

    def svmlight(self, name: str, columns: int) -> tuple[csr_matrix, NDArray[np.float64]]:
        """Sparse rows and their labels."""
        from sklearn.datasets import load_svmlight_file

        try:
            rows, labels = load_svmlight_file(self.open(name), n_features=columns, zero_based=False)
        except (ValueError, OSError, EOFError) as error:
            raise self._refusal(name, error) from error
        return rows, labels

    def _refusal(self, name: str, error: Exception) -> InputError:
        said = " ".join(str(error).split())[:_SHOWN]
        return InputError(f"{self.path(name)} is not of the official format ({said}); download it again")


def names_of(text: str) -> tuple[str, ...]:
    """The words of a text.

    Examples:
        >>> names_of("age sex")
        ('age', 'sex')
    """
    return tuple(text.split())


def numbers(table: pyarrow.Table, names: Sequence[str], path: Path, *, missing: bool = False) -> NDArray[np.float64]:
    """Columns of numbers of a table as float64 (n, len(names)), NaN for empty cells where they may be `missing`.

    Raises `InputError`, which names the file, for a column that is not there and for other cells.
    """
    found = np.empty((table.num_rows, len(names)))
    for i, name in enumerate(names):
        if name not in table.column_names:
            raise InputError(f"{path} has no column '{name}'; name the original file")
        found[:, i] = table.column(name).to_numpy()
    if not missing and np.isnan(found).any():
        row, column = np.argwhere(np.isnan(found))[0]
        raise InputError(f"{path}: '{names[column]}' of row {row} (counted from 0) is empty; download it again")
    return found


def texts(table: pyarrow.Table, name: str, path: Path) -> NDArray[np.str_]:
    """A column of a table as texts (n,), without spaces around them. Raises `InputError` where there is none."""
    if name not in table.column_names:
        raise InputError(f"{path} has no column '{name}'; name the original file")
    return np.array([str(cell).strip() for cell in table.column(name).to_pylist()])


def coded(values: NDArray[np.str_]) -> tuple[NDArray[np.str_], NDArray[np.uint8]]:
    """The different texts by alphabet, and each text's position among them."""
    known, codes = np.unique(values, return_inverse=True)
    return known, codes.astype(np.uint8)


def indicators(codes: Integers | NDArray[np.uint8], count: int) -> NDArray[np.uint8]:
    """A column (n, count) for each position: 1 where the code is that."""
    return np.asarray(codes[:, None] == np.arange(count), dtype=np.uint8)
