"""The worst pair of sums of y x: as long a row as there is turns round, and sums are those that parties answer."""

from __future__ import annotations

import numpy as np
import pytest
from support.worst_pairs import pair_of, without_noise

from aggregator.protocols.mean_operator.session import WorstSums, _exact, worst_row
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.numerics.rows import within_norm

PUBLIC = PublicNumbers(1e-6)
SECURE = {"trust": "secure"}


def sums(units=1, **options):
    return pair_of("mean_operator", options, PUBLIC, units)


@pytest.mark.parametrize(
    ("options", "longest"),
    [
        ({"noise": "laplace"}, 3**0.5),
        ({"noise": "published_laplace"}, 3**0.5),
        ({"noise": "laplace", "l1_bound": 1.2}, 1.2),
        ({"noise": "laplace", "expansion": "fourier"}, 2**0.5),
        ({"noise": "laplace", "expansion": "polynomial"}, 1 + 2**0.5),  # of 6 features: sqrt(6) bounds it
        ({"noise": "pure"}, 1.0),
        ({"noise": "gaussian", "expansion": "polynomial", "degree": 3}, 1.0),
        ({"noise": "auto", "l1_bound": 1.1}, 1.1),  # Laplace noise
        ({"noise": "auto", "l1_bound": 1.7}, 1.0),  # L2-Gamma noise
        ({"noise": "pure", "protect": "row", "expansion": "fourier"}, 1.0),
    ],
)
def test_the_worst_row_is_as_long_as_rows_get(options, longest):
    question = sums(**options).question
    order = 1 if question.mechanism().name.endswith("laplace") else 2
    cut = within_norm(question.feature_map.transform(worst_row(question)[None]), options.get("l1_bound"))
    assert np.linalg.norm(cut[0], ord=order) == pytest.approx(longest, rel=1e-6)


@pytest.mark.parametrize("changed", [1, 2])
def test_neighbours_of_a_sum_differ_in_the_rows_that_change(changed):
    pair = sums(units=changed)
    before, after = pair.held(False), pair.held(True)
    below = pair.question.response_below
    assert 4 < below < 100
    assert [len(held.labels) for held in before] == [changed, below]  # of either side of the threshold
    assert pair.question.responding(np.array([changed, below])).tolist() == [True, False]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.rows, other.rows)
        assert (one.labels != other.labels).sum() == changed
        assert set(one.labels) | set(other.labels) == {0, 1}


@pytest.mark.parametrize("units", [1, 2])
def test_of_randomised_response_nothing_but_what_changes_is_seen(units):
    pair = sums(units=units, noise="randomised_response")
    [held] = pair.held(True)
    assert held.labels.tolist() == [1] * units
    told = pair.worst.statistic(pair.question)(pair.seen(True, "told", 1000))
    np.testing.assert_allclose(np.unique(told.round(6)), {1: [-1, 1], 2: [-2, 0, 2]}[units])  # of epsilon 1


@pytest.mark.parametrize("turns", [1, 2])
def test_every_run_is_of_one_party_by_turns(turns):
    pair = sums(noise="auto" if turns == 2 else "pure")
    seen = pair.seen(False, "turns", 6)
    assert seen["turn"].tolist() == ([0, 1] * 3 if turns == 2 else [0] * 6)
    exact = [_exact(pair.question, held) for held in pair.held(False)]
    for turn in range(turns):
        own = seen["sums"][seen["turn"] == turn]
        spread = (
            12 * pair.question.mechanism().variance() ** 0.5
            if turn or turns == 1
            else 2 * pair.question.response().reach
        )
        assert np.abs(own - exact[turn]).max() < spread


@pytest.mark.parametrize("units", [1, 2])
def test_neighbours_of_a_sum_of_shares_differ_at_the_first_party_only(units):
    pair = sums(units=units, **SECURE)
    before, after = pair.held(False), pair.held(True)
    assert len(before) == len(after) == pair.worst.parties(pair.question, 1)
    assert pair.question.contributors == 3
    assert len(before) == (3 if units == 1 else 1)  # of the twin half of the shares are missing, and one row changes
    for party, (one, other) in enumerate(zip(before, after, strict=True)):
        np.testing.assert_array_equal(one.rows, other.rows)
        assert (one.labels != other.labels).sum() == (party == 0)


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {"noise": "laplace"},
        {"noise": "laplace", "l1_bound": 1.2},
        {"noise": "gaussian", "expansion": "polynomial"},
        {"noise": "laplace", "expansion": "fourier"},
        {"noise": "pure", "protect": "row"},
        {"noise": "pure", **SECURE},
    ],
    ids=str,
)
def test_its_sums_are_those_that_parties_answer_without_noise(options, units, there):
    pair = sums(units=units, **options)
    exact = sum(_exact(pair.question, held) for held in pair.held(there))
    seen = without_noise(pair, 2, there)["sums"]
    np.testing.assert_allclose(seen, np.tile(exact, (2, 1)), atol=len(pair.held(there)) * 2.0**-26)  # of the grid
    assert np.linalg.norm(exact - sum(_exact(pair.question, held) for held in pair.held(not there))) > 1


def test_questions_about_anything_else_are_refused():
    labels = pair_of("private_labels", {}, PublicNumbers(1e-3, label_range=(0.0, 1.0))).question
    with pytest.raises(InputError, match="for the mean operator, got 'private_labels'"):
        WorstSums("", np.eye(2), 1).statistic(labels)
