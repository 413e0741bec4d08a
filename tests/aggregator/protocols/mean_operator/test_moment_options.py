"""Options of `mean_operator`: which go together, and what follows from them."""

from __future__ import annotations

import pytest

from aggregator.protocols.mean_operator.moment_options import MomentOptions
from federation.contract.errors import InputError


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"rho": 2.0}, "loss: rho"),
        ({"loss": "rho", "rho": -1.0}, "rho"),
        ({"regularisation": 0.0}, "regularisation"),
        ({"regularisation": 1e-12}, "at least 1e-08"),
        ({"dimensions": 50}, "expansion: fourier"),
        ({"bandwidth": 2.0}, "expansion: fourier"),
        ({"expansion": "fourier", "bandwidth": 0.0}, "bandwidth"),
        ({"expansion": "fourier", "dimensions": 101}, "even"),
        ({"expansion": "polynomial", "degree": 4}, "degree"),
        ({"protect": "row", "unlabelled": "own"}, "auxiliary"),
        ({"protect": "row", "noise": "randomised_response"}, "protect: label"),
        ({"summation": "secure", "noise": "randomised_response"}, "summation"),
        ({"l1_bound": 1.0, "noise": "gaussian"}, "noise: auto, laplace"),
        ({"l1_bound": -1.0, "noise": "laplace"}, "l1_bound"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, text):
    with pytest.raises(InputError, match=text):
        MomentOptions(**options)
