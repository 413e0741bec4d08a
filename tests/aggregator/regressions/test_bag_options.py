"""How many bags of which rows a party forms, and options that leave it none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.protocols.bag_regression import bags_of_size, require_size
from federation.contract.errors import InputError


@pytest.mark.parametrize(("size", "bags", "words"), [(0, None, "size.*from 1, got 0"), (3, 0, "bags.*got 0")])
def test_a_bag_has_a_row_and_there_is_one(size, bags, words):
    require_size(1, None)
    require_size(1, 1)
    with pytest.raises(InputError, match=words):
        require_size(size, bags)


@given(st.integers(1, 50), st.integers(1, 20), st.integers(0, 500), st.integers(0, 500))
def test_so_many_bags_as_are_asked_for_take_the_rows_that_every_party_has(size, bags, least, further):
    if least < size * bags:
        with pytest.raises(InputError, match=f"{bags} disjoint bags of size {size} need {bags * size} rows"):
            bags_of_size(size, bags, least, least + further)
    else:
        assert bags_of_size(size, bags, least, least + further) == (least, bags)


@given(st.integers(1, 50), st.integers(1, 500), st.integers(0, 500))
def test_without_a_number_each_party_forms_what_it_can(size, least, further):
    if least < size:
        with pytest.raises(InputError, match=f"some party has {least}; use smaller or fewer bags"):
            bags_of_size(size, None, least, least + further)
    else:
        records, bags = bags_of_size(size, None, least, least + further)
        assert records == 0
        assert bags * size <= least + further < (bags + 1) * size


@pytest.mark.parametrize("noise", [0.0, 5.0, 20.0])
def test_bags_of_several_parties_tell_less_when_they_are_added_up_under_one_noise(noise):
    """Why sums over random bags are not added in a secure sum: squared errors of least squares, by their formulas."""
    random, parties, bags, size, features = np.random.default_rng(1), 10, 50, 4, 4
    errors = {"apart": [], "added": []}
    for _ in range(150):
        rows = random.normal(size=(parties, bags, size, features))
        labels = rows.sum(axis=-1) + random.normal(size=rows.shape[:-1])
        weights = random.choice([-1.0, 1.0], size=rows.shape[:-1])
        row_sums, label_sums = np.einsum("pmk,pmkr->pmr", weights, rows), (weights * labels).sum(axis=-1)
        apart = row_sums.reshape(-1, features), (label_sums + noise * random.normal(size=(parties, bags))).ravel()
        added = row_sums.sum(axis=0), label_sums.sum(axis=0) + noise * random.normal(size=bags)
        for name, (left, right) in (("apart", apart), ("added", added)):
            errors[name].append(np.square(np.linalg.lstsq(left, right)[0] - 1).sum())
    of_apart = features * (size + noise**2) / (parties * bags * size)
    of_added = features * (parties * size + noise**2) / (bags * parties * size) * bags / (bags - features - 1)
    assert np.mean(errors["apart"]) == pytest.approx(of_apart, rel=0.25)
    assert np.mean(errors["added"]) == pytest.approx(of_added, rel=0.25)
    assert np.mean(errors["added"]) > np.mean(errors["apart"])
