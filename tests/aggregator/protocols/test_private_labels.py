"""Labels that are private by themselves: what is asked, and what is learned from them."""

import numpy as np
import pytest
from support.label_answers import PARTIES, collected, question
from support.linear_labels import RANGE, WEIGHTS, draw

from aggregator.contract.protocol import Trust
from aggregator.protocols.private_labels import PrivateLabels
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels.calibration import calibrate


def test_only_bins_can_be_debiased_and_only_linear_models_are_shrunk():
    with pytest.raises(InputError, match="bins"):
        PrivateLabels(debiased=True)
    with pytest.raises(InputError, match=r"learner.*linear"):
        PrivateLabels(learner="network", shrink=False)
    assert PrivateLabels(noise="bins", debiased=True).asked() == (True,)
    assert PrivateLabels(noise="laplace").asked() == ()


@pytest.mark.parametrize(
    ("epsilon", "law", "spent"),
    [(0.3, "one_bit", 0.3), (0.999, "one_bit", 0.999), (1.0, "unbiased", 1.0), (12.0, "unbiased", 12.0),
     (40.0, "unbiased", 12.0)],
)  # fmt: skip
def test_the_default_is_unbiased_from_one_up_and_spends_twelve_at_most(epsilon, law, spent):
    asked, known = question(PrivateLabels(), epsilon), PublicNumbers(1e-6)
    assert (asked.noise.kind, asked.promise().epsilon) == (law, spent)
    assert PrivateLabels().promise(known, epsilon, Trust.AGGREGATOR).spends.epsilon == spent
    assert (asked.mechanism().name, asked.mechanism().bias() < 1e-7) == (f"label_{law}", True)  # in a range of 20
    assert PrivateLabels(noise="one_bit").promise(known, epsilon, Trust.AGGREGATOR).spends.epsilon == epsilon


@pytest.mark.parametrize("epsilon", [0.005, 12.5])
def test_unbiased_by_name_is_refused_where_there_is_no_table(epsilon):
    for ask in (
        lambda: PrivateLabels(noise="unbiased").promise(PublicNumbers(1e-6), epsilon, Trust.AGGREGATOR),
        lambda: PrivateLabels(noise="unbiased").noise_of(epsilon, 1e-6),
    ):
        with pytest.raises(InputError, match=rf"0\.01.*12.*{epsilon}"):
            ask()


@pytest.mark.parametrize("noise", ["auto", "unbiased", "one_bit", "laplace", "bins", "gaussian"])
def test_only_gaussian_noise_spends_delta(noise):
    options = PrivateLabels(noise=noise)
    assert options.spends_delta == (noise == "gaussian") == (question(options).promise().delta > 0)


def test_labels_without_noise_give_the_law_of_all_rows_and_every_draw_is_learned_from_its_own():
    options = PrivateLabels(noise="off")
    answers = collected(options)
    assert answers.array("size").tolist() == [80, 87] * (PARTIES // 2)  # the others are filled up with zeros
    description, arrays = options.learn(answers, 0, 0)
    rows = np.concatenate([answers.array("rows")[k, : int(n)] for k, n in enumerate(answers.array("size"))])
    labels = np.concatenate([answers.array("labels")[k, 0, : int(n)] for k, n in enumerate(answers.array("size"))])
    assert description == {"learner": "linear", "range": list(RANGE)}
    np.testing.assert_allclose(arrays["weights"], np.linalg.lstsq(rows, labels)[0], atol=1e-9)
    np.testing.assert_allclose(arrays["weights"], [*WEIGHTS, 0.0], atol=0.05)
    options = PrivateLabels(noise="laplace")
    answers = collected(options, epsilon=5.0, draws=2)
    first, again, second = (options.learn(answers, number, 0)[1]["weights"] for number in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != second).all()
    for noise in ("bins", "estimated_bins"):
        assert [PrivateLabels(noise=noise, debiased=debiased).shrinks for debiased in (0, 1)] == [False, True]
    answers = collected(PrivateLabels(noise="bins"))
    found = [PrivateLabels(noise="bins", shrink=asked).learn(answers, 0, 0)[1]["weights"] for asked in (True, False)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("noise", ["one_bit", "laplace", "gaussian"])
def test_a_linear_model_takes_account_of_the_noise(noise):
    answers = collected(PrivateLabels(noise=noise), epsilon=0.3, draws=20)
    rows = np.column_stack([draw(50, 400)[0], np.ones(400)])

    def excess(shrink):
        options = PrivateLabels(noise=noise, shrink=shrink)
        found = [rows @ options.learn(answers, number, 0)[1]["weights"] for number in range(20)]
        return np.mean((found - rows @ [*WEIGHTS, 0.0]) ** 2)

    assert excess(True) < 0.8 * excess(False)


def test_the_excess_that_is_expected_is_what_noise_on_labels_adds_or_nothing_without_a_formula():
    random = np.random.default_rng(5)
    rows = np.column_stack([random.standard_normal((1500, 4)), np.ones(1500)])
    labels = random.uniform(-1, 1, 1500)  # of any value alike, and told by nothing
    known = PublicNumbers(1e-6, features=5, rows=1500, label_range=(-1.0, 1.0), residual=1 / 3)
    for law in ("laplace", "one_bit"):
        noise = calibrate(law, epsilon=1.0, delta=0.0, label_range=(-1.0, 1.0))
        released = np.stack([noise.release(random.permutation(labels), NoiseBits(i, law)) for i in range(150)])
        excess = np.square(rows @ np.linalg.lstsq(rows, released.T)[0]).mean()
        found = PrivateLabels(noise=law, shrink=False).expected_error(known, 1.0)
        assert found.error == pytest.approx(excess, rel=0.25)
        assert PrivateLabels(noise=law).expected_error(known, 1.0).error < found.error
    known = PublicNumbers(1e-6, features=5, rows=1500, label_range=(-1.0, 1.0))
    assert PrivateLabels(noise="estimated_bins").expected_error(known, 1.0) is None
    assert PrivateLabels().expected_error(PublicNumbers(1e-6), 1.0) is None
    assert PrivateLabels(noise="bins").expected_error(known, 1.0).basis == "guess"
