from dataclasses import replace

import numpy as np
import pytest
from support.linear_labels import RANGE, draw

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId, check_submission
from federation.features.feature_map import FeatureMap
from federation.queries.labels import (
    BagSums,
    BagSumsNoise,
    BagSumsQuestion,
    LabelledRows,
    WeightedSumsNoise,
    WeightedSumsQuestion,
)
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort
from parties.responses import labels as module
from parties.site.worker import cost_of

LINEAR = Reference("support.linear_labels:Parties")
ROWS = LabelledRows(FeatureMap(3, ()), *RANGE, 90)
STRATIFIED = BagSums(80, 10, 8, "signs", 4, 0)


SECRET = BagSums(80, 10, 8, "gaussian", 0, 0)


def bags(design=STRATIFIED, noise="gaussian", draws=3, seeded=True, name="a world", **known):
    asked = BagSumsNoise(noise, **{"epsilon": 1.0, "delta": 1e-3, **known})
    return BagSumsQuestion(asked, ROWS, design, release=ReleaseId(name), draws=draws, seeded=seeded)


def secret_sums(design=SECRET, noise="gaussian", draws=3, seeded=True):
    asked = WeightedSumsNoise(noise, 1.0, 1e-3)
    return WeightedSumsQuestion(asked, ROWS, design, release=ReleaseId("a world"), draws=draws, seeded=seeded)


@pytest.mark.parametrize(
    "asked",
    [bags(), bags(noise="laplace"), bags(noise="off"), secret_sums()],
    ids=["gaussian", "laplace", "off", "secret"],
)
def test_draws_have_the_same_bits_however_many_are_made_at_a_time(asked, monkeypatch):
    found = answered(cohort(), asked).arrays
    monkeypatch.setattr(module, "_AT_A_TIME", 1)
    for name, one_by_one in answered(cohort(), asked).arrays.items():
        np.testing.assert_array_equal(found[name], one_by_one)


def cohort(count=2, **config):
    return Cohort(LINEAR.to_json(), 0, count, **{"seed": 5, **config})


@pytest.mark.parametrize("weights", ["signs", "gaussian"])
def test_sums_without_noise_are_those_of_the_published_rows_and_weights(weights):
    asked = bags(BagSums(80, 10, 8, weights, 4, 0), noise="off")
    found = answered(cohort(), asked)
    check_submission(asked, found)
    features, labels = draw(0, 80)
    sent = found.arrays["rows"][0].reshape(-1, 3)
    place = [int(np.flatnonzero((features == row).all(axis=1))[0]) for row in sent]
    assert sorted(place) == list(range(80))
    expected = np.einsum("tmk,mk->tm", found.arrays["weights"][0], labels[place].reshape(10, 8))
    np.testing.assert_allclose(found.arrays["sums"][0], expected, atol=1e-12)
    assert (np.abs(found.arrays["weights"]) == 1).all() == (weights == "signs")


@pytest.mark.parametrize(
    ("design", "known"),
    [
        (STRATIFIED, {}),
        (STRATIFIED, {"noise": "laplace"}),
        (BagSums(80, 10, 8, "gaussian", 8, 0), {}),
        (BagSums(80, 10, 8, "gaussian", 0, 60), {"sigma": 2.0, "delta": 0.999}),
    ],
)
def test_noise_has_the_scale_of_the_mechanism(design, known):
    asked = bags(design, draws=2000, **known)
    found = answered(cohort(count=1), asked)
    mechanism = asked.mechanism()
    assert found.guarantee.unit is Unit.LABEL
    assert found.guarantee.epsilon == 1.0
    labels = dict(zip(map(tuple, draw(0, 80)[0]), draw(0, 80)[1], strict=True))
    held = np.array([[labels[tuple(row)] for row in bag] for bag in found.arrays["rows"][0]])
    noise = found.arrays["sums"][0] - np.einsum("tmk,mk->tm", found.arrays["weights"][0], held)
    assert abs(noise.mean()) < 5 * noise.std() / noise.size**0.5
    if known.get("noise") == "laplace":
        assert noise.std() == pytest.approx(2**0.5 * mechanism.scale, rel=0.05)
    elif design.per_bag and design.weights == "signs":
        assert noise.std() == pytest.approx(mechanism.sigma * design.per_bag**0.5, rel=0.05)
    else:
        assert noise.std() == pytest.approx(mechanism.sigma * (design.per_bag or 6) ** 0.5, rel=0.15)


def test_weights_and_noise_come_from_different_streams_and_depend_on_party_and_release():
    asked = bags()
    both = answered(cohort(), asked)
    alone = [answered(Cohort(LINEAR.to_json(), first, 1, seed=5), asked) for first in (0, 1)]
    for name in ("rows", "weights", "sums"):
        np.testing.assert_array_equal(both.arrays[name], np.concatenate([one.arrays[name] for one in alone]))
    assert not np.array_equal(both.arrays["weights"][0], both.arrays["weights"][1])
    other = answered(cohort(), replace(asked, release=ReleaseId("another world")))
    for name in ("rows", "weights", "sums"):
        assert not np.array_equal(other.arrays[name], both.arrays[name])


def test_the_rows_of_a_party_may_form_a_single_bag():
    found = answered(cohort(count=1), bags(BagSums(0, 12, 80, "signs", 7, 0), noise="off"))
    assert (found.failures, found.arrays["formed"].tolist()) == ({}, [1])


def test_labels_outside_the_range_are_moved_to_it_and_tell_nothing():
    loud = Cohort(Reference("support.linear_labels:Parties", {"loud": [0]}).to_json(), 0, 1, seed=5)
    found = answered(loud, bags(noise="off"))
    assert found.failures == {}
    assert np.abs(found.arrays["sums"]).max() <= 8 * 10.0


def test_secret_sums_have_the_moments_of_the_rows():
    asked = secret_sums(noise="off", draws=400)
    found = answered(cohort(count=1), asked)
    check_submission(asked, found)
    assert set(found.arrays) == {"formed", "row_sums", "label_sums"}
    features, labels = draw(0, 80)
    table = np.column_stack([features, labels])
    sums = np.concatenate([found.arrays["row_sums"], found.arrays["label_sums"][..., None]], axis=-1).reshape(-1, 4)
    np.testing.assert_allclose(sums.T @ sums / len(sums), 8 * table.T @ table / 80, rtol=0.15, atol=1.0)


def test_repaired_sums_carry_noise_on_labels_only():
    noisy, exact = (
        answered(cohort(count=1), secret_sums(noise=noise, draws=500)) for noise in ("gaussian", "published")
    )
    np.testing.assert_array_equal(noisy.arrays["row_sums"], exact.arrays["row_sums"])
    assert exact.guarantee is None
    added = noisy.arrays["label_sums"] - exact.arrays["label_sums"]
    tau = secret_sums().mechanism().tau
    assert added.std() == pytest.approx(tau, rel=0.05)


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "off"])
def test_parties_form_as_many_bags_as_they_can_with_equal_noise(noise):
    asked = bags(BagSums(0, 12, 7, "signs", 7, 0), noise=noise)
    found = answered(cohort(), asked)
    check_submission(asked, found)
    assert found.arrays["formed"].tolist() == [11, 12]  # of 80 and 87 rows
    for party, formed in enumerate((11, 12)):
        assert (np.abs(found.arrays["weights"][party, :, :formed]) == 1).all()
        for name in ("weights", "sums"):
            assert not found.arrays[name][party, :, formed:].any()
    if noise != "off":
        scales = {asked.mechanism(formed).parameters.get("sigma") for formed in (None, 11, 12)}
        assert len(scales) == 1
        claims = [asked.mechanism(formed).delta_at(1.0) for formed in (None, 11, 12)]
        assert claims == pytest.approx([claims[0]] * 3)
    secret = secret_sums(BagSums(0, 12, 7, "gaussian", 0, 0))
    sums = answered(cohort(), secret).arrays["label_sums"]
    assert not sums[0, :, 11:].any()
    assert sums[1, :, 11].all()
    assert len({secret.mechanism(formed).tau for formed in (None, 1, 11)}) == 1


def test_a_party_with_too_few_rows_or_labels_of_another_kind_costs_no_other_party():
    few = bags(BagSums(85, 10, 8, "signs", 4, 0))
    found = answered(cohort(), few)
    assert found.parties.tolist() == [1]
    assert "85 rows" in found.failures[0]
    broken = Cohort(Reference("support.linear_labels:Parties", {"broken": [1]}).to_json(), 0, 2, seed=5)
    assert answered(broken, bags()).parties.tolist() == [0]


class TestDeployed:
    """Without a seed the node is a deployed one."""

    def node(self, **config):
        return cohort(count=1, **{"seed": None, "paid": True, "public_features": True, **config})

    def asked(self, **known):
        return bags(**{"draws": 1, "seeded": False, **known})

    def test_it_answers_what_has_been_paid_for(self):
        assert cost_of(self.asked(), self.node()).guarantee.epsilon == 1.0
        assert len(answered(self.node(), self.asked()).parties) == 1

    def test_half_of_the_rows_that_take_part_must_be_in_bags(self):
        """Of fewer rows each is drawn so seldom that hardly any noise is asked for."""
        assert answered(self.node(), self.asked(design=BagSums(80, 5, 8, "signs", 4, 0))).failures == {}
        with pytest.raises(InputError, match=r"half of the rows .* must be in bags, got 4 bags of 8 out of 80 rows"):
            answered(self.node(), self.asked(design=BagSums(80, 4, 8, "signs", 4, 0)))

    def test_a_bag_without_a_noisy_label_does_not_leave_it(self):
        """Though the promise counts that as a failure: it would be one label or its sum in clear, and known to be."""
        known = {"design": BagSums(80, 10, 8, "signs", 0, 1), "delta": 0.95}
        assert answered(self.node(), self.asked(**known)).failures == {0: "the party could not answer"}
        assert answered(cohort(count=1), bags(**known)).failures == {}

    def test_it_refuses_what_has_no_guarantee_and_keeps_features_that_are_not_public(self):
        for asked in (self.asked(noise="off"), secret_sums(noise="published", draws=1, seeded=False)):
            with pytest.raises(InputError, match="guarantee"):
                answered(self.node(), asked)
        with pytest.raises(InputError, match="public-features"):
            answered(self.node(public_features=False), self.asked())
