"""Scenarios whose data, parties or baselines do not suit real labels, refused before any data is loaded.

Which baselines are put beside protocols, and what the one without noise stands for.
How defaults were chosen, as files, records and people are told: in lines that fit, and as plain values.
What does not go together with rows that arrive over time is refused by file and line.
Settings without effect are refused where they stand; where they have one, they are not.
"""

import json
import re
from typing import Any

import pytest
from support.refusals import refused

from aggregator.contract.protocol import Rule
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from federation.contract.errors import InputError
from scenarios.runs.runner import run
from scenarios.settings import rules
from scenarios.settings.guarantees import to_yaml
from scenarios.settings.protocol_options import Protocol
from scenarios.settings.schema import resolve


def document(source="diabetes", kind="slope", **data):
    label = {"label": "y"} if source == "own.csv" else {}
    return described_by({"source": source, **label, **data}, kind)


def described_by(data, *protocols, **more):
    listed = [{"kind": entry} if isinstance(entry, str) else entry for entry in protocols]
    return {"data": data, "parties": {"count": 4}, "protocols": listed, "privacy": {"epsilon": 1}, **more}


@pytest.mark.usefixtures("protocols")
def test_data_and_partitions_that_suit_the_protocols():
    own = document("own.csv", range=[0, 5])
    partitions = [own | {"parties": {"count": 4, "partition": one}} for one in ("iid", {"quantity": 1.0}, {"by": "x"})]
    for given in (
        *partitions,
        document(),
        document("own.csv", range=[0, 5], outside="clip"),
        document(range=[30, 300], outside="clip"),
        document("criteo_sscl", range=[0, 400]),
        document(["diabetes", "housing"]),
        document("own.csv", "pooled", range=[0, 5]),
        document("housing", "pooled"),
        document("digits", "pooled"),
        document("own.csv", "soft_vote"),
    ):
        found = resolve(given)
        assert found.data.outside in ("refuse", "clip")
        assert found.parties.partition == given["parties"].get("partition", "iid")


@pytest.mark.usefixtures("protocols")
@pytest.mark.parametrize(
    ("given", "line"),
    [
        (document("own.csv"), "data.range: missing; real labels need a declared public range [lo, hi]: one that is"),
        (document("criteo_sscl"), "data.range: missing; real labels need a declared public range"),
        (document("digits"), "data.source: 'digits' has classes, but slope needs real labels; choose one of "),
        (document("diabetes", "soft_vote"), "data.source: 'diabetes' has real labels, but soft_vote needs classes; "),
        (document(["diabetes", "digits"], "pooled"), "data.source: 'diabetes' has real labels, but other data here h"),
        (document("own.csv", "soft_vote", range=[0, 1]), "data.range: is for real labels, which soft_vote cannot use"),
        (document("digits", "pooled", range=[0, 1]), "data.range: is for real labels, which these data sets cannot u"),
        (document("own.csv", "soft_vote", outside="clip"), "data.outside: is for real labels outside data.range"),
        (document(outside="clip"), "data.outside: needs data.range: a documented range holds all labels"),
        (document(classes=["a", "b"]), "data.classes: names classes, but the labels are real numbers; remove it"),
    ],
)
def test_one_line_says_what_does_not_suit(given, line):
    with pytest.raises(InputError) as caught:
        resolve(given)
    [found] = str(caught.value).splitlines()
    assert found.removeprefix("scenario: ").startswith(line)


@pytest.mark.usefixtures("protocols")
@pytest.mark.parametrize("partition", ["{dirichlet: 1}", "{majority: 0.1}", "{proportions: [[1, 0]]}"])
def test_partitions_by_class_are_refused_where_they_stand(tmp_path, partition):
    path = tmp_path / "s.yaml"
    path.write_text(
        "data: {source: diabetes}\nparties:\n  count: 4\n"
        f"  partition: {partition}\n"
        "protocols:\n  - {kind: slope}\n  - {kind: pooled}\n  - {kind: individual}\n  - {kind: constant}\n"
        "privacy: {epsilon: 1}\n"
    )
    kind = re.match(r"{(\w+)", partition)[1]
    with pytest.raises(InputError) as caught:
        resolve(path)
    first, second = str(caught.value).splitlines()
    assert re.search(rf"{path}.*4.*parties\.partition.*{kind}", first)
    assert second.startswith(f"{path}:8: protocols.2: the baseline individual trains classifiers, but the labels are")


@pytest.mark.usefixtures("protocols")
@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"parties": {"partition": {"by": "y"}}}, "parties.partition"),
        ({"parties": {"count": 2, "bags": {"by": "y"}}}, "parties.bags"),
        ({"data": {"source": "own.csv", "label": "y", "person": "y"}}, r"data\.person"),
    ],
)
def test_who_is_where_must_not_be_the_label_where_labels_are_protected(changes, key):
    refused(f"{key}", resolve, document("own.csv", "ratio") | changes)
    if key == "parties.partition":
        resolve(document("own.csv", "soft_vote") | changes)


@pytest.mark.parametrize("kind", ["mean_operator", "error_marginals"])
def test_protocols_that_protect_single_rows_of_two_classes(kind):
    for data, parties in (
        ({"person": "who"}, {}),
        ({}, {"partition": {"by": "y"}, "count": None}),
        ({}, {"bags": {"by": "y"}}),
    ):
        given = described_by({"source": "own.csv", "label": "y", **data}, kind, parties={"count": 2, **parties})
        refused(None, resolve, given)


def test_more_than_two_classes_are_refused_before_anything_is_run(tmp_path):
    with pytest.raises(InputError, match=r"data\.positive.*mean_operator.*digits.*10"):
        run(described_by({"source": ["breast_cancer", "digits"]}, "mean_operator"), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def parsed(*entries: dict[str, Any]) -> list[Protocol]:
    return [Protocol.parse(entry) for entry in entries]


def test_those_of_the_task_that_are_not_listed() -> None:
    for kinds, alone, beside in (
        (["soft_vote"], False, ["constant", "pooled", "individual", "noise_free"]),
        (["soft_vote"], True, ["constant", "pooled", "noise_free"]),
        (["pooled", "soft_vote"], False, ["constant", "individual", "noise_free"]),
        (["noise_free", "soft_vote"], False, ["constant", "pooled", "individual"]),
        (["class_ratio"], False, ["constant", "pooled", "noise_free"]),
        (["label_sums"], False, ["constant", "pooled", "noise_free"]),
        (["pooled"], False, []),
        (["unknown", None], False, []),
    ):
        assert rules.baselines_beside([{"kind": kind} for kind in kinds], alone) == beside


@pytest.mark.parametrize(
    ("entries", "stands_for", "options"),
    [
        ([{"kind": "soft_vote"}], "soft_vote", {}),
        ([{"kind": "pooled"}, {"kind": "soft_vote", "noise": ["gaussian", "pure"]}], "soft_vote", {}),
        ([{"kind": "soft_vote", "noise": ["off", "gaussian"]}], "soft_vote-gaussian", {}),
        ([{"kind": "soft_vote", "submit": "votes"}, {"kind": "soft_vote"}], "soft_vote", {"submit": "statistic"}),
        ([{"kind": "soft_vote", "submit": "votes"}], "soft_vote-submit=votes", {"submit": "votes"}),
        ([{"kind": "mean_operator", "trust": "secure"}], "mean_operator-secure", {"trust": "secure"}),
    ],
)
def test_it_is_the_default_or_the_first_that_adds_noise_with_all_its_options(entries, stands_for, options) -> None:
    name, planned = rules.noise_free(parsed(*entries)) or ("", None)
    assert name == stands_for
    assert planned is not None
    assert (planned.name, planned.reference, planned.options["noise"]) == ("noise_free", True, "off")
    assert options.items() <= planned.options.items()


def test_where_nothing_adds_noise_it_stands_for_nothing_and_is_refused() -> None:
    for entry in ({"kind": "pooled"}, {"kind": "soft_vote", "noise": "off"}):
        assert rules.noise_free(parsed(entry)) is None
        listed = [entry, {"kind": "noise_free"}]
        assert [position for position, _ in rules.unfounded(parsed(*listed))] == [1]
        refused(None, resolve, described_by({"source": "digits"}, *listed, baselines=False))


def test_protocols_without_a_rule_say_nothing_no_word_of_a_long_one_is_lost_and_runs_record_each_once(monkeypatch):
    monkeypatch.setattr(SoftVote, "why_default", ())
    for kind in ("pooled", "soft_vote"):
        assert (rules.why_default(kind), rules.in_short(kind), rules.recorded([kind])) == ((), [], [])
    assert "How defaults were chosen:" not in rules.described("soft_vote")[1]
    refused("soft_vote", rules.described, "soft_votes")
    long = Rule("noise: " + "pure " * 40, "rule " * 60, "validated " * 50)
    monkeypatch.setattr(SoftVote, "why_default", (long,))
    short, full = rules.in_short("soft_vote"), rules.described("soft_vote")[1]
    chosen = full[full.index("How defaults were chosen:") :]
    assert max(map(len, short)) <= 110 < len(long.rule)
    for word, lines, times in (("pure", short, 40), ("rule", chosen, 60), ("validated", chosen, 50)):
        assert " ".join(lines).split().count(word) == times
    kinds = ["label_sums", "private_labels", "pooled", "label_sums"]
    found = rules.recorded(kinds)
    assert json.loads(json.dumps(found)) == found
    assert [rule["protocol"] for rule in found] == sorted(rule["protocol"] for rule in found)
    assert [rule["default"] for rule in found if rule["protocol"] == "private_labels"] == ["noise: auto"]
    assert len(found) == len(rules.why_default("label_sums")) + len(rules.why_default("private_labels"))


STREAM = """\
data:
  source: mine.csv
  label: class
  time: day
  auxiliary: 0.2
  test: next
parties:
  count: 10
privacy:
  epsilon: 1
trials:
  periods: 4
  window: 2
"""
PERIODS = "trials.periods: must be a number of periods"


@pytest.fixture
def written(tmp_path):
    def write(*changes):
        text = STREAM
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "stream.yaml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("periods", ["{every: week}", "{every: 7}", "[2023-01, 2023-W09, 2023-04-01]", "[0, 3.5, 9]"])
def test_a_stream_is_read_and_written(written, periods):
    scenario = resolve(written(("  test: next\n", ""), ("periods: 4", f"periods: {periods}")))
    assert (scenario.data.time, scenario.data.test, scenario.trials.window) == ("day", "next", 2)
    assert resolve(scenario.to_plain()) == scenario
    assert resolve(written(("window: 2", "window: all"))).trials.window == "all"


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("next", "0.2", 6, "data.test: must be next with data.time, as a release is tested on"),
        ("0.2", "official", 5, "data.auxiliary: must be a count or a fraction of each period's rows, or a file"),
        ("0.2", "{by: x, from: 0.1, to: 0.9}", 5, "data.auxiliary: must be a count or a fraction of each period's"),
        ("  count: 10", "  count: 10\n  partition: {by: ward}", 8, "parties.count: with {by: COLUMN} and data.time"),
        ("  periods: 4\n", "", 11, "trials.periods: missing; data.time needs periods"),
        ("  time: day\n", "", 5, "data.test: next is the period that follows, and needs data.time"),
        ("  time: day\n", "", 11, "trials.periods: needs data.time"),
        ("  time: day\n", "", 12, "trials.window: is for rows that arrive over time"),
        ("time: day", "time: class", 4, "data.time: names the column of the labels"),
        ("time: day", "time: day\n  drop: [day]", 5, "data.drop: names 'day', which is the column of the labels, per"),
        ("periods: 4", "periods: 1", 12, f"{PERIODS} of equal length from 2 to 1000"),
        ("periods: 4", "periods: 2000", 12, PERIODS),
        ("periods: 4", "periods: {every: fortnight}", 12, PERIODS),
        ("periods: 4", "periods: {every: 0}", 12, PERIODS),
        ("periods: 4", "periods: [2023-02, 2023-01]", 12, PERIODS),
        ("periods: 4", "periods: [1, 2023-01-05]", 12, PERIODS),
        ("window: 2", "window: 0", 13, "trials.window: must be all or a whole number from 1 to 1000"),
    ],
)
def test_what_is_unsuited_is_refused_by_its_line(written, old, new, line, said):
    refused(rf"stream\.yaml.*{line}.*{said}", resolve, written((old, new)))


SETTINGS = {
    "data.targets": ["data.targets={}"],
    "data.rows_per_person": ["data.person=who", "data.rows_per_person=[1, 2]"],
    "parties.bags": ["parties.bags=[1, 2]"],
}


def listing(source, *protocols):
    return described_by({"source": source}, *protocols, parties={"count": 2}, baselines=False)


@pytest.mark.parametrize(
    ("source", "protocols", "ratios"),
    [
        ("digits", ["class_ratio"], True),
        ("digits", ["pooled", "class_ratio"], True),
        ("digits", ["soft_vote"], False),
        ("digits", ["pooled"], False),
        ("breast_cancer", ["mean_operator", "constant"], False),
        ("breast_cancer", ["error_marginals", "mean_operator", "soft_vote"], False),
        ("diabetes", ["label_sums", "pooled"], False),
        ("diabetes", [{"kind": "weighted_lba", "size": 3, "bags": 7}], False),
    ],
)
def test_what_is_for_class_ratios_is_refused_elsewhere(source, protocols, ratios):
    found = set()
    for key, settings in SETTINGS.items():
        try:
            resolve(listing(source, *protocols), settings)
        except InputError as error:
            found |= {key for line in str(error).splitlines() if f" {key}: " in line}
    assert found == (set() if ratios else SETTINGS.keys())


def test_servers_make_a_difference_to_secure_sums_alone_and_are_refused_elsewhere():
    for trust in ("aggregator", "secure", "none"):
        asked = listing("breast_cancer", "mean_operator") | {"trust": trust}
        assert resolve(asked).servers == "one"
        if trust == "secure":
            assert resolve({**asked, "servers": "two"}).servers == "two"
        else:
            refused(r"servers.*two", resolve, {**asked, "servers": "two"})
    asked = [{"kind": "mean_operator", "trust": trust} for trust in ("none", "secure")]
    for protocols, without_effect in ((asked, False), (asked[:1], True)):
        known = resolve(listing("breast_cancer", *protocols))
        told = [path for path, _ in rules.idle(known.data, known.protocols, known.privacy)]
        assert (("servers",) in told) is without_effect


def test_it_is_refused_at_its_line(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        "data:\n  source: breast_cancer\n  targets: {rows: 10}\nparties:\n  count: 4\n  bags: {by: ward}\n"
        "protocols: [{kind: error_marginals}, {kind: mean_operator}]\nprivacy: {epsilon: 1}\n"
    )
    with pytest.raises(InputError) as caught:
        resolve(path)
    assert str(caught.value).splitlines() == [
        f"{path}:3: data.targets: are sets to estimate class ratios of, which error_marginals does not do; remove it",
        f"{path}:6: parties.bags: have label counts of their own, which error_marginals does not ask for; remove it",
    ]


def test_the_defaults_may_be_written_out_and_what_has_no_effect_is_told_at_its_key():
    given = listing("breast_cancer", "mean_operator")
    assert resolve(given, ["data.targets=null", "data.rows_per_person=1", "parties.bags=1"]) == resolve(given)
    lines = to_yaml(resolve(given)).splitlines()
    told, servers = [number for number, line in enumerate(lines) if "Without effect" in line]
    assert lines[servers + 1] == "servers: one"
    assert lines[told] == "  # Without effect here: no protocol or baseline trains it."
    assert lines[told + 1].startswith("  classifier: ")


CLASSIFIER, DELTA = "parties.classifier", "privacy.delta"


@pytest.mark.parametrize(
    ("source", "protocols", "without_effect"),
    [
        ("digits", [{"kind": "soft_vote", "noise": ["pure", "gaussian"]}], set()),
        ("digits", ["soft_vote", {"kind": "majority_vote", "noise": "off"}], {DELTA}),
        ("digits", ["class_ratio", "pooled"], set()),
        ("digits", ["class_ratio"], {CLASSIFIER}),
        ("digits", [{"kind": "class_ratio", "estimator": "mmd", "noise": "published_dirichlet"}], {CLASSIFIER}),
        ("breast_cancer", ["mean_operator", "constant"], {CLASSIFIER}),
        ("breast_cancer", [{"kind": "mean_operator", "noise": ["pure", "off"]}, "individual"], {DELTA}),
        ("breast_cancer", [{"kind": "error_marginals", "noise": "pure"}, "mean_operator"], {CLASSIFIER}),
        ("diabetes", ["label_sums", "pooled"], {CLASSIFIER}),
        ("diabetes", ["pooled"], {CLASSIFIER, DELTA, "privacy.epsilon", "trials.noise"}),
        ("digits", [{"kind": "soft_vote", "noise": "off"}], {DELTA, "privacy.epsilon", "trials.noise"}),
    ],
)
def test_what_makes_no_difference_beside_the_protocols_is_told(source, protocols, without_effect):
    scenario = resolve(listing(source, *protocols), ["parties.classifier=logistic"])
    found = {".".join(path) for path, _ in rules.idle(scenario.data, scenario.protocols, scenario.privacy)}
    assert found == {*without_effect, "servers"}
    assert to_yaml(scenario).count("# Without effect here: no ") == len(found)
