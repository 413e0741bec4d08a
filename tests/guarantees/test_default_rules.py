"""Every protocol of this project says how its defaults were chosen, and on which data with which figures."""

import dataclasses
import re

import pytest

from aggregator.contract.registry import protocol, protocol_names

OWN = [name for name in protocol_names() if protocol(name).__module__.startswith("aggregator.")]


def test_all_own_protocols_are_looked_at() -> None:
    assert {"soft_vote", "class_ratio", "mean_operator", "label_sums", "private_labels"} < set(OWN)


@pytest.mark.parametrize("name", OWN)
def test_every_automatic_option_has_its_rule_and_its_figure_and_no_rule_is_of_other_values(name: str) -> None:
    """A rule that names an option by `option: value` names the default that it has."""
    options = {option.name: option.default for option in dataclasses.fields(protocol(name))}
    rules = protocol(name).why_default
    assert rules
    named = {found for rule in rules for found in re.findall(r"(\w+): (\w+)", rule.default) if found[0] in options}
    assert {(option, "auto") for option, default in options.items() if default == "auto"} <= named
    assert all(value == str(options[option]).lower() for option, value in named)
    for rule in protocol(name).why_default:
        assert re.search(r"\.\d", rule.validated) or "no data" in rule.validated
        assert not rule.validated.endswith(".")
