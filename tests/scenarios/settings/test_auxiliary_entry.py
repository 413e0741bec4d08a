"""What `data.auxiliary` may say, how it is shown, and that what it says is swept and kept."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from scenarios.settings.auxiliary_entry import Auxiliary, label, parse
from scenarios.settings.explained import to_yaml
from scenarios.settings.schema import Scenario, resolve
from scenarios.settings.sweep import expand
from scenarios.settings.yaml_rules import parse as parse_yaml

ALONG = {"by": "LB", "from": 0.1, "to": 0.9}
DOCUMENT = {"data": {"source": "digits"}, "parties": {"count": 5}, "privacy": {"epsilon": 1}}


@pytest.mark.parametrize(
    ("entry", "shown"), [(100, 100), (0.5, 0.5), ("official", "official"), (ALONG, "by=LB_0.1_0.9")]
)
def test_entries_are_kept_and_shown_in_one_cell(entry, shown):
    assert parse(entry) == entry
    assert label(entry) == shown
    scenario = resolve({**DOCUMENT, "data": {"source": "digits", "auxiliary": entry}})
    assert scenario.data.auxiliary == entry
    assert resolve(scenario.to_plain()) == scenario
    assert parse_yaml(to_yaml(scenario), "s.yaml")[0]["data"]["auxiliary"] == entry


def test_entries_are_swept():
    listed = [0.5, "official", ALONG]
    points = expand(resolve({**DOCUMENT, "data": {"source": "digits", "auxiliary": listed}}))
    assert [point.swept["data.auxiliary"] for point in points] == [0.5, "official", "by=LB_0.1_0.9"]
    assert [point.scenario.data.auxiliary for point in points] == listed


@pytest.mark.parametrize("entry", [0, 1.0, -3, True, "all", None, [1], {**ALONG, "to": 1.5}, {"by": "LB"}])
def test_everything_else_is_refused(entry):
    with pytest.raises(ValidationError, match=r"official, or \{by: COLUMN, from: PROBABILITY, to: PROB"):
        TypeAdapter(Auxiliary).validate_python(entry)


def test_editors_know_the_entries():
    known = Scenario.model_json_schema()["$defs"]["Data"]["properties"]["auxiliary"]["anyOf"][0]["anyOf"]
    assert {"const": "official"} in known
    assert set(known[-1]["required"]) == set(ALONG)
