"""Protocols of other packages; a broken one fails where it is used, and nowhere else."""

import json

import pytest
from support.packages import CAUSE

from aggregator.contract.registry import protocol, protocol_names
from federation.contract.errors import InputError
from scenarios.commands.inspect import list_choices, schema
from scenarios.settings.schema import resolve

DOCUMENT = {
    "data": {"source": "breast_cancer", "auxiliary": 60},
    "parties": {"count": 3},
    "privacy": {"epsilon": 1},
    "trials": {"splits": 1, "noise": 1},
}


def test_what_cannot_be_imported_is_listed_and_named_when_used(broken_package):
    assert {"broken", "soft_vote"} <= set(protocol_names())
    with pytest.raises(InputError, match="the entry point 'broken' of " + CAUSE.format("protocols", "Broken")):
        protocol("broken")
    assert protocol("soft_vote").__name__ == "SoftVote"


def test_it_is_listed_with_the_cause_and_left_out_of_the_schema(broken_package, capsys):
    list_choices()
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  broken ")]
    assert "cannot be used: the entry point 'broken' of the package 'Broken-Pack'" in line
    schema()
    declared = capsys.readouterr().out
    assert '"const": "mean_operator"' in declared
    assert '"const": "broken"' not in declared


@pytest.mark.parametrize("position", [0, 1])
def test_a_scenario_that_uses_it_is_refused_at_its_line(broken_package, position):
    path = broken_package / "bad.yaml"
    entries = ["- kind: mean_operator", "- kind: broken"]
    head = [f"{section}: {json.dumps(given)}" for section, given in DOCUMENT.items()]
    path.write_text("\n".join([*head, "protocols:", *(entries if position else entries[::-1])]))
    with pytest.raises(InputError) as refused:
        resolve(path)
    [line] = str(refused.value).splitlines()
    assert line.startswith(f"{path}:{6 + position}: protocols.{position}.kind: the entry point 'broken' of the package")
