"""Labels that are private by themselves: what is asked, and what is learned from them."""

from __future__ import annotations

import numpy as np
import pytest
from support.label_answers import PARTIES, collected, question
from support.linear_labels import RANGE, WEIGHTS, draw

from aggregator.protocols.private_labels import PrivateLabels
from aggregator.world.public_numbers import PublicNumbers
from federation.contract.errors import InputError


def test_only_bins_can_be_debiased():
    with pytest.raises(InputError, match="bins"):
        PrivateLabels(debiased=True)
    assert PrivateLabels(noise="bins", debiased=True).asked() == (True,)
    assert PrivateLabels(noise="laplace").asked() == ()


@pytest.mark.parametrize("noise", ["one_bit", "laplace", "bins", "gaussian"])
def test_only_gaussian_noise_spends_delta(noise):
    options = PrivateLabels(noise=noise)
    assert options.spends_delta == (noise == "gaussian") == (question(options).promise().delta > 0)


def test_labels_without_noise_give_the_law_of_all_rows_and_no_other():
    options = PrivateLabels(noise="off")
    answers = collected(options)
    assert answers.array("size").tolist() == [80, 87] * (PARTIES // 2)  # the others are filled up with zeros
    description, arrays = options.learn(answers, 0, 0)
    rows = np.concatenate([answers.array("rows")[k, : int(n)] for k, n in enumerate(answers.array("size"))])
    labels = np.concatenate([answers.array("labels")[k, 0, : int(n)] for k, n in enumerate(answers.array("size"))])
    assert description == {"learner": "linear", "range": list(RANGE)}
    np.testing.assert_allclose(arrays["weights"], np.linalg.lstsq(rows, labels)[0], atol=1e-9)
    np.testing.assert_allclose(arrays["weights"], [*WEIGHTS, 0.0], atol=0.05)


@pytest.mark.parametrize("noise", ["one_bit", "laplace", "gaussian"])
def test_a_linear_model_takes_account_of_the_noise(noise):
    answers = collected(PrivateLabels(noise=noise), epsilon=0.3, draws=20)
    rows = np.column_stack([draw(50, 400)[0], np.ones(400)])

    def excess(shrink):
        options = PrivateLabels(noise=noise, shrink=shrink)
        found = [rows @ options.learn(answers, number, 0)[1]["weights"] for number in range(20)]
        return np.mean((found - rows @ [*WEIGHTS, 0.0]) ** 2)

    assert excess(True) < 0.8 * excess(False)


def test_answers_that_bins_have_drawn_together_are_not_shrunk_once_more():
    binned = [
        PrivateLabels(noise=noise, debiased=debiased) for noise in ("bins", "estimated_bins") for debiased in (0, 1)
    ]
    assert [options.shrinks for options in binned] == [False, True, False, True]
    answers = collected(PrivateLabels(noise="bins"))
    found = [PrivateLabels(noise="bins", shrink=asked).learn(answers, 0, 0)[1]["weights"] for asked in (True, False)]
    np.testing.assert_array_equal(*found)


def test_only_linear_models_are_shrunk():
    with pytest.raises(InputError, match="shrink belongs to learner: linear"):
        PrivateLabels(learner="network", shrink=False)


def test_every_draw_is_learned_from_its_own_labels():
    options = PrivateLabels(noise="laplace")
    answers = collected(options, epsilon=5.0, draws=2)
    first, again, second = (options.learn(answers, number, 0)[1]["weights"] for number in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != second).all()


def test_rows_leave_a_party_as_they_are_and_labels_with_noise():
    rows, labels = PrivateLabels().sends(PublicNumbers(1e-6, features=3, largest_bag=10))
    assert ((rows.numbers, rows.private), (labels.numbers, labels.private)) == ((30, False), (10, True))
    assert not PrivateLabels(noise="off").sends(PublicNumbers(1e-6))[1].private
