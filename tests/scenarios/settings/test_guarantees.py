"""What a scenario promises in words, by what it says alone: no data is read, and no party is asked.

What is written out reads back as the same scenario, and every key is explained.
"""

# ruff: noqa: E501
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from scenarios.settings.guarantees import _told, commented, promises, to_yaml
from scenarios.settings.loader import parse
from scenarios.settings.schema import resolve

LEVELS = [(1.0, 0.0), (2.0, 1e-6), (3.0, 0.0)]  # epsilon and delta
REAL = {"source": "diabetes"}


def promised(*protocols, data=None, parties=None, privacy=None, **top):
    """By variant what is promised and what is sent."""
    document = {
        "data": {"source": "digits", "auxiliary": 100, **(data or {})},
        "parties": {"count": 4, **(parties or {})},
        "protocols": [*protocols],
        "privacy": {"epsilon": [0.5, 2], "delta": 1e-5, **(privacy or {})},
    }
    found = promises(resolve(document | top))
    assert all(set(one) == {"variant", "promise", "sends", "roles"} for one in found)
    return {one["variant"]: (one["promise"], one["sends"]) for one in found}


def test_every_variant_is_told_at_all_epsilons_and_baselines_are_left_out():
    found = promised({"kind": "soft_vote", "noise": ["pure", "gaussian"]}, {"kind": "pooled"}, {"kind": "individual"})
    aggregator = "for one party (replace); noise is added by the aggregator (central DP)"
    share = "a party sends a summary of what its classifier says of the public rows without noise"
    assert found == {
        "soft_vote": (f"epsilon 0.5 or 2, delta 0 {aggregator}", share),
        "soft_vote-gaussian": (f"epsilon 0.5 or 2, delta 1e-05 {aggregator}", share),
    }


def test_epsilons_stand_together_and_one_that_a_variant_cannot_work_with_is_refused_wherever_it_stands():
    with pytest.raises(InputError, match=r"0\.01.*12.*20"):
        promised({"kind": "private_labels", "noise": "unbiased"}, data=REAL, privacy={"epsilon": [1, 20]})
    [(promise, _)] = promised({"kind": "private_labels"}, data=REAL, privacy={"epsilon": [20, 1]}).values()
    assert promise == "epsilon 12 or 1, delta 0 for one label (replace); noise is added by each party (local DP)"
    [(promise, _)] = promised({"kind": "private_labels"}, data=REAL, privacy={"epsilon": [1, 20, 30]}).values()
    assert promise.startswith("epsilon 1 or 12, delta 0 for one label (replace); noise")  # kept twice, told once
    bags = {"kind": "class_ratio", "noise": "published_dirichlet"}
    [(promise, _)] = promised(bags, parties={"bags": 2}, privacy={"epsilon": [0.05, 1]}).values()
    assert promise.count("NON-PRIVATE") == 1


def test_nothing_is_promised_without_noise_and_parties_that_make_it_send_it():
    [(promise, sends)] = promised({"kind": "soft_vote", "noise": "off"}).values()
    assert promise == "NON-PRIVATE (noise is off); noise is added by nobody (no DP)"
    assert sends.endswith("without noise")
    two = {"source": "breast_cancer", "auxiliary": 60}
    [(promise, sends)] = promised({"kind": "mean_operator"}, data=two).values()
    assert promise == "epsilon 0.5 or 2, delta 1e-05 for one label (replace); noise is added by each party (local DP)"
    assert " with noise and " in sends
    [(promise, _)] = promised({"kind": "mean_operator", "trust": "secure"}, data=two).values()
    assert promise.endswith("(distributed DP with secure aggregation)")


def test_numbers_that_only_data_could_tell_are_left_out_and_of_a_sweep_the_first_world_is_told():
    vote = {"kind": "soft_vote", "submit": "votes"}
    [(_, counted)] = promised(vote).values()
    [(_, unknown)] = promised(vote, data={"auxiliary": 0.25}).values()
    assert counted == "a party sends one vote on every public row (100 numbers) without noise"
    assert unknown == "a party sends one vote on every public row without noise"
    assert promised(vote, data={"auxiliary": [50, 100]}) == promised(vote, data={"auxiliary": 50})
    ratio, bags = {"kind": "class_ratio", "noise": "pure"}, {"bags": 2}
    [(_, unknown)] = promised(ratio, parties=bags).values()
    [(_, two)] = promised(ratio, data={"positive": ["1", "3"]}, parties=bags).values()
    assert "(4 numbers)" not in unknown
    assert "(4 numbers) with noise" in two  # two counts of each bag


def test_counts_are_added_of_common_bags_only_and_all_else_is_told_apart():
    ratio, bags = {"kind": "class_ratio", "trust": "secure"}, {"bags": 3, "common_bags": True}
    [(promise, sends)] = promised(ratio, parties=bags).values()
    assert promise.endswith("(distributed DP with secure aggregation)")
    assert "label counts of every bag with noise and how many rows it has of each bag (3 numbers) without" in sends
    assert "the rows of its bags without labels without noise" in sends
    embedded = {**ratio, "submit": "embedding", "estimator": "whitened", "dimensions": 10}
    [(_, sends)] = promised(embedded, parties=bags).values()
    assert "sums of its rows in all bags (30 numbers) without noise" in sends
    [(promise, sends)] = promised({**embedded, "protect": "row", "noise": "gaussian"}, parties=bags).values()
    assert "for one row (replace)" in promise
    assert sends.endswith("of every bag with noise and sums of its rows in all bags (30 numbers) with noise")
    with pytest.raises(InputError, match=r"parties\.common_bags.*trust.*none"):
        promised(ratio, parties={"bags": 3})


@pytest.mark.parametrize(("rows", "unit"), [(None, "label"), (3, "person")])
def test_whose_labels_are_protected_follows_from_the_column_of_persons(rows, unit):
    data = {"source": "own.csv", "label": "y"} | ({} if rows is None else {"person": "who", "rows_per_person": rows})
    [(promise, _)] = promised({"kind": "class_ratio", "noise": "pure"}, data=data).values()
    assert f"for one {unit} (replace)" in promise


def test_guarantees_of_another_kind_stand_apart():
    spends = [Guarantee(epsilon, delta, Unit.ROW, Adjacency.REPLACE, "noise") for epsilon, delta in LEVELS]
    assert _told([*spends, NoGuarantee("too loud"), NoGuarantee("louder")]) == (
        "epsilon 1 or 3, delta 0 for one row (replace); epsilon 2, delta 1e-06 for one row (replace); "
        "NON-PRIVATE (too loud)"
    )


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


@pytest.mark.usefixtures("protocols")
@settings(derandomize=True, max_examples=examples(12))
@given(_OVERRIDES, st.text(max_size=20))
def test_what_is_written_resolves_to_the_same_scenario(overrides: list[str], description: str) -> None:
    if any(setting.startswith(("parties.bags", "data.targets")) for setting in overrides):  # are for class ratios
        kept = [setting for setting in overrides if not setting.startswith("protocols")]
        overrides = [*kept, "protocols=[{kind: ratio}, {kind: pooled}]"]
    scenario = resolve({**MINIMAL, "description": description}, overrides)
    value, lines = parse(to_yaml(scenario), "x")
    assert resolve(value) == scenario
    assert resolve(scenario.to_plain()) == scenario
    assert ("privacy", "epsilon") in lines


@pytest.mark.usefixtures("protocols")
def test_every_key_is_explained_and_no_line_is_wrapped() -> None:
    text = to_yaml(resolve(MINIMAL, ["description=" + "long " * 60]))
    text = re.sub(r" *# Without effect here: .*\n", "", text)
    keys = [line for line in text.splitlines() if not line.lstrip().startswith(("#", "-"))]
    comments = [line for line in text.splitlines() if line.lstrip().startswith("#")]
    sections = [line for line in keys if line.endswith(":") and line != "protocols:"]
    assert len(comments) == 1 + len(keys) - len(sections)


@pytest.mark.usefixtures("protocols")
def test_real_labels_are_written_out() -> None:
    scenario = resolve(
        MINIMAL, ["data={source: own.csv, label: y, range: [0, 5], outside: clip}", "protocols=[{kind: slope}]"]
    )
    assert (scenario.data.range, scenario.data.outside) == ((0.0, 5.0), "clip")
    text = to_yaml(scenario)
    assert "  range: [0.0, 5.0]\n" in text
    assert resolve(parse(text, "x")[0]) == scenario


@pytest.mark.usefixtures("protocols")
def test_a_scenario_that_says_little_is_written_with_its_own_comments() -> None:
    said = {"privacy": {"epsilon": [1, 3]}, "data": {"source": "own.csv", "label": "y"}}
    said |= {"protocols": [{"kind": "pooled"}]}
    comments = {("data", "label"): ["What is learned.", "Twice."], ("protocols", 0): ["None."], ("seed",): ["Unsaid."]}
    assert commented(said, comments) == (
        "data:\n  source: own.csv\n  # What is learned.\n  # Twice.\n  label: y\n"
        "protocols:\n  # None.\n  - {kind: pooled}\nprivacy:\n  epsilon: [1, 3]\n"
    )
    assert parse(commented(said, comments), "x")[0] == said
