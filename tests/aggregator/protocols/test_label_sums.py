"""Sums of rows and labels: what is asked, and that they give least squares on the rows of all parties."""

from dataclasses import replace

import numpy as np
import pytest
from support.label_answers import PARTIES, collected, question
from support.linear_labels import RANGE, draw

from aggregator.contract.protocol import Place, Trust
from aggregator.learners.shrinkage import shrink
from aggregator.protocols.label_sums import NoisyLabelSums
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee
from federation.contract.randomness import NoiseBits
from federation.contract.trust import TrustTerms
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.shaped_gaussian import calibrate, fit_shape
from scenarios.testing.checks import checks


def of_rows(options):
    """The checks of a protocol, but for the two audits, which are tests of their own."""
    found = list(checks(NoisyLabelSums, [{"protect": "row", **options}]))
    return [(name, check) for name, check in found if "claim stands" not in name]


@pytest.mark.parametrize("broken", [(), (3,)])
def test_sums_without_noise_are_least_squares_on_all_rows_of_those_who_answered(broken):
    options = NoisyLabelSums(noise="off")
    description, arrays = options.learn(collected(options, broken=broken), 0, 0)
    held = [draw(party, 80 + 7 * (party % 2)) for party in range(PARTIES) if party not in broken]
    rows, labels = (np.concatenate(parts) for parts in zip(*held, strict=True))
    expected = np.linalg.lstsq(np.column_stack([rows, np.ones(len(rows))]), labels)[0]
    assert description == {"learner": "linear", "range": list(RANGE)}
    np.testing.assert_allclose(arrays["weights"], expected, atol=1e-9)


@pytest.mark.parametrize(("noise", "spends"), [("auto", True), ("gaussian", True), ("pure", False)])
def test_delta_is_spent_by_all_but_pure_noise(noise, spends):
    options = NoisyLabelSums(noise=noise)
    assert options.spends_delta == spends
    assert (question(options).promise().delta > 0) <= spends


def test_the_shape_of_noise_is_asked_for_and_the_noise_of_all_parties_is_used():
    assert question(NoisyLabelSums(shape="isotropic")).shape == "isotropic"
    assert NoisyLabelSums(shape="isotropic").asked() != NoisyLabelSums().asked()
    options = NoisyLabelSums()
    answers = collected(options, broken=(3,))
    total = {name: answers.total(name) for name in ("gram", "moment", "row_sum", "covariance")}
    held = np.concatenate([draw(party, 80 + 7 * (party % 2))[0] for party in range(PARTIES) if party != 3])
    np.testing.assert_allclose(total["row_sum"], [*held.sum(axis=0), len(held)])
    known = {"ones": total["row_sum"], "rows": len(held), "label_range": RANGE}
    expected = shrink(total["gram"], total["moment"][0], total["covariance"], **known)
    np.testing.assert_allclose(options.learn(answers, 0, 0)[1]["weights"], expected.weights, rtol=1e-9)
    answers = collected(NoisyLabelSums(), epsilon=2.0)
    description, arrays = NoisyLabelSums(shrink=False).learn(answers, 0, 0)
    gram, moment = answers.total("gram"), answers.total("moment")[0]
    np.testing.assert_allclose(arrays["weights"], np.linalg.solve(gram, moment), rtol=1e-9)
    assert description["range"] == list(RANGE)


def excess(options, answers, draws, rows):
    """Mean squared distance of a model's predictions for rows to those without noise."""
    exact = NoisyLabelSums(noise="off")
    expected = rows @ exact.learn(collected(exact), 0, 0)[1]["weights"]
    found = [rows @ options.learn(answers, draw, 0)[1]["weights"] for draw in range(draws)]
    return np.mean([(one - expected) ** 2 for one in found])


@pytest.mark.parametrize("shape", ["optimal", "whitened", "isotropic"])
def test_the_model_takes_account_of_its_noise(shape):
    answers = collected(NoisyLabelSums(shape=shape), epsilon=0.1, draws=30)
    rows = np.column_stack([draw(50, 400)[0], np.ones(400)])
    least, shrunk = (excess(NoisyLabelSums(shape=shape, shrink=known), answers, 30, rows) for known in (False, True))
    assert shrunk < 0.4 * least


class TestRows:
    """Where whole rows are protected."""

    def test_shares_are_of_a_secure_summation_and_options_and_a_delta_that_clash_are_refused(self):
        found = [NoisyLabelSums(protect="row").noise_at(trust) for trust in Trust]
        assert found == [Place.PARTY, Place.SHARES, Place.PARTY]
        options = NoisyLabelSums(protect="row", noise="off")
        assert [options.noise_at(trust) for trust in Trust] == [Place.NOWHERE] * 3
        assert isinstance(options.promise(PublicNumbers(0.0), 1.0, Trust.NONE).spends, NoGuarantee)
        with pytest.raises(InputError, match=r"delta.*0.*0.*privacy\.delta"):  # before anybody is asked
            NoisyLabelSums(protect="row").promise(PublicNumbers(0.0), 1.0, Trust.NONE)
        for options, words in (({"noise": "pure"}, r"noise.*pure"), ({"shape": "isotropic"}, r"protect.*label")):
            with pytest.raises(InputError, match=words):
                NoisyLabelSums(protect="row", **options)

    @pytest.mark.parametrize("check", [*of_rows({}), *of_rows({"trust": "secure"})], ids=lambda check: check[0])
    def test_it_keeps_the_contract(self, check):
        check[1]()


KNOWN = PublicNumbers(1e-6, terms=TrustTerms(4), features=6, rows=4000, label_range=(-1.0, 1.0))


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_the_excess_that_is_expected_is_what_noise_adds_to_least_squares(noise):
    random = np.random.default_rng(2)
    parts = [np.column_stack([random.standard_t(6, (1000, 5)), np.ones(1000)]) for _ in range(4)]
    rows = np.concatenate(parts)
    shapes = [fit_shape(part) for part in parts]
    labels = LabelRange(-1.0, 1.0)
    total = np.zeros((60, 6))
    for party, (part, shape) in enumerate(zip(parts, shapes, strict=True)):
        mechanism = calibrate(shape, noise, rows=1000, epsilon=1.0, delta=1e-6, labels=labels)
        total += mechanism.release(part, np.zeros(1000), NoiseBits(1, "a test", party), 60)
    excess = np.square(rows @ np.linalg.solve(rows.T @ rows, total.T)).mean()
    known = replace(KNOWN, residual=0.0, traces={"optimal": fit_shape(rows).trace})
    found = NoisyLabelSums(noise=noise, shrink=False).expected_error(known, 1.0)
    assert found.basis == "exact"
    assert found.error == pytest.approx(excess, rel=0.25)


def test_parties_of_few_rows_are_not_louder_and_shares_of_one_noise_cost_less():
    """Each has a row: the noise is along it, as large as on its label, and no shape of noise has less."""
    random = np.random.default_rng(2)
    rows, labels = random.normal(size=(400, 6)), LabelRange(0.0, 1.0)
    law = {"rows": 1, "epsilon": 1.0, "delta": 1e-6, "labels": labels}
    noise = sum(calibrate(fit_shape(row), "gaussian", **law).covariance() for row in rows[:, None])
    measured = np.trace(np.linalg.solve(rows.T @ rows, noise)) / 400
    known = PublicNumbers(1e-6, features=6, rows=400, terms=TrustTerms(400), label_range=(0.0, 1.0), residual=0.0)
    found = NoisyLabelSums(noise="gaussian", shrink=False).expected_error(known, 1.0)
    assert found.error == pytest.approx(measured, rel=1e-3)
    usual = replace(known, terms=TrustTerms(4))
    assert NoisyLabelSums(noise="gaussian", shrink=False).expected_error(usual, 1.0).error < found.error
    known = replace(KNOWN, terms=TrustTerms(50))
    alone, shared = (NoisyLabelSums(protect="row", trust=how).expected_error(known, 1.0) for how in ("none", "secure"))
    assert shared.error < alone.error
    alone, shared = (NoisyLabelSums(trust=how, shrink=False).expected_error(known, 1.0) for how in ("none", "secure"))
    assert shared.error < alone.error / 10
    shrunk, plain = (NoisyLabelSums(shrink=how).expected_error(known, 1.0) for how in (True, False))
    assert shrunk.error < plain.error
    # Without a formula nothing is expected.
    assert NoisyLabelSums(shape="isotropic").expected_error(KNOWN, 1.0) is None
    assert NoisyLabelSums(noise="off").expected_error(KNOWN, 1.0) is None
    assert NoisyLabelSums().expected_error(PublicNumbers(1e-6), 1.0) is None
