"""Audits of private labels and of noisy label sums by themselves: broken twins are refuted.

That claims stand, and that half of the noise does not, is audited with the parties' own code: `test_audits` and
`test_label_party_audits`.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.audits import audit
from federation.mechanisms.labels.calibration import calibrate
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.shaped_gaussian import calibrate as calibrate_sums
from federation.mechanisms.labels.shaped_gaussian import fit_shape

RUNS = 200_000
RANGE = (0.0, 4.0)
ENDS = np.array(RANGE)  # the worst pair
EPSILON, DELTA = 1.0, 0.01
PRIOR = [0.3, 0.2, 0.2, 0.3]


def mechanism_of(noise, **others):
    arguments = {"epsilon": EPSILON, "delta": DELTA, "label_range": RANGE, "outside": "clip", "debiased": True}
    if noise == "bins":
        arguments["prior"] = PRIOR
    return calibrate(noise, **(arguments | others))


def judged(samplers, claimed, delta, statistic=lambda released: released):
    return audit(*samplers, statistic, epsilon=claimed, delta=delta, runs=RUNS, confidence=0.999)


def of_labels(release, noise, ends=ENDS):
    return [
        lambda n, side=side, label=label: release(np.full(n, label), NoiseBits(1, f"audit {noise}", side))
        for side, label in enumerate(ends)
    ]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_labels_that_are_not_clipped_are_refuted(noise):
    """Three times the range, for the noise of one."""
    mechanism = mechanism_of(noise)

    def unclipped(labels, bits):
        return labels + mechanism.release(np.full(len(labels), 2.0), bits) - 2.0

    far = np.array([-4.0, 8.0])
    assert not judged(of_labels(unclipped, noise, far), EPSILON, mechanism.delta).passed
    assert judged(of_labels(mechanism.release, noise, far), EPSILON, mechanism.delta).passed


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_noise_for_half_the_range_is_refuted(noise):
    """As if a label moved from the middle at most: add or remove, not replace."""
    mechanism = mechanism_of(noise, label_range=(0.0, 2.0))

    def mistaken(labels, bits):
        return labels + mechanism.release(np.full(len(labels), 1.0), bits) - 1.0

    assert not judged(of_labels(mistaken, noise), EPSILON, mechanism.delta).passed


def test_one_bit_of_a_rounded_label_without_response_is_refuted():
    def rounded(labels, bits):
        return (labels > bits.words(len(labels)) * 2.0**-64 * 4.0).astype(float)

    assert not judged(of_labels(rounded, "one_bit"), EPSILON, 0.0).passed


def test_a_table_with_one_output_that_tells_too_much_is_refuted():
    """Half of all weight of the low end's row goes to its likeliest output: nobody would answer by such a table."""
    mechanism = mechanism_of("unbiased")
    first = mechanism.weights[0]
    loud = [weight // 2 for weight in first]
    loud[int(np.argmax(first))] += sum(first) - sum(loud)
    table = (tuple(loud), *mechanism.weights[1:])
    with pytest.raises(InputError, match=r"epsilon.*1"):
        replace(mechanism, weights=table)
    unchecked = copy.copy(mechanism)
    object.__setattr__(unchecked, "weights", table)
    ends = np.array([[mechanism.labels.low], [mechanism.labels.high]])
    assert not audit(
        *of_labels(unchecked.release, "loud"),
        lambda labels: mechanism.log_ratio(labels[:, None], *ends),
        epsilon=EPSILON,
        runs=RUNS,
        confidence=0.999,
    ).passed


def test_bins_from_a_histogram_that_is_not_private_are_refuted():
    """One label in an empty corner makes a bin of its own appear: whatever is answered, its bin's value tells."""
    rest = np.concatenate([np.zeros(20), np.full(20, 1.0)])
    mechanism = calibrate("estimated_bins", epsilon=EPSILON, delta=0.0, label_range=RANGE, points=4)
    values = {}
    for side, label in enumerate(ENDS):
        labels = np.append(rest, label)
        counts = np.bincount(LabelRange(*RANGE).positions(labels, 3), minlength=4)
        values[side] = mechanism.answers(counts / counts.sum())

    def exposed(side):
        return lambda n: values[side].release(np.full(n, ENDS[side]), NoiseBits(1, "exposed", side))

    assert not judged([exposed(0), exposed(1)], EPSILON, 0.0).passed


@pytest.mark.slow
def test_bins_from_a_private_histogram_stand():
    """Two labels, of which one changes: the prior and both answers are what is seen."""
    mechanism = calibrate("estimated_bins", epsilon=EPSILON, delta=0.0, label_range=RANGE, points=3, share=0.5)

    def released(side):
        def sample(n):
            bits = NoiseBits(1, "histogram", side)
            labels = np.array([0.0, ENDS[side]])
            return np.array([mechanism.release(labels, bits)[1] for _ in range(n)])

        return sample

    result = audit(released(0), released(1), lambda values: values, epsilon=EPSILON, runs=1500, confidence=0.999)
    assert 0 < result.lower_bound <= EPSILON


SUMS_ROWS = np.column_stack([np.array([0.3, -1.0, 2.5, 0.1, 1.4]), np.ones(5)])


def sums_pair(mechanism):
    """Neighbours in the label of a row that touches the ellipsoid, and the log likelihood ratio of their sums."""
    transform = mechanism.shape.transform
    inside = SUMS_ROWS @ transform
    worst = int(np.argmax(np.linalg.norm(inside, axis=1)))
    labels = np.full((2, 5), 1.0)
    labels[:, worst] = RANGE
    centres = labels @ inside

    def ratio(released):
        seen = released @ transform
        distances = [np.linalg.norm(seen - centre, axis=1) for centre in centres]
        if mechanism.additive.name == "discrete_gaussian":
            return np.square(distances[1]) - np.square(distances[0])
        return distances[1] - distances[0]

    return labels, ratio


def sums_of(noise, shape, width=4.0):
    """Calibrated for labels of this width, released for those of the full range."""
    claim = {"epsilon": EPSILON, "delta": DELTA if noise == "gaussian" else 0.0}
    mechanism = calibrate_sums(fit_shape(SUMS_ROWS, shape), noise, rows=5, labels=LabelRange(0.0, width), **claim)
    return replace(mechanism, labels=LabelRange(*RANGE))


def audited_sums(mechanism, name):
    labels, ratio = sums_pair(mechanism)
    samplers = [
        lambda n, side=side: mechanism.release(SUMS_ROWS, labels[side], NoiseBits(1, name, side), n) for side in (0, 1)
    ]
    return judged(samplers, EPSILON, mechanism.delta, ratio)


@pytest.mark.parametrize("noise", ["gaussian", "pure"])
@pytest.mark.parametrize("shape", ["optimal", "whitened", "isotropic"])
def test_label_sums_are_as_private_as_claimed_and_hardly_more(noise, shape):
    assert EPSILON / 2 < audited_sums(sums_of(noise, shape), f"{noise} {shape}").lower_bound <= EPSILON


@pytest.mark.parametrize("noise", ["gaussian", "pure"])
@pytest.mark.parametrize("shape", ["optimal", "whitened", "isotropic"])
def test_label_sums_with_noise_for_labels_from_the_middle_are_refuted(noise, shape):
    assert not audited_sums(sums_of(noise, shape, width=2.0), f"{noise} {shape}").passed


def test_label_sums_with_noise_in_a_shape_that_a_row_sticks_out_of_are_refuted(monkeypatch):
    """Shaped by all rows but the longest, and nobody looked."""
    longest = int(np.argmax(np.abs(SUMS_ROWS[:, 0])))
    shape = fit_shape(np.delete(SUMS_ROWS, longest, axis=0), moments=SUMS_ROWS.T @ SUMS_ROWS)
    mechanism = replace(sums_of("gaussian", "optimal"), shape=shape)
    with pytest.raises(InputError, match="some"):
        audited_sums(mechanism, "sticks out")
    monkeypatch.setattr("federation.mechanisms.labels.shaped_gaussian._LONGER", 100.0)
    assert not audited_sums(mechanism, "sticks out").passed
