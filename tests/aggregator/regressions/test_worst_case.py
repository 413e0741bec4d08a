"""The worst pair of labels: one moves through the whole range, and nothing beside the noise could hide that.

The worst pair of neighbours of one X'y over public rows: as far apart as a label moves the sum at most. The worst pair
of neighbours of X'X and X'y: as far apart as the sensitivity says, and both moments are asked for.
"""

import numpy as np
import pytest
from support.two_class_questions import moment
from support.worst_pairs import pair_of, without_noise

from aggregator.regressions.worst_case import WorstBagSums, worst_rows
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.mechanisms.sums.row_sums import SENSITIVITY
from federation.numerics.rows import within_norm

RANGE = (-3.0, 7.0)
QUESTIONS = {  # of every kind
    "sums": ("label_sums", {}),
    "whitened sums": ("label_sums", {"shape": "whitened", "noise": "gaussian"}),
    "labels": ("private_labels", {}),
    "bags": ("noisy_weighted_llp", {"size": 4}),
    "bags of random rows": ("noisy_weighted_llp", {"size": 8, "weights": "gaussian", "noisy_rows": "fixed"}),
    "bags, laplace": ("noisy_weighted_llp", {"size": 4, "noise": "laplace"}),
    "secret weights": ("weighted_lba", {"size": 4}),
}


def labels(name, units=1, delta=0.1):
    return pair_of(*QUESTIONS[name], PublicNumbers(delta, label_range=RANGE), units)


@pytest.mark.parametrize(("size", "rows", "bags"), [(3, 6, 2), (4, 4, 1), (1, 4, 4), (8, 8, 1)])
def test_all_rows_of_the_small_world_are_in_bags(size, rows, bags):
    public = PublicNumbers(1e-6, label_range=(0.0, 1.0))
    question = pair_of("noisy_weighted_llp", {"size": size, "bags": 7}, public).question
    assert (question.design.taking_part(bags), question.design.bags, question.design.size) == (rows, bags, size)
    assert question.rows.most == rows
    assert question.rows.label_range == (0.0, 1.0)


@pytest.mark.parametrize("name", QUESTIONS)
def test_labels_that_change_move_from_one_end_to_the_other(name):
    weighted = name.startswith(("bags", "secret"))
    for units, changed in ((1, 1), (2, 4 if weighted else 2)):
        pair = labels(name, units)
        [before], [after] = pair.held(False), pair.held(True)
        np.testing.assert_array_equal(before.rows, after.rows)
        assert set(after.labels - before.labels) <= {0.0, RANGE[1] - RANGE[0]}
        assert (before.labels != after.labels).sum() == pair.worst.changed == changed
        np.testing.assert_array_equal(before.rows[:, 0] == 1, np.arange(len(before.rows)) < changed)


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize("name", QUESTIONS)
def test_what_it_reckons_with_is_what_a_party_answers_without_noise(name, units, there):
    pair = labels(name, units)
    [held] = pair.held(there)
    seen, (low, high) = without_noise(pair, 3, there), RANGE
    features = pair.question.rows.feature_map.transform(held.rows)
    if "labels" in seen:
        np.testing.assert_array_equal(seen["labels"], np.tile(held.labels, (3, 1)))
    elif "moment" in seen:
        np.testing.assert_allclose(seen["moment"], np.tile(features.T @ held.labels, (3, 1)))
    else:
        if "weights" in seen:
            rows = seen["rows"]
            changed, other = (np.einsum("...mk,...mk->...m", seen["weights"], rows[..., column]) for column in (0, 1))
        else:
            changed, other = seen["row_sums"][..., 0], seen["row_sums"][..., 1]
        sums = seen["sums"] if "sums" in seen else seen["label_sums"]
        np.testing.assert_allclose(sums, low * (changed + other) + there * (high - low) * changed, atol=1e-12)
        assert len(np.unique(sums, axis=0)) > 1  # weights are fresh in each run


def test_one_label_moves_the_sum_as_far_as_a_label_can_and_of_shares_the_sum_is_seen():
    sums = pair_of("mean_operator", {}, PublicNumbers(1e-3)).question
    with pytest.raises(InputError, match="mean_operator"):
        WorstBagSums("", np.eye(2), 1).parties(sums, 1)
    with pytest.raises(InputError, match="mean_operator"):
        worst_rows(1, PublicNumbers(0.01, label_range=RANGE), shared=False).side(False, moment(), 1)
    pair = pair_of("label_sums", {"trust": "secure"}, PUBLIC)
    sums = []
    for there in (False, True):
        transform = pair.question.rows.feature_map.transform
        exact = sum((one.labels - 2.0) / 5.0 @ within_norm(transform(one.rows)) for one in pair.held(there))
        sums.append(without_noise(pair, 1, there)["sums"][0])
        np.testing.assert_allclose(sums[-1], exact, atol=1e-6)  # as parties answer without noise
    assert 2 * (1 - 1e-5) < np.linalg.norm(sums[0] - sums[1]) <= 2 * (1 + 1e-7)  # labels go from -1 to 1
    pairs = [*zip(pair.held(False), pair.held(True), strict=True)]
    assert len(pairs) == 3  # of a quorum of 4 of 6, one of whom may collude
    assert all((one.rows == other.rows).all() for one, other in pairs)
    assert [(one.labels != other.labels).sum() for one, other in pairs] == [1, 0, 0]
    whole, half = (pair_of("label_sums", {"protect": "row", "trust": "secure"}, PUBLIC, units) for units in (1, 2))
    assert [len(pair.held(False)) for pair in (whole, half)] == [3, 1]
    assert whole.question.contributors == 3  # of a quorum of 4, one of whom may collude
    assert whole.seen(False, "shares", 3)["sums"].shape == (3, 6)


PUBLIC = PublicNumbers(0.01, label_range=(-3.0, 7.0))


@pytest.mark.parametrize("units", [1, 2])
def test_one_row_that_turns_moves_the_sums_by_their_sensitivity(units):
    pair = pair_of("label_sums", {"protect": "row"}, PUBLIC, units)
    assert pair.question.second
    here, there = (without_noise(pair, 1, side)["sums"][0] for side in (False, True))
    reached = np.linalg.norm(here - there)
    assert reached == pytest.approx(units * SENSITIVITY, rel=1e-5)
    assert reached <= units * SENSITIVITY * (1 + 1e-7)  # without noise sums are rounded
    [here], [there] = pair.held(False), pair.held(True)
    assert ((here.rows != there.rows).any(axis=1) | (here.labels != there.labels)).sum() == units
    ratio = pair.worst.statistic(pair.question, lambda there: {"sums": np.full((1, 6), float(there))})
    low, high = ratio({"sums": np.array([[0.0] * 6, [1.0] * 6])})
    assert low == -high < 0
