"""Audits of what parties send about real labels: claims of whole answers stand, and broken parties are refuted."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from federation.questions import labels as label_releases
from federation.contract.guarantee import Unit
from federation.questions.labels import bag_sums_mechanism
from federation.numerics.bag_weights import stratified_noise
from federation.privacy.audit import audit
from federation.contract.randomness import NoiseBits
from aggregator.contract.registry import protocol
from parties import bag_sums
from scenarios.audits.audit_bags import SEED, audit_pair
from scenarios.audits.audit_labels import LabelPair, LabelSetting, label_question_of
from scenarios.settings.sweep import Variant

RANGE = (-3.0, 7.0)
SUMS, LABELS, LLP, LBA = "label_sums", "private_labels", "noisy_weighted_llp", "weighted_lba"
RUNS = {SUMS: 100_000, LABELS: 16_000, LLP: 9_000, LBA: 14_000}
TIGHT = {  # protocol, options
    "sums": (SUMS, {}),
    "sums, gaussian": (SUMS, {"noise": "gaussian"}),
    "sums, isotropic": (SUMS, {"shape": "isotropic", "noise": "pure"}),
    "sums, whitened": (SUMS, {"shape": "whitened", "noise": "gaussian"}),
    "one bit": (LABELS, {}),
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


def pair_of(name, changed=1):
    kind, options = (TIGHT | LOOSE)[name]
    variant = Variant(name, kind, asdict(protocol(kind)(**options)), {}, False)
    setting = LabelSetting(1.0, DELTA[kind], RANGE)
    return LabelPair(label_question_of(variant, setting), changed)


def audited(pair, runs):
    return audit_pair(pair, runs=runs, confidence=0.999)


@pytest.mark.parametrize("name", TIGHT)
def test_what_a_party_sends_is_as_private_as_it_promises_and_hardly_more(name):
    result = audited(pair_of(name), RUNS[TIGHT[name][0]])
    assert (result.claimed, result.delta) in ((1.0, DELTA[TIGHT[name][0]]), (1.0, 0.0))
    assert 0.5 < result.lower_bound <= 1.0


@pytest.mark.parametrize(("name", "runs"), [("estimated bins", 500), ("bags, published", 2000)])
def test_loose_claims_stand_too(name, runs):
    pair = pair_of(name)
    assert audited(pair, runs).passed
    sent = pair.answer(0, "form", 8).arrays
    assert len({len(array[0]) for field, array in sent.items() if field in ("labels", "sums", "weights")}) == 1


@pytest.mark.parametrize("name", TIGHT)
def test_several_changed_labels_need_more_noise(name):
    """Two, or four with random weights, move sums as one label does that has half the noise it needs."""
    kind = TIGHT[name][0]
    assert not audited(pair_of(name, 4 if kind in (LLP, LBA) else 2), RUNS[kind] // (4 if kind == LBA else 2)).passed


def test_neighbours_differ_in_one_label_and_nothing_public():
    for name in TIGHT | LOOSE:
        pair = pair_of(name)
        held = [pair.provider(side).call().holdings(0) for side in (0, 1)]
        np.testing.assert_array_equal(held[0].rows, held[1].rows)
        assert (held[0].labels != held[1].labels).sum() == 1
        assert np.ptp([side.labels[0] for side in held]) == RANGE[1] - RANGE[0]
        assert pair.answer(0, "form", 1).guarantee.unit is Unit.LABEL


@pytest.mark.parametrize("name", ["bags", "bags, published"])
def test_releases_of_one_audit_are_independent(name):
    runs = 2000
    sums = pair_of(name).answer(0, "independent", runs).arrays["sums"][0, :, 0]
    assert len(np.unique(sums)) > runs / 2
    assert abs(np.corrcoef(sums[1:], sums[:-1])[0, 1]) < 5 / runs**0.5


def breaking(monkeypatch, module, name, mistake):
    """Parties of `module` that call `mistake` of what `name` really gives."""
    real = getattr(label_releases, name)
    monkeypatch.setattr(f"parties.{module}.{name}", lambda *arguments: mistake(real, *arguments))


def half_range(question):
    """The same question about labels in the lower half of the range."""
    low, high = question.rows.label_range
    return replace(question, rows=replace(question.rows, highest=(low + high) / 2))


@pytest.mark.parametrize("name", ["bags", "bags, few noisy", "bags, gaussian weights"])
def test_bags_with_noise_for_half_the_range_are_refuted(name, monkeypatch):
    def mistaken(real, question, formed):
        return replace(real(half_range(question), formed), label_range=question.rows.label_range)

    breaking(monkeypatch, "bag_sums", "bag_sums_mechanism", mistaken)
    assert not audited(pair_of(name), RUNS[LLP] // 3).passed


def test_secret_weights_with_noise_for_half_the_range_are_refuted(monkeypatch):
    def mistaken(real, question, formed):
        return replace(real(half_range(question), formed), label_range=question.rows.label_range)

    breaking(monkeypatch, "bag_sums", "weighted_sums_mechanism", mistaken)
    assert not audited(pair_of("secret weights"), RUNS[LBA] // 4).passed


@pytest.mark.parametrize("name", [name for name in TIGHT if TIGHT[name][0] == SUMS])
def test_sums_with_noise_for_half_the_range_are_refuted(name, monkeypatch):
    def mistaken(real, question, rows):
        return replace(real(question, rows), additive=real(half_range(question), rows).additive)

    breaking(monkeypatch, "private_labels", "sums_mechanism", mistaken)
    assert not audited(pair_of(name), RUNS[SUMS] // 2).passed


@pytest.mark.parametrize("name", [name for name in TIGHT if TIGHT[name][0] == LABELS])
def test_labels_with_half_the_noise_are_refuted(name, monkeypatch):
    def halved(real, question):
        mechanism = real(question)
        if hasattr(mechanism, "scale"):
            return replace(mechanism, scale=mechanism.scale // 2)
        return replace(mechanism, redraw=mechanism.redraw // 2)

    breaking(monkeypatch, "private_labels", "labels_mechanism", halved)
    assert not audited(pair_of(name), RUNS[LABELS] // 2).passed


def test_bags_with_half_the_laplace_noise_are_refuted(monkeypatch):
    def halved(real, question, formed):
        mechanism = real(question, formed)
        return replace(mechanism, grid_scale=mechanism.grid_scale // 2)

    breaking(monkeypatch, "bag_sums", "bag_sums_mechanism", halved)
    assert not audited(pair_of("bags, laplace"), RUNS[LLP] // 2).passed


@pytest.mark.parametrize("name", ["bags", "bags, laplace"])
def test_a_label_that_is_counted_twice_is_refuted(name, monkeypatch):
    drawn = bag_sums.disjoint_bags

    def overlapping(rows, count, size, bits):
        bags = drawn(rows, count, size, bits)
        return np.where(np.isin(bags, [1]), 0, bags)  # the row that may change stands in for another one, too

    monkeypatch.setattr(bag_sums, "disjoint_bags", overlapping)
    assert not audited(pair_of(name), RUNS[LLP] // 2).passed


class TestOneStream:
    """Whoever knows the published weights may know the key that they were drawn with."""

    def audited(self):
        """By the noise that the key of the weights would make of the lowest labels."""
        pair = pair_of("bags")
        design, mechanism = pair.question.design, bag_sums_mechanism(pair.question)
        shape = (design.bags, design.size)
        noisy, low = stratified_noise(*shape, design.per_bag), np.full(shape, RANGE[0])

        def sampler(side):
            def sample(count):
                sent = pair.answer(side, "one stream", count).arrays
                known = NoiseBits(SEED, f"bags and weights|audit|one stream|{side}", 0)
                guessed = [mechanism.release(low, weights, noisy, known) for weights in sent["weights"][0]]
                return np.abs(sent["sums"][0] - np.array(guessed)).sum(axis=1)

            return sample

        return audit(sampler(0), sampler(1), lambda v: v, epsilon=1.0, delta=DELTA[LLP], runs=1000, confidence=0.999)

    def test_noise_has_another_key_than_weights(self):
        assert self.audited().passed

    def test_weights_and_noise_of_one_key_are_refuted(self, monkeypatch):
        monkeypatch.setattr(
            "parties.noising.noise_bits",
            lambda cohort, party, noising, *_: NoiseBits(SEED, f"bags and weights|{noising.purpose}", party),
        )
        result = self.audited()
        assert not result.passed
        assert result.lower_bound > 2
