"""Audits of what parties send about real labels: claims of whole answers stand, and broken parties are refuted."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from federation import label_releases
from federation.guarantee import Unit
from federation.label_releases import bag_sums_mechanism
from federation.numerics.bag_weights import stratified_noise
from federation.privacy.audit import audit
from federation.randomness import NoiseBits
from federation.registry import protocol
from scenarios.audit_bags import SEED, audit_pair
from scenarios.audit_labels import LabelPair, LabelSetting, label_question_of
from scenarios.sweep import Variant

RANGE = (-3.0, 7.0)
SUMS, LABELS, LLP, LBA = "label_sums", "private_labels", "noisy_weighted_llp", "weighted_lba"
RUNS = {SUMS: 100_000, LABELS: 16_000, LLP: 8_000, LBA: 12_000}
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
    "bags, published": (LLP, {"size": 8, "weights": "gaussian", "noisy_rows": "fixed", "rho": 0.5, "sigma": 4.0}),
}


def pair_of(name, changed=1):
    kind, options = (TIGHT | LOOSE)[name]
    variant = Variant(name, kind, asdict(protocol(kind)(**options)), {}, False)
    return LabelPair(label_question_of(variant, LabelSetting(1.0, 0.01, RANGE)), changed)


def audited(name, changed=1, runs=None):
    return audit_pair(pair_of(name, changed), runs=runs or RUNS[(TIGHT | LOOSE)[name][0]], confidence=0.999)


@pytest.mark.parametrize("name", TIGHT)
def test_what_a_party_sends_is_as_private_as_it_promises_and_hardly_more(name):
    result = audited(name)
    print(name, result)
    assert (result.claimed, result.delta) in ((1.0, 0.01), (1.0, 0.0))
    assert 0.5 < result.lower_bound <= 1.0


@pytest.mark.parametrize("name", LOOSE)
def test_loose_claims_stand_too(name):
    r = audited(name, runs=2000)
    print(name, r)
    assert r.passed
