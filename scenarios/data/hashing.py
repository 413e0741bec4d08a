"""Feature hashing: the words of a text column, or the columns of sparse rows, in 2^bits columns of numbers.

The column and the sign of a word or a name are a public function of the word or name alone. Nothing is fitted, and all
readers of the same cell get the same numbers. A hashed column has a name that says how it was made, such as
`hash(comment, 2 words, 10 bits)[17]`. A reader of that name in a plan or a model can make the column from `comment`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from federation.contract.query import MOST_COLUMNS
from federation.numerics.rows import Floats, Integers

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MOST_BITS, MOST_WORDS = 16, 3
MOST_CELLS = 1 << 27  # 1 GiB of rows with their zeros
_STAGE = "hash"
_NAME = re.compile(
    r"hash\((?:x|(?P<column>.*), (?P<words>[1-3]) words), (?P<bits>1?[0-9]) bits\)\[(?P<place>[0-9]{1,5})\]", re.DOTALL
)


@dataclass(frozen=True)
class Hashing:
    """A stage {hash: ...} of data.features: a `column` of texts, or all of a sparse file (None), in 2^`bits` columns.

    Of a text every run of up to `words` words counts, in small letters; a word has two characters or more.

    Examples:
        >>> Hashing.of({"column": "comment", "bits": 1, "words": 2}).names
        ('hash(comment, 2 words, 1 bits)[0]', 'hash(comment, 2 words, 1 bits)[1]')
        >>> Hashing.of(1).names
        ('hash(x, 1 bits)[0]', 'hash(x, 1 bits)[1]')
    """

    bits: int
    column: str | None = None
    words: int = 1

    @classmethod
    def of(cls, value: int | Mapping[str, Any]) -> Hashing:
        """What the stage {hash: VALUE} says."""
        return cls(**value) if isinstance(value, Mapping) else cls(value)

    @property
    def stage(self) -> str:
        """How a scenario writes it.

        Examples:
            >>> Hashing(12).stage, Hashing(12, "comment").stage
            ('{hash: 12}', '{hash: {column: comment, bits: 12}}')
        """
        words = f", words: {self.words}" if self.words > 1 else ""
        return (
            f"{{hash: {self.bits if self.column is None else f'{{column: {self.column}, bits: {self.bits}{words}}}'}}}"
        )

    @property
    def width(self) -> int:
        """The number of columns that it makes."""
        return 1 << self.bits

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that it makes."""
        of = "x" if self.column is None else f"{self.column}, {self.words} words"
        return tuple(f"hash({of}, {self.bits} bits)[{place}]" for place in range(self.width))


def hashings(features: Iterable[Any]) -> tuple[int | Mapping[str, Any], ...]:
    """The values of the stages {hash: ...} among data.features."""
    return tuple(stage[_STAGE] for stage in features if is_hashing(stage))


def is_hashing(stage: object) -> bool:
    """Whether a stage of data.features hashes, which is done as rows are read."""
    return isinstance(stage, Mapping) and _STAGE in stage


def made_from(name: str) -> tuple[Hashing, int] | None:
    """How the column of that name is made by hashing, and its place; None for any other.

    Examples:
        >>> made_from("hash(comment, 1 words, 4 bits)[3]")
        (Hashing(bits=4, column='comment', words=1), 3)
    """
    found = _NAME.fullmatch(name)
    if found is None or not 1 <= int(found["bits"]) <= MOST_BITS or int(found["place"]) >= 1 << int(found["bits"]):
        return None
    return Hashing(int(found["bits"]), found["column"], int(found["words"] or 1)), int(found["place"])


def read_for(name: str) -> str:
    """The column of a file that a column of features is read from: itself, unless it is made of a text.

    Examples:
        >>> read_for("age"), read_for("hash(comment, 1 words, 4 bits)[3]")
        ('age', 'comment')
    """
    known = made_from(name)
    return name if known is None or known[0].column is None else known[0].column


@dataclass(frozen=True, eq=False)
class HashedRows:
    """A block of a `Table`: n rows of d <= 2^16 columns, nearly all zero, of which only the others are kept.

    Row i has the numbers `values[starts[i]:starts[i + 1]]` in the columns `places` of the same positions, six bytes
    for each.
    """

    values: NDArray[np.float32]
    places: NDArray[np.uint16]
    starts: Integers
    width: int

    @classmethod
    def of(cls, batches: Iterable[csr_matrix], width: int) -> HashedRows:
        """Return the rows of sparse matrices of that width, one after the other; each may be forgotten then."""
        values, places, lengths = [np.empty(0, np.float32)], [np.empty(0, np.uint16)], [np.zeros(1, np.int64)]
        for batch in batches:
            batch.sum_duplicates()
            batch.eliminate_zeros()
            values.append(batch.data.astype(np.float32))
            places.append(batch.indices.astype(np.uint16))
            lengths.append(np.diff(batch.indptr).astype(np.int64))
        return cls(np.concatenate(values), np.concatenate(places), np.cumsum(np.concatenate(lengths)), width)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return len(self), self.width

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: Integers | range) -> Floats:
        """The rows at `rows` (m,) with their zeros, float64 (m, d)."""
        first, lengths = self.starts[rows], self.starts[np.asarray(rows) + 1] - self.starts[rows]
        before = np.cumsum(lengths) - lengths
        kept = np.repeat(first - before, lengths) + np.arange(int(lengths.sum()))
        out = np.zeros((len(lengths), self.width))
        out[np.repeat(np.arange(len(lengths)), lengths), self.places[kept]] = self.values[kept]
        return out

    def whole(self, where: str) -> Floats:
        """All rows with their zeros. Raises `InputError`, which says `where` they are, for too many."""
        if len(self) * self.width > MOST_CELLS:
            raise InputError(
                f"{where} has {len(self)} rows of {self.width} hashed columns, more than the {MOST_CELLS} cells that "
                "are kept at a time; take fewer rows"
            )
        return self[np.arange(len(self))]


def hashed_texts(batches: Iterable[Sequence[str]], hashing: Hashing) -> HashedRows:
    """Counts of the words of texts, with signs, by scikit-learn's HashingVectorizer.

    Examples:
        >>> rows = hashed_texts([["a good day, a good day", ""]], Hashing(3, "comment"))
        >>> rows.shape, int(np.abs(rows[np.array([0])]).sum()), int(np.abs(rows[np.array([1])]).sum())
        ((2, 8), 4, 0)
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    words = HashingVectorizer(n_features=hashing.width, ngram_range=(1, hashing.words), norm=None)
    return HashedRows.of(map(words.transform, batches), hashing.width)


class SparseHasher:
    """Sparse rows in 2^bits columns: column i of a file is called x1, x2, ..., and hashed by that name.

    As scikit-learn's FeatureHasher does it; every name is hashed once, which is what takes the time.

    Examples:
        >>> from scipy.sparse import csr_matrix
        >>> rows = SparseHasher(4).rows(csr_matrix(np.array([[0.5, 0.0, 2.0]])))
        >>> rows.shape, sorted(np.abs(rows.data).tolist())
        ((1, 16), [0.5, 2.0])
    """

    def __init__(self, bits: int) -> None:
        from sklearn.feature_extraction import FeatureHasher

        self._width = 1 << bits
        self._hasher = FeatureHasher(self._width, input_type="string")
        self._codes = np.zeros(0, np.int32)  # the place from 1 on, with the sign; 0 where it is not known yet

    def rows(self, sparse: csr_matrix) -> csr_matrix:
        """The hashed rows (m, 2^bits) of sparse ones (m, w), w <= 2^24."""
        from scipy.sparse import csr_matrix

        self._learn(np.unique(sparse.indices))
        codes = self._codes[sparse.indices]
        kept = (sparse.data * np.sign(codes), np.abs(codes) - 1, sparse.indptr)
        return csr_matrix(kept, shape=(sparse.shape[0], self._width))

    def _learn(self, columns: Integers) -> None:
        if len(columns) and columns[-1] >= len(self._codes):
            self._codes = np.concatenate(
                [self._codes, np.zeros(min(2 * int(columns[-1]) + 1, MOST_COLUMNS) - len(self._codes), np.int32)]
            )
        new = columns[self._codes[columns] == 0]
        if not len(new):
            return
        found = self._hasher.transform([f"x{column + 1}"] for column in new.tolist())
        self._codes[new] = np.sign(found.data).astype(np.int32) * (found.indices + 1)
