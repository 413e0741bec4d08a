"""Sums of rows and labels: what is asked, and that they give least squares on the rows of all parties."""

from __future__ import annotations

import numpy as np
import pytest
from support.label_answers import PARTIES, collected, question
from support.linear_labels import draw

from aggregator.protocols.label_sums import NoisyLabelSums
from aggregator.world.public_numbers import PublicNumbers


def test_sums_without_noise_are_least_squares_on_all_rows():
    options = NoisyLabelSums(noise="off")
    description, arrays = options.learn(collected(options), 0, 0)
    held = [draw(party, 80 + 7 * (party % 2)) for party in range(PARTIES)]
    rows, labels = (np.concatenate(parts) for parts in zip(*held, strict=True))
    expected = np.linalg.lstsq(np.column_stack([rows, np.ones(len(rows))]), labels)[0]
    assert description == {"learner": "linear"}
    np.testing.assert_allclose(arrays["weights"], expected, atol=1e-9)


def test_parties_that_did_not_answer_are_left_out():
    options = NoisyLabelSums(noise="off")
    answers = collected(options)
    fewer = collected(options, broken=(3,))
    whole, part = (options.learn(one, 0, 0)[1]["weights"] for one in (answers, fewer))
    gram, moment = (
        np.delete(answers.array("gram"), 3, axis=0).sum(axis=0),
        np.delete(answers.array("moment")[:, 0], 3, axis=0).sum(axis=0),
    )
    assert (whole != part).any()
    np.testing.assert_allclose(part, np.linalg.solve(gram, moment), atol=1e-9)


@pytest.mark.parametrize(("noise", "spends"), [("auto", True), ("gaussian", True), ("pure", False)])
def test_delta_is_spent_by_all_but_pure_noise(noise, spends):
    options = NoisyLabelSums(noise=noise)
    assert options.spends_delta == spends
    assert (question(options).promise().delta > 0) <= spends


def test_the_shape_of_the_noise_is_part_of_what_is_asked():
    assert question(NoisyLabelSums(shape="isotropic")).shape == "isotropic"
    assert NoisyLabelSums(shape="isotropic").asked() != NoisyLabelSums().asked()


def test_x_x_leaves_a_party_as_it_is_and_x_y_with_noise():
    gram, moment = NoisyLabelSums().sends(PublicNumbers(1e-6, features=4))
    assert ((gram.numbers, gram.private), (moment.numbers, moment.private)) == ((16, False), (4, True))
    assert not NoisyLabelSums(noise="off").sends(PublicNumbers(1e-6))[1].private
