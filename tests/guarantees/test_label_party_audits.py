"""Audits of what parties send about real labels: claims of whole answers stand, and broken parties are refuted."""

from dataclasses import replace

import numpy as np
import pytest
from support.worst_pairs import audited, mistake_mechanism, pair_of

from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.audits import audit
from federation.mechanisms.labels.unbiased_response import TOTAL, UnbiasedResponse
from federation.numerics.bag_weights import stratified_noise
from parties.responses import labels as bag_sums
from scenarios.audits.auditor import SEED

pytestmark = pytest.mark.slow  # by default `test_audits` checks each claim, and that half of its noise is caught

RANGE = (-3.0, 7.0)
SUMS, LABELS, LLP, LBA = "label_sums", "private_labels", "noisy_weighted_llp", "weighted_lba"
RUNS = {SUMS: 100_000, LABELS: 10_000, LLP: 9_000, LBA: 14_000}
TIGHT = {  # protocol, options
    "sums": (SUMS, {}),
    "sums, gaussian": (SUMS, {"noise": "gaussian"}),
    "sums, isotropic": (SUMS, {"shape": "isotropic", "noise": "pure"}),
    "sums, whitened": (SUMS, {"shape": "whitened", "noise": "gaussian"}),
    "unbiased": (LABELS, {}),
    "one bit": (LABELS, {"noise": "one_bit"}),
    "laplace": (LABELS, {"noise": "laplace"}),
    "gaussian": (LABELS, {"noise": "gaussian"}),
    "bins": (LABELS, {"noise": "bins"}),
    "debiased bins": (LABELS, {"noise": "bins", "debiased": True}),
    "bags": (LLP, {"size": 4}),
    "bags, few noisy": (LLP, {"size": 8, "rho": 0.25}),
    "bags, laplace": (LLP, {"size": 4, "noise": "laplace"}),
    "bags, gaussian weights": (LLP, {"size": 8, "weights": "gaussian"}),
    "secret weights": (LBA, {"size": 4}),
}
LOOSE = {
    "estimated bins": (LABELS, {"noise": "estimated_bins"}),
    "bags, published": (LLP, {"size": 8, "weights": "gaussian", "noisy_rows": "fixed", "rho": 0.5, "sigma": 15.0}),
}


DELTA = {SUMS: 0.01, LABELS: 0.01, LLP: 0.1, LBA: 0.1}  # rare weights lose most: a small delta needs many runs


def pair(name, units=1):
    kind, options = (TIGHT | LOOSE)[name]
    return pair_of(kind, options, PublicNumbers(DELTA[kind], label_range=RANGE), units)


@pytest.mark.parametrize(
    ("name", "runs"), [("estimated bins", 500), pytest.param("bags, published", 2000, marks=pytest.mark.slow)]
)
def test_loose_claims_stand_too(name, runs):
    worst = pair(name)
    assert audited(worst, runs).passed
    seen = worst.seen(False, "form", 8)
    assert {len(array) for field, array in seen.items() if field in ("labels", "sums", "weights")} == {8}


def test_neighbours_differ_in_one_label_and_nothing_public():
    for name in TIGHT | LOOSE:
        worst = pair(name)
        [before], [after] = worst.held(False), worst.held(True)
        np.testing.assert_array_equal(before.rows, after.rows)
        assert (before.labels != after.labels).sum() == 1
        assert np.ptp([before.labels[0], after.labels[0]]) == RANGE[1] - RANGE[0]
        assert worst.answers(False, "form", 1)[0].guarantee.unit is Unit.LABEL


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bags", "bags, published"])
def test_releases_of_one_audit_are_independent(name):
    runs = 2000
    sums = pair(name).seen(False, "independent", runs)["sums"][:, 0]
    assert len(np.unique(sums)) > runs / 2
    assert abs(np.corrcoef(sums[1:], sums[:-1])[0, 1]) < 5 / runs**0.5


def half_range(question):
    """The same question about labels in the lower half of the range."""
    low, high = question.rows.label_range
    return replace(question, rows=replace(question.rows, highest=(low + high) / 2))


@pytest.mark.parametrize("name", ["bags", "bags, few noisy", "bags, gaussian weights"])
def test_bags_with_noise_for_half_the_range_are_refuted(name, monkeypatch):
    def mistaken(question, formed):
        return replace(half_range(question).mechanism(formed), label_range=question.rows.label_range)

    mistake_mechanism(monkeypatch, mistaken)
    assert not audited(pair(name), RUNS[LLP] // 3).passed


def test_secret_weights_with_noise_for_half_the_range_are_refuted(monkeypatch):
    def mistaken(question, formed):
        return replace(half_range(question).mechanism(formed), label_range=question.rows.label_range)

    mistake_mechanism(monkeypatch, mistaken)
    assert not audited(pair("secret weights"), RUNS[LBA] // 4).passed


@pytest.mark.parametrize("name", [name for name in TIGHT if TIGHT[name][0] == SUMS])
def test_sums_with_noise_for_half_the_range_are_refuted(name, monkeypatch):
    def mistaken(question, rows):
        return replace(question.mechanism(rows), additive=half_range(question).mechanism(rows).additive)

    mistake_mechanism(monkeypatch, mistaken)
    assert not audited(pair(name), RUNS[SUMS] // 2).passed


@pytest.mark.parametrize("name", [name for name in TIGHT if TIGHT[name][0] == LABELS])
def test_labels_with_half_the_noise_are_refuted(name, monkeypatch):
    def halved(question):
        mechanism = question.mechanism()
        if hasattr(mechanism, "scale"):
            return replace(mechanism, scale=mechanism.scale // 2)
        if isinstance(mechanism, UnbiasedResponse):  # the same outputs by a table of about twice the epsilon
            squared = [[weight * weight for weight in row] for row in mechanism.weights]
            rows = [[weight * TOTAL // sum(row) for weight in row] for row in squared]
            table = tuple((row[0] + TOTAL - sum(row), *row[1:]) for row in rows)
            return replace(mechanism, epsilon=3.0, weights=table)
        return replace(mechanism, redraw=mechanism.redraw // 2)

    mistake_mechanism(monkeypatch, halved)
    assert not audited(pair(name), RUNS[LABELS] // 2).passed


def test_bags_with_half_the_laplace_noise_are_refuted(monkeypatch):
    def halved(question, formed):
        mechanism = question.mechanism(formed)
        return replace(mechanism, grid_scale=mechanism.grid_scale // 2)

    mistake_mechanism(monkeypatch, halved)
    assert not audited(pair("bags, laplace"), RUNS[LLP] // 2).passed


@pytest.mark.parametrize("name", ["bags", "bags, laplace"])
def test_a_label_that_is_counted_twice_is_refuted(name, monkeypatch):
    drawn = bag_sums.disjoint_bags

    def overlapping(rows, count, size, bits):
        bags = drawn(rows, count, size, bits)
        return np.where(np.isin(bags, [1]), 0, bags)  # the row that may change stands in for another one, too

    monkeypatch.setattr(bag_sums, "disjoint_bags", overlapping)
    assert not audited(pair(name), RUNS[LLP] // 2).passed


class TestOneStream:
    """Whoever knows the published weights may know the key that they were drawn with."""

    def audited(self):
        """By the noise that the key of the weights would make of the lowest labels."""
        worst = pair("bags")
        design, mechanism = worst.question.design, worst.question.mechanism()
        shape = (design.bags, design.size)
        noisy, low = stratified_noise(*shape, design.per_bag), np.full(shape, RANGE[0])

        def sampler(side):
            def sample(count):
                sent = worst.seen(bool(side), "one stream", count)
                known = NoiseBits(SEED, f"bags and weights|audit|one stream|{side}", 0)
                guessed = [mechanism.release(low, weights, noisy, known) for weights in sent["weights"]]
                return np.abs(sent["sums"] - np.array(guessed)).sum(axis=1)

            return sample

        return audit(sampler(0), sampler(1), lambda v: v, epsilon=1.0, delta=DELTA[LLP], runs=1000, confidence=0.999)

    def test_noise_has_another_key_than_weights(self):
        assert self.audited().passed

    def test_weights_and_noise_of_one_key_are_refuted(self, monkeypatch):
        monkeypatch.setattr(
            "parties.guard.answering.NoiseBits",
            lambda seed, release, party: NoiseBits(seed, f"bags and weights|{release}", party),
        )
        result = self.audited()
        assert not result.passed
        assert result.lower_bound > 2
