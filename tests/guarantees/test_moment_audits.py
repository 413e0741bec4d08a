"""Audits of noise on sums of y x by itself: a wrong radius, and the published scale; of parties in `test_audits`."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from federation.contract.randomness import NoiseBits
from federation.mechanisms.audits import audit
from federation.mechanisms.noise import l2_gamma
from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate

RUNS = 200_000
EPSILON = 1.0


def calibrated(noise, dimension):
    return calibrate(noise, dimension=dimension, epsilon=EPSILON, delta=0.0, rows=1, contributors=0)


def test_l2_noise_with_the_radius_of_one_dimension_less_is_refuted():
    scale = float(calibrated("pure", 2).parameters["scale"])
    pair = np.array([[1.0, 0.0], [-1.0, 0.0]])  # the sums of one row whose label is replaced

    def sample(side):
        def draw(runs):
            bits = NoiseBits(side, "radius")
            return pair[side] + l2_gamma.sphere(bits, 2, runs) * l2_gamma.gamma_radius(bits, 1, scale, runs)[:, None]

        return draw

    def ratio(released):
        """Of the density e^{-r} / r."""
        far, near = (np.linalg.norm(released - value, axis=1) for value in pair[::-1])
        return far - near + scale * np.log(far / near)

    assert not audit(sample(0), sample(1), ratio, epsilon=EPSILON, runs=RUNS, confidence=0.999).passed


def test_the_published_scale_is_refuted_at_what_it_claims_and_stands_at_what_it_gives():
    """Patrini et al. (2015, Algorithm 2) at d = 25: rows of L2 norm 1 have L1 norms of up to 5."""
    mechanism = calibrated("published_laplace", 25)
    assert (mechanism.claimed, mechanism.epsilon) == (EPSILON, 5.0)

    def judged(pair):
        samplers = [
            lambda runs, side=side: mechanism.release(pair[side], NoiseBits(side, "a"), runs) for side in (0, 1)
        ]
        distance = lambda released, side: np.abs(released - pair[side]).sum(axis=1)  # noqa: E731
        ratio = lambda released: distance(released, 1) - distance(released, 0)  # noqa: E731
        return audit(*samplers, ratio, epsilon=EPSILON, runs=RUNS, confidence=0.999)

    longest = np.full((2, 25), 25**-0.5) * [[1], [-1]]
    result = judged(longest)
    assert result.lower_bound > 2
    assert not result.passed
    assert replace(result, claimed=mechanism.epsilon).passed
    assert judged(longest / math.sqrt(25)).passed  # of L1 norm 1: what the scale was made for
