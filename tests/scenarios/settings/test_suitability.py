"""Protocols against the features and classifiers of their scenario, before any data is loaded."""

import re

import pytest

from federation.contract.errors import InputError
from scenarios.settings.schema import resolve


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


@pytest.mark.usefixtures("protocols")
def test_all_protocols_of_a_scenario_have_one_task(tmp_path):
    path = tmp_path / "mixed.yaml"
    path.write_text(
        "data: {source: digits}\nparties: {count: 9}\nprivacy: {epsilon: 1}\n"
        "protocols:\n  - {kind: ratio}\n  - {kind: pooled}\n  - {kind: soft_vote}\n  - {kind: individual}\n"
    )
    with pytest.raises(InputError) as refused:
        resolve(path)
    first, second = str(refused.value).splitlines()
    assert first == (
        f"{path}:7: protocols.2: soft_vote has the task classification, ratio the task class_ratio; a scenario has "
        "one, remove either"
    )
    assert second.startswith(f"{path}:8: protocols.3: the baseline individual")


@pytest.mark.usefixtures("protocols")
def test_a_baseline_with_instance_labels_suits_class_ratios():
    document = {"data": {"source": "digits"}, "parties": {"count": 9}, "privacy": {"epsilon": 1}}
    kinds = [{"kind": "pooled"}, {"kind": "ratio", "noise": ["auto", "off"]}]
    assert len(resolve({**document, "protocols": kinds}).protocols) == 2
