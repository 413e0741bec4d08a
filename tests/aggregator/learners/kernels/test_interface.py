"""What every kernel and support offers by virtue of its fields: storage, digests, and debiased means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from aggregator.learners.kernels.exact import Stored, Support
from federation.contract.errors import InputError


@dataclass(frozen=True, eq=False)
class Inner(Stored):
    kind: ClassVar[str] = "inner"
    width: float
    points: np.ndarray


@dataclass(frozen=True, eq=False)
class Outer(Stored):
    kind: ClassVar[str] = "outer"
    inner: Inner
    sizes: np.ndarray
    spread: float | None = None


@dataclass(frozen=True, eq=False)
class Products(Support):
    """The linear kernel on bags that are kept whole."""

    kind: ClassVar[str] = "products"
    rows: np.ndarray
    sizes: np.ndarray

    @property
    def bags(self):
        return np.split(self.rows, np.cumsum(self.sizes)[:-1])

    def gram(self):
        means = np.array([bag.mean(axis=0) for bag in self.bags])
        return means @ means.T

    def self_terms(self):
        return np.array([np.mean(np.sum(bag**2, axis=1)) for bag in self.bags])

    def embed(self, rows):
        return rows.mean(axis=0)

    def products(self, embedding):
        return np.array([bag.mean(axis=0) for bag in self.bags]) @ embedding


def test_fields_are_stored_by_name_those_of_a_field_behind_its_own():
    points, sizes = np.eye(2), np.array([1, 2])
    description, arrays = Outer(Inner(0.5, points), sizes).to_arrays()
    assert description == {"kind": "outer", "inner": {"kind": "inner", "width": 0.5}, "spread": None}
    assert sorted(arrays) == ["inner_points", "sizes"]
    assert arrays["inner_points"] is points


@pytest.mark.parametrize(
    "other",
    [
        Outer(Inner(0.25, np.eye(2)), np.array([1, 2])),
        Outer(Inner(0.5, 2 * np.eye(2)), np.array([1, 2])),
        Outer(Inner(0.5, np.eye(2)), np.array([2, 1])),
        Outer(Inner(0.5, np.eye(2)), np.array([1, 2]), 0.0),
        Inner(0.5, np.eye(2)),
    ],
)
def test_digests_differ_with_any_content(other):
    usual, again = (Outer(Inner(0.5, np.eye(2)), np.array([1, 2])) for _ in range(2))
    assert usual.digest() == again.digest() != other.digest()


def test_debiased_means_leave_out_pairs_of_a_row_with_itself(rng):
    sizes = np.array([2, 5, 9])
    support = Products(rng.normal(size=(16, 3)), sizes)
    found = support.unbiased_gram()
    for i, bag in enumerate(support.bags):
        between = bag @ bag.T
        assert found[i, i] == pytest.approx(between[~np.eye(len(bag), dtype=bool)].mean())
    different = ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(found[different], support.gram()[different])


def test_a_bag_of_one_row_cannot_be_debiased(rng):
    with pytest.raises(InputError, match="bag 1 must have at least two rows to be debiased, got 1"):
        Products(rng.normal(size=(5, 3)), np.array([2, 1, 2])).unbiased_gram()


def test_means_with_a_set_are_those_of_its_embedding(rng):
    support, rows = Products(rng.normal(size=(6, 3)), np.array([2, 4])), rng.normal(size=(7, 3))
    np.testing.assert_allclose(support.cross(rows), [np.mean(bag @ rows.T) for bag in support.bags])
