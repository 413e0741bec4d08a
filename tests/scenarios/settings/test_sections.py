"""Sections of a scenario file: what keys of theirs may say, and what does not fit within one."""

import re
from typing import Any

import pytest
from support.refusals import refused

from federation.contract.errors import InputError
from scenarios.settings.guarantees import to_yaml
from scenarios.settings.loader import parse
from scenarios.settings.schema import Scenario, resolve

pytestmark = pytest.mark.usefixtures("protocols")

MINIMAL: dict[str, Any] = {"data": {"source": "digits"}, "parties": {"count": 50}, "privacy": {"epsilon": 1}}
RATIOS = "protocols=[{kind: ratio}]"
SELECTION = {"by": "private selection", "unit": "row"}


def test_positive_classes_are_distinct_names_or_numbers_that_are_names():
    def resolved(positive: Any) -> Scenario:
        return resolve({**MINIMAL, "data": {"source": "digits", "positive": positive}})

    scenario = resolved([1, 3, 5, 7, 9])
    assert scenario.data.positive == ("1", "3", "5", "7", "9")
    assert resolve(parse(to_yaml(scenario), "x")[0]) == scenario
    assert resolved(None).data.positive is None
    described = Scenario.model_json_schema()["$defs"]["Data"]["properties"]["positive"]
    assert described["anyOf"][0]["items"] == {"anyOf": [{"minLength": 1, "type": "string"}, {"type": "integer"}]}
    for positive, words in (([], r"data\.positive"), ([1, "1"], "distinct"), ([True], None)):
        refused(words, resolved, positive)


def test_all_that_clashes_in_a_section_is_told_at_once_and_a_workers_address_is_for_ray():
    with pytest.raises(InputError) as caught:
        resolve(MINIMAL, ["parties={dropout: 0.6, rows: 5, bags: 2}", "data={source: x.csv, rows_per_person: 2}"])
    lines = str(caught.value).splitlines()
    keys = ["parties.count", "parties.bags", "parties.dropout", "data.rows_per_person", "data.label"]
    assert [line.split("}: ")[1].partition(":")[0] for line in lines] == keys
    assert resolve(MINIMAL, ["engine={kind: ray, ray: {address: auto}}"]).engine.kind == "ray"
    refused(r"engine\.ray\.address.*kind.*ray", resolve, MINIMAL, ["engine.ray.address=auto"])


def test_groups_make_the_count_optional_and_take_bags_that_do_not_divide_their_rows() -> None:
    scenario = resolve(MINIMAL, ["parties.count=null", "parties.partition={by: subject}"])
    assert (scenario.parties.count, scenario.parties.partition) == (None, {"by": "subject"})
    scenario = resolve(MINIMAL, ["parties={partition: {by: subject}, rows: 10, bags: 3}", RATIOS])
    assert (scenario.parties.rows, scenario.parties.bags) == (10, 3)


def test_persons_bags_and_targets() -> None:
    data = ["data.person=who", "data.rows_per_person=2", "data.targets={rows: 500, vary: 3}"]
    scenario = resolve(MINIMAL, [*data, "parties.bags={by: ward}", "parties.common_bags=true", RATIOS])
    assert (scenario.data.person, scenario.data.rows_per_person) == ("who", 2)
    assert (scenario.parties.bags, scenario.parties.common_bags) == ({"by": "ward"}, True)
    assert resolve(parse(to_yaml(scenario), "x")[0]) == scenario
    assert scenario.data.targets is not None
    assert (scenario.data.targets.rows, scenario.data.targets.vary) == (500, "3")
    assert scenario.data.targets.shares == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    plain = resolve(MINIMAL)
    assert (plain.data.person, plain.data.rows_per_person, plain.data.targets, plain.parties.bags) == (None, 1, None, 1)


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({}, r"chosen\.private"),
        ({"private": True, "epsilon": 1.0}, r"chosen\.epsilon"),
        (SELECTION, r"chosen\.epsilon"),
        ({**SELECTION, "epsilon": 1.0, "private": False}, r"chosen\.private"),
        ({**SELECTION, "epsilon": 0}, r"chosen\.epsilon"),
    ],
)
def test_what_was_spent_on_a_choice_belongs_to_a_private_selection(chosen, words):
    refused(words, resolve, {**MINIMAL, "chosen": chosen})


def test_a_private_selection_is_a_charge_and_survives_being_written():
    scenario = resolve({**MINIMAL, "chosen": {**SELECTION, "epsilon": 2.5}})
    assert resolve(parse(to_yaml(scenario), "x")[0]) == scenario
    assert (scenario.chosen.charge["unit"], scenario.chosen.charge["adjacency"]) == ("row", "replace")
    assert re.search(r"epsilon.*2\.5.*delta.*0", scenario.chosen.premise)
    assert resolve({**MINIMAL, "chosen": {"private": False}}).chosen.charge is None
