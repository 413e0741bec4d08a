"""Protocols against the features and classifiers of their scenario, before any data is loaded."""

import re

import pytest

from federation.errors import InputError
from scenarios.schema import resolve


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["parties.classifier=GaussianNB", "protocols=[{kind: soft_vote}, {kind: parameter_average}]"],
         "protocols.1: parameter_average needs every party to train logistic regression"),
        (["parties.classifier=[logistic, GaussianNB]", "protocols=[{kind: parameter_average}]"],
         "protocols.0: parameter_average needs every party to train logistic regression"),
        (["protocols=[{kind: majority_vote, protect: party_and_auxiliary_row}]"],
         "protocols.0: data.features: scale, whiten would be fitted on the auxiliary rows"),
        (["data.features=[{whiten: 3}]", "protocols=[{kind: parameter_average, average: plain}]"],
         "protocols.0: data.features: average: plain needs rows of norm at most 1"),
    ],
)  # fmt: skip
def test_protocols_that_cannot_work_in_the_world_are_refused_before_any_party_is_asked(overrides, words):
    with pytest.raises(InputError, match=re.escape(words)):
        resolve("quickstart", ["data.features=[scale, {whiten: auto}, unit_norm]", *overrides])


def test_protocols_that_can_work_in_every_swept_world_are_not_refused():
    overrides = [
        "parties.classifier={logistic: {regularisation: [1e-4, 1e-2]}}",
        "protocols=[{kind: parameter_average}]",
    ]
    assert resolve("quickstart", overrides).protocols[0].kind == "parameter_average"
