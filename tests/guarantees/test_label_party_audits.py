"""Audits of what parties send about real labels: claims of whole answers stand, and broken parties are refuted."""

from dataclasses import replace

import numpy as np
import pytest
from support.claims import CLAIMS, SUMS
from support.worst_pairs import audited, mistake_mechanism

from federation.contract.randomness import NoiseBits
from federation.mechanisms.audits import audit
from federation.mechanisms.labels.unbiased_response import TOTAL, UnbiasedResponse
from federation.numerics.bag_weights import stratified_noise
from parties.responses import labels as bag_sums
from scenarios.audits.auditor import SEED

pytestmark = pytest.mark.slow  # by default `test_audits` checks each claim, and that half of its noise is caught

PUBLISHED = {"size": 8, "weights": "gaussian", "noisy_rows": "fixed", "rho": 0.5, "sigma": 15.0}
LOOSE = {
    "labels, estimated bins": replace(CLAIMS["labels, bins"], options={"noise": "estimated_bins"}),
    "bag sums, published": replace(CLAIMS["bag sums"], options=PUBLISHED),
}


@pytest.mark.parametrize(("name", "runs"), [("labels, estimated bins", 500), ("bag sums, published", 2000)])
def test_loose_claims_stand_too(name, runs):
    worst = LOOSE[name].pair()
    assert audited(worst, runs).passed
    seen = worst.seen(False, "form", 8)
    assert {len(array) for field, array in seen.items() if field in ("labels", "sums", "weights")} == {8}


@pytest.mark.parametrize("name", ["bag sums", "bag sums, published"])
def test_releases_of_one_audit_are_independent(name):
    runs = 2000
    sums = (CLAIMS | LOOSE)[name].pair().seen(False, "independent", runs)["sums"][:, 0]
    assert len(np.unique(sums)) > runs / 2
    assert abs(np.corrcoef(sums[1:], sums[:-1])[0, 1]) < 5 / runs**0.5


def half_range(question):
    """The same question about labels in the lower half of the range."""
    low, high = question.rows.label_range
    return replace(question, rows=replace(question.rows, highest=(low + high) / 2))


@pytest.mark.parametrize(
    ("name", "runs"),
    [("bag sums", 3000), ("bag sums, few noisy", 3000), ("bag sums, gaussian weights", 3000), ("secret weights", 3500)],
)
def test_bags_with_noise_for_half_the_range_are_refuted(name, runs, monkeypatch):
    def mistaken(question, formed):
        return replace(half_range(question).mechanism(formed), label_range=question.rows.label_range)

    mistake_mechanism(monkeypatch, mistaken)
    assert not audited(CLAIMS[name].pair(), runs).passed


@pytest.mark.parametrize(
    "name", ["label sums", "label sums, gaussian", "label sums, isotropic", "label sums, whitened"]
)
def test_sums_with_noise_for_half_the_range_are_refuted(name, monkeypatch):
    def mistaken(question, rows):
        return replace(question.mechanism(rows), additive=half_range(question).mechanism(rows).additive)

    mistake_mechanism(monkeypatch, mistaken)
    assert not audited(CLAIMS[name].pair(), 50_000).passed


@pytest.mark.parametrize("name", [name for name in CLAIMS if name.startswith("labels")])
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
    assert not audited(CLAIMS[name].pair(), 5000).passed


def test_bags_with_half_the_laplace_noise_are_refuted(monkeypatch):
    def halved(question, formed):
        mechanism = question.mechanism(formed)
        return replace(mechanism, grid_scale=mechanism.grid_scale // 2)

    mistake_mechanism(monkeypatch, halved)
    assert not audited(CLAIMS["bag sums, laplace"].pair(), 4500).passed


@pytest.mark.parametrize("name", ["bag sums", "bag sums, laplace"])
def test_a_label_that_is_counted_twice_is_refuted(name, monkeypatch):
    drawn = bag_sums.disjoint_bags

    def overlapping(rows, count, size, bits):
        bags = drawn(rows, count, size, bits)
        return np.where(np.isin(bags, [1]), 0, bags)  # the row that may change stands in for another one, too

    monkeypatch.setattr(bag_sums, "disjoint_bags", overlapping)
    assert not audited(CLAIMS[name].pair(), 4500).passed


class TestOneStream:
    """Whoever knows the published weights may know the key that they were drawn with."""

    def audited(self):
        """By the noise that the key of the weights would make of the lowest labels."""
        worst = CLAIMS["bag sums"].pair()
        design, mechanism = worst.question.design, worst.question.mechanism()
        shape = (design.bags, design.size)
        noisy, low = stratified_noise(*shape, design.per_bag), np.full(shape, worst.question.rows.lowest)

        def sampler(side):
            def sample(count):
                sent = worst.seen(bool(side), "one stream", count)
                known = NoiseBits(SEED, f"bags and weights|audit|one stream|{side}", 0)
                guessed = [mechanism.release(low, weights, noisy, known) for weights in sent["weights"]]
                return np.abs(sent["sums"] - np.array(guessed)).sum(axis=1)

            return sample

        return audit(sampler(0), sampler(1), lambda v: v, epsilon=1.0, delta=SUMS.delta, runs=1000, confidence=0.999)

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
