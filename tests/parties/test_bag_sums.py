import json

import numpy as np
import pytest
from linear_labels import RANGE, draw

from federation.questions.bags import Noising
from federation.contract.errors import InputError
from federation.features import FeatureMap
from federation.contract.guarantee import Unit
from federation.questions.labels import BagSums, BagSumsQuestion, LabelledRows, WeightedSumsQuestion
from federation.questions.labels import bag_sums_mechanism, weighted_sums_mechanism
from federation.contract.submission import check_submission
from federation.reference import Reference
from parties.bag_sums import answer, answer_secretly
from parties.holdings import Cohort

LINEAR = Reference("linear_labels:Parties")
ROWS = LabelledRows(FeatureMap(3, ()), *RANGE, 90)
STRATIFIED = BagSums(80, 10, 8, "signs", 4, 0)


def noising(noise="gaussian", draws=3, **known):
    return Noising({"noise": noise, "epsilon": 1.0, "delta": 1e-3, **known}, draws, "a world", True)


def bags(design=STRATIFIED, **known):
    return BagSumsQuestion(ROWS, design, noising(**known))


def cohort(count=2, **config):
    return Cohort(LINEAR.to_json(), 0, count, **{"seed": 5, **config})


@pytest.mark.parametrize("weights", ["signs", "gaussian"])
def test_sums_without_noise_are_those_of_the_published_rows_and_weights(weights):
    asked = bags(BagSums(80, 10, 8, weights, 4, 0), noise="off")
    found = answer(cohort(), asked)
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
    found = answer(cohort(count=1), asked)
    mechanism = bag_sums_mechanism(asked)
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


def test_weights_and_noise_come_from_different_streams_and_depend_on_party_and_purpose():
    asked = bags()
    both = answer(cohort(), asked)
    alone = [answer(Cohort(LINEAR.to_json(), first, 1, seed=5), asked) for first in (0, 1)]
    for name in ("rows", "weights", "sums"):
        np.testing.assert_array_equal(both.arrays[name], np.concatenate([one.arrays[name] for one in alone]))
    assert not np.array_equal(both.arrays["weights"][0], both.arrays["weights"][1])
    other = BagSumsQuestion(ROWS, STRATIFIED, Noising(asked.noising.mechanism, 3, "another world", True))
    assert not np.array_equal(answer(cohort(), other).arrays["sums"], both.arrays["sums"])


def test_labels_outside_the_range_are_moved_to_it_and_tell_nothing():
    loud = Cohort(Reference("linear_labels:Parties", {"loud": [0]}).to_json(), 0, 1, seed=5)
    found = answer(loud, bags(noise="off"))
    assert found.failures == {}
    assert np.abs(found.arrays["sums"]).max() <= 8 * 10.0


def test_secret_sums_have_the_moments_of_the_rows():
    asked = WeightedSumsQuestion(ROWS, BagSums(80, 10, 8, "gaussian", 0, 0), noising("off", draws=400))
    found = answer_secretly(cohort(count=1), asked)
    check_submission(asked, found)
    assert set(found.arrays) == {"formed", "row_sums", "label_sums"}
    features, labels = draw(0, 80)
    table = np.column_stack([features, labels])
    sums = np.concatenate([found.arrays["row_sums"], found.arrays["label_sums"][..., None]], axis=-1).reshape(-1, 4)
    np.testing.assert_allclose(sums.T @ sums / len(sums), 8 * table.T @ table / 80, rtol=0.15, atol=1.0)


def test_repaired_sums_carry_noise_on_labels_only():
    design = BagSums(80, 10, 8, "gaussian", 0, 0)
    noisy, exact = (
        answer_secretly(cohort(count=1), WeightedSumsQuestion(ROWS, design, noising(noise, draws=500)))
        for noise in ("gaussian", "published")
    )
    np.testing.assert_array_equal(noisy.arrays["row_sums"], exact.arrays["row_sums"])
    assert exact.guarantee is None
    added = noisy.arrays["label_sums"] - exact.arrays["label_sums"]
    tau = weighted_sums_mechanism(WeightedSumsQuestion(ROWS, design, noising())).tau
    assert added.std() == pytest.approx(tau, rel=0.05)


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "off"])
def test_parties_form_as_many_bags_as_they_can_with_equal_noise(noise):
    asked = BagSumsQuestion(ROWS, BagSums(0, 12, 7, "signs", 7, 0), noising(noise))
    found = answer(cohort(), asked)
    check_submission(asked, found)
    assert found.arrays["formed"].tolist() == [11, 12]  # of 80 and 87 rows
    for party, formed in enumerate((11, 12)):
        assert (np.abs(found.arrays["weights"][party, :, :formed]) == 1).all()
        for name in ("weights", "sums"):
            assert not found.arrays[name][party, :, formed:].any()
    if noise != "off":
        scales = {bag_sums_mechanism(asked, formed).parameters.get("sigma") for formed in (None, 11, 12)}
        assert len(scales) == 1
        claims = [bag_sums_mechanism(asked, formed).delta_at(1.0) for formed in (None, 11, 12)]
        assert claims == pytest.approx([claims[0]] * 3)
    secret = WeightedSumsQuestion(ROWS, BagSums(0, 12, 7, "gaussian", 0, 0), noising())
    sums = answer_secretly(cohort(), secret).arrays["label_sums"]
    assert not sums[0, :, 11:].any()
    assert sums[1, :, 11].all()
    assert len({weighted_sums_mechanism(secret, formed).tau for formed in (None, 1, 11)}) == 1


def test_a_party_with_too_few_rows_or_labels_of_another_kind_costs_no_other_party():
    few = BagSumsQuestion(ROWS, BagSums(85, 10, 8, "signs", 4, 0), noising())
    found = answer(cohort(), few)
    assert found.parties.tolist() == [1]
    assert "85 rows" in found.failures[0]
    broken = Cohort(Reference("linear_labels:Parties", {"broken": [1]}).to_json(), 0, 2, seed=5)
    assert answer(broken, bags()).parties.tolist() == [0]


class TestDeployed:
    """Without a seed the node is a deployed one."""

    def node(self, tmp_path, **config):
        allowance = json.dumps({"ledger": str(tmp_path / "spent.json"), "epsilon": 1.0, "delta": 1e-3})
        return cohort(count=1, **{"seed": None, "allowance": allowance, "public_features": True, **config})

    def asked(self, **known):
        plain = bags(**{"draws": 1, **known})
        return BagSumsQuestion(ROWS, STRATIFIED, Noising(plain.noising.mechanism, 1, "", False))

    def test_it_answers_while_its_allowance_lasts(self, tmp_path):
        assert len(answer(self.node(tmp_path), self.asked()).parties) == 1
        assert len(answer(self.node(tmp_path), self.asked()).parties) == 0

    def test_it_refuses_what_has_no_guarantee_and_keeps_features_that_are_not_public(self, tmp_path):
        with pytest.raises(InputError, match="guarantee"):
            answer(self.node(tmp_path), self.asked(noise="off"))
        with pytest.raises(InputError, match="public-features"):
            answer(self.node(tmp_path, public_features=False), self.asked())
        design = BagSums(80, 10, 8, "gaussian", 0, 0)
        published = WeightedSumsQuestion(ROWS, design, Noising({"noise": "published"}, 1, "", False))
        with pytest.raises(InputError, match="guarantee"):
            answer_secretly(self.node(tmp_path), published)
