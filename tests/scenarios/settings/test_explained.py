# ruff: noqa: E501
"""What is written out reads back as the same scenario, and every key is explained."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.settings.guarantees import commented, to_yaml
from scenarios.settings.loader import parse
from scenarios.settings.schema import Scenario, resolve

pytestmark = pytest.mark.usefixtures("protocols")

MINIMAL: dict[str, Any] = {"data": {"source": "digits"}, "parties": {"count": 50}, "privacy": {"epsilon": 1}}


_OVERRIDES = st.lists(
    st.sampled_from([
        "parties.count=[1, 10]", "parties.rows=[3, null]", "parties.partition={by: a b}", "data.label=on",
        "data.auxiliary=[0.1, 100]", "data.test=official", "data.features=[]", "data.classes=[0, yes]",
        "data.features=[{pca: 3}, max_norm]", "data.source=[digits, har]", "privacy.budget={epsilon: 1, delta: 0}",
        "parties.classifier=[logistic, {GaussianNB: {var_smoothing: 1e-9}}]", "privacy.epsilon=[1, 0.5]",
        "protocols=[{kind: soft_vote, rounds: [1, 2], bins: [5]}, {kind: count, size: 1}, {kind: individual}]",
        "engine={kind: ray, workers: 3, ray: {address: auto}, timeout: 1.5}", "seed=0", "trials.noise=7",
        "parties.classifier.logistic.regularisation=[1e-5, 1]", "name='1e5'",
        "parties.partition={dirichlet: [0.1, 1]}", "parties.partition=[iid, {quantity: 1.3}]", "parties.dropout=[0, 0.2]",
        "parties.hostile={fraction: [0, 0.1], kind: [flip, malformed]}", "parties.hostile={fraction: 1}",
        "parties.bags=[1, 3]", "parties.partition={majority: [0, 0.1]}", "data.person=[who, whose]",
        "parties.partition=[{proportions: [[1, 0], [0.5, 0.5]]}, iid]", "data.targets={}",
        "data.targets={rows: [5, null], shares: [0.1, 1], vary: [a, 3]}",
        "parties.classifier={mixture: [logistic, {GaussianNB: {}, weight: 2}]}",
    ]),
    unique_by=lambda setting: setting.partition("=")[0].split(".logistic")[0],
)  # fmt: skip


@settings(derandomize=True, deadline=None, max_examples=60)
@given(_OVERRIDES, st.text(max_size=20))
def test_what_is_written_resolves_to_the_same_scenario(overrides: list[str], description: str) -> None:
    if any(setting.startswith(("parties.bags", "data.targets")) for setting in overrides):  # are for class ratios
        kept = [setting for setting in overrides if not setting.startswith("protocols")]
        overrides = [*kept, "protocols=[{kind: ratio}, {kind: pooled}]"]
    scenario = _with_fakes({**MINIMAL, "description": description}, overrides)
    value, lines = parse(to_yaml(scenario), "x")
    assert _with_fakes(value) == scenario
    assert _with_fakes(scenario.to_plain()) == scenario
    assert ("privacy", "epsilon") in lines


def _with_fakes(source: dict[str, Any], overrides: list[str] | None = None) -> Scenario:
    return resolve(source, overrides or [])


def test_every_key_is_explained_and_no_line_is_wrapped() -> None:
    text = to_yaml(resolve(MINIMAL, ["description=" + "long " * 60]))
    text = re.sub(r" *# Without effect here: .*\n", "", text)
    keys = [line for line in text.splitlines() if not line.lstrip().startswith(("#", "-"))]
    comments = [line for line in text.splitlines() if line.lstrip().startswith("#")]
    sections = [line for line in keys if line.endswith(":") and line != "protocols:"]
    assert len(comments) == 1 + len(keys) - len(sections)


def test_real_labels_are_written_out() -> None:
    scenario = resolve(
        MINIMAL, ["data={source: own.csv, label: y, range: [0, 5], outside: clip}", "protocols=[{kind: slope}]"]
    )
    assert (scenario.data.range, scenario.data.outside) == ((0.0, 5.0), "clip")
    text = to_yaml(scenario)
    assert "  range: [0.0, 5.0]\n" in text
    assert resolve(parse(text, "x")[0]) == scenario


def test_a_scenario_that_says_little_is_written_with_its_own_comments() -> None:
    said = {
        "privacy": {"epsilon": [1, 3]},
        "data": {"source": "own.csv", "label": "y"},
        "protocols": [{"kind": "pooled"}],
    }
    comments = {("data", "label"): ["What is learned.", "Twice."], ("protocols", 0): ["None."], ("seed",): ["Unsaid."]}
    assert commented(said, comments) == (
        "data:\n  source: own.csv\n  # What is learned.\n  # Twice.\n  label: y\n"
        "protocols:\n  # None.\n  - {kind: pooled}\nprivacy:\n  epsilon: [1, 3]\n"
    )
    assert parse(commented(said, comments), "x")[0] == said
