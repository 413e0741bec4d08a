"""Large text files with known columns, read block by block and kept in little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from federation.contract.errors import InputError
from federation.features.feature_map import text_code
from scenarios.data.tables import listed

if TYPE_CHECKING:
    import pyarrow

_BLOCK = 1 << 24  # bytes of the file that are parsed at a time
_MOST_TEXTS = 1 << 16  # different ones in a column, each of which two bytes can tell apart
_COLUMNS_SHOWN = 20

Keep = Callable[[Mapping[str, np.ndarray]], np.ndarray]


@dataclass(frozen=True, eq=False)
class CodedTexts:
    """A block of a `Table`: d columns of texts, of which each cell takes two bytes.

    `codes` (n, d), uint16, are positions in the columns' `vocabularies` of `text_code` numbers.
    """

    codes: np.ndarray
    vocabularies: tuple[np.ndarray, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d)."""
        return self.codes.shape

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """The texts of the rows at `rows` (m,) as `text_code` numbers, float64 (m, d)."""
        columns = zip(self.codes[rows].T, self.vocabularies, strict=True)
        return np.column_stack([vocabulary[codes] for codes, vocabulary in columns])


@dataclass(frozen=True, eq=False)
class LargeSheet:
    """The rows that were kept: `numbers` by column, each (n,) float64 with NaN for what is missing, and the texts."""

    numbers: Mapping[str, np.ndarray]
    texts: CodedTexts


def read_large(
    path: Path,
    numbers: Sequence[str],
    texts: Sequence[str],
    keep: Keep,
    *,
    separator: str = ",",
    names: Sequence[str] | None = None,
) -> LargeSheet:
    """The columns `numbers` and `texts` of the rows of a file that `keep` says are wanted, given their numbers.

    `names` are those of all columns of a file without a header, whose cells have no quotation marks. The file is never
    in memory as a whole. Raises `InputError` for a file that cannot be read so, missing columns and no rows.
    """
    kept: dict[str, list[np.ndarray]] = {name: [] for name in numbers}
    columns = [_TextColumn(path, name) for name in texts]
    for block in _blocks(path, numbers, texts, separator, names):
        values = {name: block.column(name).to_numpy(zero_copy_only=False) for name in numbers}
        wanted = np.flatnonzero(keep(values))
        for name in numbers:
            kept[name].append(values[name][wanted])
        for column in columns:
            column.add(block.column(column.name), wanted)
    joined = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in kept.items()}
    if not len(joined[numbers[0]]):
        raise InputError(f"{path} has no row with a label; name a file of the documented format")
    codes = np.column_stack([np.concatenate(column.codes) for column in columns])
    return LargeSheet(joined, CodedTexts(codes, tuple(column.vocabulary for column in columns)))


class _TextColumn:
    """Collects the cells of one column as codes, which are given out in the order in which texts occur."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self.codes: list[np.ndarray] = []
        self._path = path
        self._known: dict[str, int] = {}

    @property
    def vocabulary(self) -> np.ndarray:
        """The `text_code` of every text."""
        return np.array([text_code(text) for text in self._known])

    def add(self, cells: pyarrow.DictionaryArray, wanted: np.ndarray) -> None:
        """The cells at the positions `wanted` of a block."""
        used, positions = np.unique(cells.indices.to_numpy(zero_copy_only=False)[wanted], return_inverse=True)
        texts = cells.dictionary.to_pylist()
        for text in (texts[i].strip() for i in used):
            self._known.setdefault(text, len(self._known))
        if len(self._known) > _MOST_TEXTS:
            raise InputError(f"{self._path}: column '{self.name}' has more than {_MOST_TEXTS} different texts")
        coded = np.array([self._known[texts[i].strip()] for i in used], dtype=np.uint16)
        self.codes.append(coded[positions])


def _blocks(
    path: Path, numbers: Sequence[str], texts: Sequence[str], separator: str, names: Sequence[str] | None
) -> Iterator[pyarrow.RecordBatch]:
    try:
        import pyarrow
        from pyarrow import csv
    except ImportError as error:
        raise InputError(f"{path}: reading it needs the package pyarrow ({error}); install it") from error
    types = dict.fromkeys(numbers, pyarrow.float64())
    types |= dict.fromkeys(texts, pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))
    if names is None:
        found = _header(path, separator)
        if missing := [name for name in types if name not in found]:
            raise InputError(
                f"{path} lacks the columns {', '.join(missing)}; it has {listed(found, _COLUMNS_SHOWN) or 'none'}"
            )
    try:
        with csv.open_csv(
            path,
            read_options=csv.ReadOptions(column_names=names, block_size=_BLOCK, use_threads=False),
            parse_options=csv.ParseOptions(delimiter=separator, quote_char='"' if names is None else False),
            convert_options=csv.ConvertOptions(include_columns=list(types), column_types=types),
        ) as reader:
            yield from reader
    except (pyarrow.ArrowException, OSError) as error:
        said = " ".join(str(error).split())[:160]
        raise InputError(f"{path} is not of the documented format ({said}); name another file") from error


def _header(path: Path, separator: str) -> list[str]:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return [cell.strip().strip('"') for cell in file.readline().split(separator)]
