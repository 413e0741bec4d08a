from dataclasses import replace

import numpy as np
import pytest
from support.linear_labels import RANGE, draw

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId, check_submission
from federation.features.feature_map import FeatureMap
from federation.mechanisms.labels.unbiased_response import table
from federation.queries.labels import (
    LabelledRows,
    LabelsNoise,
    LabelSumsNoise,
    LabelSumsQuestion,
    PrivateLabelsQuestion,
)
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort
from parties.site.worker import cost_of

LINEAR = Reference("support.linear_labels:Parties")
ROWS = LabelledRows(FeatureMap(3, ()), *RANGE, 90)


def single(noise, rows=ROWS, draws=3, seeded=True, name="a world"):
    asked = LabelsNoise(noise, 1.0, 1e-3, False, *(table(1.0) if noise == "unbiased" else ()))
    return PrivateLabelsQuestion(asked, rows, release=ReleaseId(name), draws=draws, seeded=seeded)


def summed(noise, rows=ROWS, shape="optimal", draws=3, seeded=True, name="a world"):
    asked = LabelSumsNoise(noise, 1.0, 1e-3)
    return LabelSumsQuestion(asked, rows, shape, release=ReleaseId(name), draws=draws, seeded=seeded)


def cohort(count=2, **config):
    return Cohort(LINEAR.to_json(), 0, count, **{"seed": 5, **config})


@pytest.mark.parametrize("noise", ["one_bit", "unbiased", "laplace", "gaussian"])
def test_private_labels_are_unbiased_with_the_variance_of_their_mechanism(noise):
    asked = single(noise, draws=2000)
    found = answered(cohort(count=1), asked)
    check_submission(asked, found)
    assert (found.guarantee.unit, found.guarantee.epsilon) == (Unit.LABEL, 1.0)
    labels = draw(0, 80)[1]
    released = found.arrays["labels"][0, :, :80]
    variance = asked.mechanism().variance(labels)
    np.testing.assert_allclose(released.mean(axis=0), labels, atol=6 * (np.max(variance) / 2000) ** 0.5)
    np.testing.assert_allclose(released.var(axis=0).mean(), np.mean(variance), rtol=0.05)
    assert not found.arrays["labels"][:, :, 80:].any()


def test_rows_of_parties_of_different_sizes_are_filled_up():
    found = answered(cohort(), single("off"))
    assert found.arrays["size"].tolist() == [80, 87]
    np.testing.assert_array_equal(found.arrays["rows"][1, :87], draw(1, 87)[0])
    np.testing.assert_array_equal(found.arrays["labels"][1, 0, :87], draw(1, 87)[1])
    assert not found.arrays["rows"][:, 87:].any()


@pytest.mark.parametrize("shape", ["optimal", "whitened", "isotropic"])
@pytest.mark.parametrize("noise", ["gaussian", "pure"])
def test_noisy_sums_have_the_covariance_of_their_shape(shape, noise):
    asked = summed(noise, shape=shape, draws=4000)
    found = answered(cohort(count=1), asked)
    check_submission(asked, found)
    rows, labels = draw(0, 80)
    np.testing.assert_allclose(found.arrays["gram"][0], rows.T @ rows, rtol=1e-12)
    covariance = asked.mechanism(rows).covariance()
    np.testing.assert_array_equal(found.arrays["covariance"][0], covariance)
    np.testing.assert_allclose(found.arrays["row_sum"][0], rows.sum(axis=0))
    added = found.arrays["moment"][0] - rows.T @ labels
    np.testing.assert_allclose(added.T @ added / 4000, covariance, atol=0.15 * np.trace(covariance))
    assert found.guarantee.delta == (1e-3 if noise == "gaussian" else 0.0)


def test_without_noise_the_sum_is_exact():
    found = answered(cohort(), summed("off"))
    rows, labels = draw(1, 87)
    np.testing.assert_allclose(found.arrays["moment"][1, 0], rows.T @ labels, rtol=1e-12)
    assert found.guarantee is None


def test_a_party_with_more_rows_than_declared_costs_no_other_party():
    few = LabelledRows(FeatureMap(3, ()), *RANGE, 80)
    for question in (single("unbiased", few), summed("gaussian", few)):
        found = answered(cohort(), question)
        assert found.parties.tolist() == [0]
        assert "87 rows" in found.failures[1]


@pytest.mark.parametrize(("asked", "noise"), [(single, "one_bit"), (single, "unbiased"), (summed, "gaussian")])
def test_a_deployed_party_is_charged_and_keeps_features_that_are_not_public(asked, noise):
    question = asked(noise, draws=1, seeded=False)
    with pytest.raises(InputError, match="public-features"):
        cost_of(question, cohort(count=1, seed=None))
    node = cohort(count=1, seed=None, public_features=True, paid=True)
    assert cost_of(question, node).guarantee.epsilon == pytest.approx(question.noise.epsilon)
    assert len(answered(node, question).parties) == 1


@pytest.mark.parametrize("changed", [{"epsilon": 0.999}, {"weights": ()}, {"outputs": (0.0, 1.0)}])
def test_a_party_does_not_answer_by_a_table_that_is_not_private(changed):
    asked = single("unbiased")
    with pytest.raises(InputError, match="table of label noise"):
        answered(cohort(), replace(asked, noise=replace(asked.noise, **changed)))
