"""What every kernel offers: means of k(x, y) between sets of rows, from a state of plain arrays."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.randomness import digest
from federation.numerics.rows import Floats, Integers


class Stored(ABC):
    """A frozen dataclass whose fields are arrays, numbers, None, and others of its sort."""

    kind: ClassVar[str]

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        """JSON values and arrays by field name; `aggregator.learners.kernels.catalogue.from_arrays` is the inverse."""
        description: dict[str, Any] = {"kind": self.kind}
        arrays: dict[str, Floats] = {}
        for field in fields(self):  # type: ignore[arg-type]  # of the subclasses, which are dataclasses
            value = getattr(self, field.name)
            if isinstance(value, Stored):
                description[field.name], inner = value.to_arrays()
                arrays.update({f"{field.name}_{name}": array for name, array in inner.items()})
            elif isinstance(value, np.ndarray):
                arrays[field.name] = value
            else:
                description[field.name] = value
        return description, arrays

    def digest(self) -> str:
        """Equal for equal contents, in hexadecimal."""
        description, arrays = self.to_arrays()
        return digest(json.dumps(description, sort_keys=True), arrays)


class Support(Stored):
    """What a kernel keeps of M bags of rows."""

    sizes: Integers  # (M,) rows of each bag

    @abstractmethod
    def gram(self) -> Floats:
        """Mean of k(x, y) over x in bag i and y in bag j, (M, M), a row with itself included (V-statistics)."""

    @abstractmethod
    def self_terms(self) -> Floats:
        """Mean of k(x, x) over the rows of each bag, (M,)."""

    @abstractmethod
    def embed(self, rows: np.ndarray) -> Floats:
        """What `products` needs to know about a set of rows (n, d): one vector, in O(n) time.

        Mean features (D,) for kernels that have features, else the mean kernels with each bag (M,).
        """

    @abstractmethod
    def products(self, embedding: np.ndarray) -> Floats:
        """Mean kernel (M,) between each bag and the set with that embedding; of many at once (..., M)."""

    def cross(self, rows: np.ndarray) -> Floats:
        """Mean of k(x, y) over x in bag i and y among the rows (n, d), (M,)."""
        return self.products(self.embed(rows))

    def unbiased_gram(self) -> Floats:
        """`gram` without the pairs of a row with itself (U-statistics); it may have negative eigenvalues.

        Raises `InputError` for a bag of one row, which has no such pair.
        """
        if self.sizes.min() < 2:
            bag = int(np.argmin(self.sizes))
            raise InputError(f"bag {bag} must have at least two rows to be debiased, got {self.sizes[bag]}")
        gram = self.gram()
        diagonal: Floats = np.diag(gram)
        return np.asarray(gram - np.diag((self.self_terms() - diagonal) / (self.sizes - 1.0)))


class Kernel(Stored):
    """A positive definite function k(x, y) of two rows (the energy kernel: for weights that sum to zero).

    All that it holds is public: nothing in it may come from private rows.
    """

    @abstractmethod
    def support(self, bags: Sequence[Floats]) -> Support:
        """The state of M bags, each an array (n_i, d) of finite rows, n_i >= 1. Raises `InputError` otherwise."""
