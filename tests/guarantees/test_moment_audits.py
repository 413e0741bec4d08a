"""Audits of noisy sums of y x, whole and in shares: claims stand on the worst pair, and broken twins are refuted."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from federation.contract.randomness import NoiseBits
from federation.mechanisms.audits import audit
from federation.mechanisms.noise import l2_gamma
from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate

RUNS = 200_000
EPSILON, DELTA = 1.0, 0.01
DIMENSION = 2
KINDS = ("laplace", "pure", "gaussian")


def noise_of(noise, contributors=0, dimension=DIMENSION, **others):
    delta = DELTA if noise == "gaussian" else 0.0
    claim = {"epsilon": EPSILON, "delta": delta, "rows": 1, "contributors": contributors}
    return calibrate(noise, dimension=dimension, **(claim | others))


def pair_of(noise, dimension=DIMENSION):
    """The sums of one row whose label is replaced; for Laplace noise the row of the longest L1 norm is the worst."""
    row = np.full(dimension, dimension**-0.5) if "laplace" in noise else np.eye(dimension)[0]
    return np.array([row, -row])


def ratio_of(noise, pair):
    """The log likelihood ratio of the pair, up to its scale."""
    norms = {
        "gaussian": lambda moved: np.square(moved).sum(axis=1),
        "pure": lambda moved: np.linalg.norm(moved, axis=1),
    }
    norm = norms.get(noise, lambda moved: np.abs(moved).sum(axis=1))
    return lambda released: norm(released - pair[1]) - norm(released - pair[0])


def summed(mechanism, pair, parties, purpose):
    """What a summation over the parties reveals; the first holds the row, the others' sums are zero."""

    def sample(side):
        def draw(runs):
            released = mechanism.release(pair[side], NoiseBits(side, purpose, 0), runs)
            for party in range(1, parties):
                released += mechanism.release(np.zeros(pair.shape[1]), NoiseBits(side, purpose, party), runs)
            return released

        return draw

    return sample(0), sample(1)


def judged(noise, samplers, pair, runs=RUNS):
    delta = DELTA if noise == "gaussian" else 0.0
    return audit(*samplers, ratio_of(noise, pair), epsilon=EPSILON, delta=delta, runs=runs, confidence=0.999)


@pytest.mark.parametrize("contributors", [0, 3])
@pytest.mark.parametrize("noise", KINDS)
def test_the_claim_stands_and_is_nearly_reached(noise, contributors):
    pair = pair_of(noise)
    samplers = summed(noise_of(noise, contributors), pair, max(contributors, 1), f"{noise} {contributors}")
    assert EPSILON / 2 < judged(noise, samplers, pair).lower_bound <= EPSILON


@pytest.mark.parametrize("noise", KINDS)
def test_half_the_noise_is_refuted(noise):
    pair = pair_of(noise)
    twice = summed(noise_of(noise, rows=2), 2 * pair, 1, noise)
    assert not judged(noise, [lambda runs, sample=sample: sample(runs) / 2 for sample in twice], pair).passed


@pytest.mark.parametrize("noise", KINDS)
def test_shares_of_too_few_parties_are_refuted(noise):
    """Noise for eight, of whom three tell what they added."""
    pair, runs = pair_of(noise), RUNS // 4
    assert not judged(noise, summed(noise_of(noise, 8), pair, 3, f"{noise} few"), pair, runs).passed
    assert judged(noise, summed(noise_of(noise, 3), pair, 5, f"{noise} many"), pair, runs).passed


def test_l2_noise_with_the_radius_of_one_dimension_less_is_refuted():
    mechanism, pair = noise_of("pure"), pair_of("pure")
    scale = float(mechanism.parameters["scale"])

    def sample(side):
        def draw(runs):
            bits = NoiseBits(side, "radius")
            radius = l2_gamma.gamma_radius(bits, DIMENSION - 1, scale, runs)
            return pair[side] + l2_gamma.sphere(bits, DIMENSION, runs) * radius[:, None]

        return draw

    def ratio(released):
        """Of the density e^{-r} / r."""
        far, near = (np.linalg.norm(released - value, axis=1) for value in pair[::-1])
        return far - near + scale * np.log(far / near)

    result = audit(sample(0), sample(1), ratio, epsilon=EPSILON, runs=RUNS, confidence=0.999)
    assert not result.passed


def test_laplace_noise_for_the_longest_coordinate_is_refuted():
    """As if a row that moves every coordinate moved but one."""
    pair = pair_of("laplace")
    assert not judged("laplace", summed(noise_of("laplace", l1_bound=DIMENSION**-0.5), pair, 1, "one"), pair).passed


def test_the_published_scale_is_refuted_at_what_it_claims_and_stands_at_what_it_gives():
    """Patrini et al. (2015, Algorithm 2) at d = 25: rows of L2 norm 1 have L1 norms of up to 5."""
    mechanism, pair = noise_of("published_laplace", dimension=25), pair_of("published_laplace", 25)
    assert mechanism.claimed == EPSILON
    assert mechanism.epsilon == 5.0
    result = judged("laplace", summed(mechanism, pair, 1, "published"), pair)
    assert result.lower_bound > 2
    assert not result.passed
    assert replace(result, claimed=mechanism.epsilon).passed
    short = pair / math.sqrt(25)  # of L1 norm 1: what the scale was made for
    assert judged("laplace", summed(mechanism, short, 1, "published"), short).passed
