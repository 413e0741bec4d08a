"""Audits of mechanisms by themselves: published ones and broken twins are refuted on the worst pair.

That claims stand, and that half of the noise does not, is audited with the parties' own code: `test_audits` and
`test_label_party_audits`.
"""

import copy
from dataclasses import replace

import numpy as np
import pytest
from support.exact_losses import published_loss

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.audits import audit
from federation.mechanisms.counts.calibration import published_release, sigma_for_counts, true_delta
from federation.mechanisms.counts.dirichlet import calibrate_floor
from federation.mechanisms.labels.calibration import calibrate as calibrate_labels
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.shaped_gaussian import calibrate as calibrate_sums
from federation.mechanisms.labels.shaped_gaussian import fit_shape
from federation.mechanisms.marginals.published import PublishedRates

RUNS = 200_000
RANGE = (0.0, 4.0)
ENDS = np.array(RANGE)  # the worst pair
EPSILON, DELTA = 1.0, 0.01


def mechanism_of(noise):
    return calibrate_labels(noise, epsilon=EPSILON, delta=DELTA, label_range=RANGE, outside="clip", debiased=True)


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
    ratio = lambda labels: mechanism.log_ratio(labels[:, None], *ends)  # noqa: E731
    assert not judged(of_labels(unchecked.release, "loud"), EPSILON, 0.0, ratio).passed


def test_bins_from_a_histogram_that_is_not_private_are_refuted():
    """One label in an empty corner makes a bin of its own appear: whatever is answered, its bin's value tells."""
    rest = np.concatenate([np.zeros(20), np.full(20, 1.0)])
    mechanism = calibrate_labels("estimated_bins", epsilon=EPSILON, delta=0.0, label_range=RANGE, points=4)
    values = {}
    for side, label in enumerate(ENDS):
        labels = np.append(rest, label)
        counts = np.bincount(LabelRange(*RANGE).positions(labels, 3), minlength=4)
        values[side] = mechanism.answers(counts / counts.sum())

    def exposed(side):
        return lambda n: values[side].release(np.full(n, ENDS[side]), NoiseBits(1, "exposed", side))

    assert not judged([exposed(0), exposed(1)], EPSILON, 0.0).passed


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
        power = 2 if mechanism.delta else 1
        gaps = [np.linalg.norm(released @ transform - centre, axis=1) ** power for centre in centres]
        return gaps[1] - gaps[0]

    return labels, ratio


def audited_sums(mechanism, name):
    labels, ratio = sums_pair(mechanism)
    samplers = [
        lambda n, side=side: mechanism.release(SUMS_ROWS, labels[side], NoiseBits(1, name, side), n) for side in (0, 1)
    ]
    return judged(samplers, EPSILON, mechanism.delta, ratio)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["gaussian", "pure"])
@pytest.mark.parametrize("shape", ["optimal", "whitened", "isotropic"])
def test_sums_of_skewed_rows_are_as_private_as_claimed_and_noise_for_half_the_range_is_refuted(noise, shape):
    for width in (4.0, 2.0):
        claim = {"labels": LabelRange(0.0, width), "epsilon": EPSILON, "delta": DELTA if noise == "gaussian" else 0.0}
        mechanism = calibrate_sums(fit_shape(SUMS_ROWS, shape), noise, rows=5, **claim)
        result = audited_sums(replace(mechanism, labels=LabelRange(*RANGE)), f"{noise} {shape}")
        assert EPSILON / 2 < result.lower_bound <= EPSILON if width == 4.0 else not result.passed


@pytest.mark.slow
def test_bins_from_a_private_histogram_stand():
    """Two labels, of which one changes: the prior and both answers are what is seen."""
    mechanism = calibrate_labels("estimated_bins", epsilon=EPSILON, delta=0.0, label_range=RANGE, points=3, share=0.5)

    def sampler(side):
        bits, labels = NoiseBits(1, "histogram", side), np.array([0.0, ENDS[side]])
        return lambda n: np.array([mechanism.release(labels, bits)[1] for _ in range(n)])

    result = audit(sampler(0), sampler(1), lambda values: values, epsilon=EPSILON, runs=1500, confidence=0.999)
    assert 0 < result.lower_bound <= EPSILON


def test_label_sums_with_noise_in_a_shape_that_a_row_sticks_out_of_are_refuted(monkeypatch):
    """Shaped by all rows but the longest, and nobody looked."""
    longest = int(np.argmax(np.abs(SUMS_ROWS[:, 0])))
    shape = fit_shape(np.delete(SUMS_ROWS, longest, axis=0), moments=SUMS_ROWS.T @ SUMS_ROWS)
    claim = {"labels": LabelRange(*RANGE), "epsilon": EPSILON, "delta": DELTA}
    mechanism = replace(calibrate_sums(fit_shape(SUMS_ROWS), "gaussian", rows=5, **claim), shape=shape)
    with pytest.raises(InputError, match="some"):
        audited_sums(mechanism, "sticks out")
    monkeypatch.setattr("federation.mechanisms.labels.shaped_gaussian._LONGER", 100.0)
    assert not audited_sums(mechanism, "sticks out").passed


MARGINAL_RUNS = 60_000
FEATURES, QUERIES = 3, 2
RATES = PublishedRates(FEATURES, QUERIES, EPSILON)


def inner(rates):
    """How many rates are neither 0 nor 1."""
    return ((rates > 0) & (rates < 1)).sum(axis=(1, 2)).astype(float)


@pytest.mark.parametrize("alone", [False, True], ids=["beside an error", "in an empty bin"])
def test_published_rates_do_not_protect_an_added_row(alone):
    """Rates are multiples of 1/n: only two rows have the rate 1/2, and only an empty bin always has."""
    errors = np.full((QUERIES, FEATURES), 0 if alone else 1)
    counts = (0, 1) if alone else (2, 1)

    def release(side):
        bits = NoiseBits(7, "rates", side)
        return lambda n: RATES.release(
            np.broadcast_to(errors, (n, *errors.shape)), np.full(FEATURES, counts[side]), bits
        )

    result = audit(release(0), release(1), inner, epsilon=EPSILON, runs=4000, confidence=0.999)
    assert result.lower_bound > 3 * EPSILON


def test_continuous_published_rates_do_not_protect_an_added_row_either():
    """One correct row beside one error in every bin; the exact loss is above the bound that is found."""

    def release(rows):
        random = np.random.default_rng(rows)
        size = (QUERIES, FEATURES)
        return lambda n: np.clip((1 + random.laplace(scale=RATES.scale, size=(n, *size))) / rows, 0, 1)

    result = audit(release(2), release(1), inner, epsilon=EPSILON, runs=MARGINAL_RUNS, confidence=0.999)
    exact = QUERIES * FEATURES * published_loss(1, 1, RATES.scale, "correct")
    assert 1.5 * EPSILON < result.lower_bound <= exact


COUNT_RUNS = 100_000
LEAST = 20


def audited_counts(sample_p, sample_q, statistic, epsilon=EPSILON, delta=DELTA, runs=COUNT_RUNS):
    """The audit of two samplers (bits, runs) -> (runs, C)."""
    first, second = (NoiseBits(11, f"Dirichlet audit {side}") for side in (0, 1))
    return audit(
        lambda n: sample_p(first, n),
        lambda n: sample_q(second, n),
        statistic,
        epsilon=epsilon,
        delta=delta,
        runs=runs,
        confidence=0.999,
    )


def log_odds(shares):
    """Increasing in the likelihood ratio of neighbours that share one sigma."""
    return np.log(np.maximum(shares[:, 0], 1e-12)) - np.log(np.maximum(shares[:, 1], 1e-12))


def test_a_floor_above_the_counts_promises_nothing():
    mechanism = calibrate_floor(2, EPSILON, DELTA, LEAST)
    result = audited_counts(
        lambda bits, n: mechanism.release(np.array([3, 97]), bits, n),
        lambda bits, n: mechanism.release(np.array([2, 98]), bits, n),
        log_odds,
    )
    assert not result.passed


def test_a_visible_refusal_below_the_floor_is_refuted():
    """A twin that checks the counts: its neighbours differ in whether there is an answer at all."""
    mechanism = calibrate_floor(2, EPSILON, DELTA, LEAST)

    def refusing(counts):
        released = mechanism.release
        return lambda bits, n: released(counts, bits, n) if counts.min() >= LEAST else np.full((n, 2), -1.0)

    result = audited_counts(refusing(np.array([20, 80])), refusing(np.array([19, 81])), lambda x: x[:, 0])
    assert result.lower_bound > 5


def own_sigma_ratio(here, there, epsilon, delta):
    """The log likelihood ratio of two Dirichlet laws with a sigma of their own each, up to a constant."""
    laws = [sigma_for_counts(eta, epsilon, delta) * eta for eta in (here, there)]
    return lambda released: np.log(np.maximum(released, 1e-9)) @ (laws[0] - laws[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("here", "there", "epsilon", "delta"),
    [((13, 987), (14, 986), 1.0, 1e-6), ((41, 959), (42, 958), 0.05, 0.05), ((14, 986), (15, 985), 1.0, 1e-6)],
)
def test_sigma_from_the_counts_is_refuted(here, there, epsilon, delta):
    """The published mechanism is the broken twin: its true delta is up to 239,000 times the claimed one."""
    here, there = np.array(here), np.array(there)
    result = audited_counts(
        lambda bits, n: published_release(here, epsilon, delta, bits, n),
        lambda bits, n: published_release(there, epsilon, delta, bits, n),
        own_sigma_ratio(here, there, epsilon, delta),
        epsilon,
        delta,
    )
    assert not result.passed
    assert true_delta(here, there, epsilon, delta).value > 2 * delta


def test_the_fall_back_of_the_published_mechanism_shows_where_no_sigma_exists():
    here, there = np.array([41, 959]), np.array([40, 960])
    result = audited_counts(
        lambda bits, n: published_release(here, 0.05, 0.05, bits, n),
        lambda bits, n: published_release(there, 0.05, 0.05, bits, n),
        lambda released: released[:, 0],
        0.05,
        0.05,
        runs=40_000,
    )
    assert not result.passed
    assert true_delta(here, there, 0.05, 0.05).value == 1
