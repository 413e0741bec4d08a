"""Options of `mean_operator`: which go together, and what follows from them.

How much errors of randomised response count: against the formula by matrices, and at both ends of the noise.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.protocols.mean_operator.options import MomentOptions, response_weight
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.trust import TrustTerms


@pytest.mark.parametrize(("options", "text"), [
    ({"rho": 2.0}, "loss: rho"), ({"loss": "rho", "rho": -1.0}, "rho"), ({"regularisation": 0.0}, "regularisation"),
    ({"regularisation": 1e-12}, "1e-08"), ({"dimensions": 50}, "expansion: fourier"),
    ({"bandwidth": 2.0}, "expansion: fourier"), ({"expansion": "fourier", "bandwidth": 0.0}, "bandwidth"),
    ({"expansion": "fourier", "dimensions": 101}, "even"), ({"expansion": "polynomial", "degree": 4}, "degree"),
    ({"protect": "row", "unlabelled": "own"}, "auxiliary"),
    ({"protect": "row", "noise": "randomised_response"}, "protect: label"),
    ({"l1_bound": 1.0, "noise": "gaussian"}, r"noise.*auto"), ({"l1_bound": -1.0, "noise": "laplace"}, "l1_bound"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(options, text):
    with pytest.raises(InputError, match=text):
        MomentOptions(**options)


@pytest.mark.parametrize(("options", "whose"), [
    ({}, "own"), ({"protect": "row"}, "auxiliary"), ({"unlabelled": "auxiliary"}, "auxiliary"),
    ({"loss": "unhinged", "unlabelled": "own"}, "auxiliary"),  # it looks at none
    ({"noise": "randomised_response"}, "own"),
])  # fmt: skip
def test_own_rows_are_used_where_they_are_public_and_of_use(options, whose):
    assert MomentOptions(**options).unlabelled_rows == whose


def test_delta_is_for_gaussian_noise_and_parties_take_the_louder_noise_that_harms_less():
    for noise in ("auto", "sums", "laplace", "pure", "gaussian", "published_laplace", "off"):
        spent = MomentOptions(noise=noise).spent_delta(1e-6)
        assert spent == (1e-6 if noise in ("auto", "sums", "gaussian") else 0.0)
    assert MomentOptions(loss="rho", rho=3.0).chosen_loss().slope == 6.0
    assert MomentOptions(loss="square").chosen_loss().slope == 4.0
    usual = MomentOptions().asked(shared=False)
    for options in ({"loss": "square"}, {"regularisation": 0.1}, {"unlabelled": "auxiliary"}):
        assert MomentOptions(**options).asked(shared=False) == usual
    others = [
        {"l1_bound": 1.5}, {"protect": "row"}, {"expansion": "polynomial"},
        {"expansion": "polynomial", "degree": 3}, {"expansion": "fourier", "dimensions": 20},
        {"expansion": "fourier", "bandwidth": 2.0},
    ]  # fmt: skip
    asked = [MomentOptions(**options).asked(shared=False) for options in others]
    assert len({usual, MomentOptions().asked(shared=True), *asked}) == len(others) + 2
    # At 600 rows of a party responses are less loud than a sum; along one direction that has all rows they are not.
    even = replace(KNOWN, rows=100 * 600, spectrum=(1 / 51,) * 51)
    along_one = replace(even, spectrum=(1 - 50e-6, *[1e-6] * 50))
    found = [MomentOptions().expected_noise(known, 0.1, 51, shared=False) for known in (even, along_one)]
    assert [one.responses for one in found] == [True, False]
    assert found[0].norm < found[1].norm
    spectrum = np.linalg.eigvalsh(ROWS.T @ ROWS)
    assert response_weight(ROWS, 1e6) == pytest.approx(5 * (spectrum**2).sum() / spectrum.sum() ** 2, rel=1e-3)
    weights = [response_weight(ROWS, variance) for variance in (1e-4, 1e-2, 1.0)]
    assert weights == sorted(weights)
    assert weights[0] < 1 < weights[-1]
    wide = np.column_stack([ROWS, np.zeros((300, 3))])
    assert response_weight(wide, 0.1) == pytest.approx(response_weight(ROWS, 0.1) * 8 / 5)
    assert response_weight(np.zeros((4, 2)), 0.1) == 1.0  # rows without length say nothing
    assert response_weight(np.repeat(ROWS, 7, axis=0), 0.1) == pytest.approx(response_weight(ROWS, 0.1), rel=0.1)


KNOWN = PublicNumbers(1e-6, terms=TrustTerms(100), rows=12_000)


def test_the_expected_noise_is_the_least_that_parties_may_choose_and_a_shared_one_that_of_a_quorum():
    sums, responses, auto = (
        MomentOptions(noise=noise).expected_noise(KNOWN, 1.0, 51, shared=False)
        for noise in ("sums", "randomised_response", "auto")
    )
    assert responses.norm == pytest.approx(1 / math.sinh(0.5) / math.sqrt(12_000), rel=1e-6)
    assert auto == responses
    assert responses.norm < sums.norm
    assert (responses.responses, sums.responses) == (True, False)
    normal = MomentOptions(noise="gaussian").expected_noise(KNOWN, 1.0, 51, shared=False)
    assert normal.norm == pytest.approx(sums.norm, rel=1e-9)
    alone = MomentOptions(protect="row").expected_noise(KNOWN, 1.0, 51, shared=False)
    shared = MomentOptions(protect="row").expected_noise(KNOWN, 1.0, 51, shared=True)
    assert shared.norm == pytest.approx(alone.norm / math.sqrt(40), rel=1e-6)  # 50 answer, of whom 10 may collude
    assert MomentOptions(noise="off").expected_noise(KNOWN, 1.0, 51, shared=False) == (0.0, False)


ROWS = np.random.default_rng(3).normal(size=(300, 5)) * [0.4, 0.3, 0.1, 0.05, 0.01]


@pytest.mark.parametrize("variance", [0.0, 0.01, 0.1, 4.0])
def test_it_is_the_ratio_of_what_both_errors_do_to_scores(variance):
    gram = ROWS.T @ ROWS / len(ROWS)
    model = np.linalg.inv(gram / 4 + 2 * max(1e-4, variance / 2) * np.eye(5))
    harm = [np.trace(gram @ model @ noise @ model) / np.trace(noise) for noise in (gram, np.eye(5))]
    assert response_weight(ROWS, variance) == pytest.approx(harm[0] / harm[1])


@given(st.floats(0.0, 100.0), st.integers(1, 6))
def test_rows_in_all_directions_alike_have_a_weight_of_one(variance, width):
    assert response_weight(np.eye(width) / 2, variance) == pytest.approx(1.0)
