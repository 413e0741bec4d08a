"""What variants are called: names of their own, all different, fit for files, and without effect on any result."""

# ruff: noqa: E501
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.fake_protocols import KINDS
from support.json_schemas import accepted
from support.refusals import refused
from support.small_runs import document

from federation.contract.errors import InputError
from scenarios.runs.runner import run
from scenarios.settings.schema import Scenario, resolve
from scenarios.settings.sweep import variants

pytestmark = pytest.mark.usefixtures("protocols")

MINIMAL: dict[str, Any] = {"data": {"source": "digits"}, "parties": {"count": 50}, "privacy": {"epsilon": 1}}
GAUSSIAN = {"kind": "soft_vote", "noise": "gaussian"}


def _lines(*overrides: str, source: Any = MINIMAL) -> list[str]:
    with pytest.raises(InputError) as caught:
        resolve(source, overrides)
    assert caught.value.exit_code == 2
    return str(caught.value).splitlines()


def test_a_minimal_file_is_enough(tmp_path: Path) -> None:
    (tmp_path / "my.csv").write_text("x,target\n1,a\n")
    path = tmp_path / "first try.yaml"
    path.write_text("data: {source: my.csv, label: target}\nparties: {count: 50}\nprivacy: {epsilon: 1}\n")
    scenario = resolve(path)
    assert scenario.name == "first-try"
    assert scenario.data.source == str(tmp_path / "my.csv")
    assert (scenario.data.label, scenario.data.auxiliary, scenario.data.test) == ("target", 0.25, 0.2)
    assert scenario.data.features == ("impute", "scale", {"whiten": "auto"}, "constant", "unit_norm")
    assert (scenario.parties.rows, scenario.parties.partition, scenario.parties.quorum) == (None, "iid", 0.5)
    assert scenario.parties.classifier == {"name": "logistic", "parameters": {"regularisation": 1e-4}}
    beside = ["constant", "pooled", "individual", "noise_free"]
    assert [protocol.kind for protocol in scenario.protocols] == ["soft_vote", *beside]
    assert (scenario.privacy.epsilon, scenario.privacy.delta, scenario.privacy.budget) == ((1.0,), 1e-6, None)
    assert (scenario.trials.splits, scenario.trials.noise, scenario.seed) == (5, 5, 1)
    assert scenario.engine.kind == "inline"
    assert scenario.engine.workers is scenario.engine.parties_per_node is scenario.engine.timeout is None


def test_sources_are_found_beside_the_file_or_where_the_command_runs(tmp_path: Path, monkeypatch) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    for folder in (there, here):
        folder.mkdir()
        (folder / "rows.csv").write_text("")
    monkeypatch.chdir(here)
    path = there / "s.yaml"
    path.write_text(
        "data: {source: [rows.csv, absent.csv, digits], label: y}\nparties: {count: 5}\nprivacy: {epsilon: 1}\n"
    )
    assert resolve(path).data.source == (str(there / "rows.csv"), "absent.csv", "digits")
    assert resolve(path, ["data.source=rows.csv"]).data.source == str(here / "rows.csv")


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("parties.coutn=3", "parties.coutn: unknown key; allowed: count, rows, partition, bags, common_bags, classifier, quorum, colluding, alike, robust, dropout, hostile; did you mean 'count'?"),
        ("trails.splits=3", "trails: unknown key; allowed: name, description, data, parties, protocols, trust, servers, baselines, chosen, privacy, trials, engine, seed; did you mean 'trials'?"),
        ('parties.count="5"', 'parties.count: must be a whole number, got the text "5"'),
        ("parties.count=5.0", "parties.count: must be a whole number, got 5.0"),
        ("parties.count=0", "parties.count: must be at least 1, got 0"),
        ("parties.rows=[1, 0]", "parties.rows.1: must be at least 1, got 0"),
        ("parties.rows=[]", "parties.rows: must not be empty, got []"),
        ("parties.rows=[2, 2]", "parties.rows: must not list a value twice, got [2, 2]"),
        ("parties.quorum=1.5", "parties.quorum: must be at most 1, got 1.5"),
        ("parties.quorum=true", "parties.quorum: must be a number, got true"),
        ("parties.partition=idd", 'parties.partition: must be iid, {dirichlet: ALPHA}, {quantity: SIGMA}, {majority: SHARE}, {proportions: [SHARES, ...]} or {by: COLUMN}, got the text "idd"'),
        ("parties.partition=[{quantity: [1, 2]}]", "parties.partition: in a list of partitions each must have one number"),
        ("parties.classifier=[{logistic: {regularisation: [1, 2]}}]", "parties.classifier: in a list of classifiers each regularisation must be one number"),
        ("parties.bags=0", "parties.bags: must be a whole number from 1, or {by: COLUMN}, got 0"),
        ("parties.common_bags=true", "parties.common_bags: is for several bags, and parties.bags is 1; name a column there, or remove it"),
        ("parties={count: 2, bags: 2, common_bags: true}", "parties.bags: have label counts of their own, which soft_vote does not ask for; remove it"),
        ("parties={count: 2, rows: [12, 10], bags: [2, 3]}", "parties.bags: must divide parties.rows, got 3 bags for 10 rows; change one of them"),
        ("parties={count: 2, bags: {by: x}, partition: {majority: 0.1}}", "parties.bags: must be a number: the majority partition says what is in each bag"),
        ("data.rows_per_person=2", "data.rows_per_person: needs data.person, the column that says whose row each is"),
        ("data.range=5", "data.range: must be a list, got 5"),
        ("data.range=[2, 2]", "data.range: must be two numbers [lo, hi] with lo < hi, got [2, 2]"),
        ("data.targets=500", "data.targets: must be a section with keys from rows, shares, vary, got 500"),
        ("data.targets={shares: [0.5, 0.5]}", "data.targets.shares: must be one or more different shares, got [0.5, 0.5]"),
        ("parties.dropout=1", "parties.dropout: must be less than 1, got 1"),
        ("parties.dropout=[0.2, 0.6]", "parties.dropout: 0.6 leaves 0.4 of the parties to answer on average, but parties.quorum is 0.5; lower one of them"),
        ("parties.hostile={kind: flip}", "parties.hostile.fraction: missing; it has no default"),
        ("parties.count=null", "parties.count: missing; the iid partition needs the number of parties"),
        ("parties.classifier.logistic.regularisation=0", "parties.classifier.logistic.regularisation: must be a finite number greater than 0, got 0"),
        ("parties.classifier.logistic.c=1", "parties.classifier.logistic.c: unknown key; allowed: regularisation"),
        ("parties.classifier=3", "parties.classifier: must be a name or a section such as {logistic: {regularisation: 1.0e-4}}, got 3"),
        ("data.source=digitz", "data.source: must be digits, "),
        ("data.source=x.csv", "data.label: missing; a csv or Parquet file needs the name of the column of the labels"),
        ("data.auxiliary=1.0", "data.auxiliary: must be a count of rows (a whole number from 1) or a fraction between 0 and 1, official, a csv, npz, Parquet or svmlight file, or {by: COLUMN, from: PROBABILITY, to: PROBABILITY} with two different ones strictly between 0 and 1, got 1.0"),
        ("data.test=offical", "data.test: must be official, a count of rows"),
        ("data.features=[whiten]", "data.features.0: must be one of impute, scale, "),
        ("data.classes=[a]", "data.classes: must be two or more distinct class names, got [a]"),
        ("privacy.epsilon=0", "privacy.epsilon: must be greater than 0, got 0"),
        ("privacy.epsilon=.inf", "privacy.epsilon: must be a finite number, got .inf"),
        ("privacy.epsilon=inf", 'privacy.epsilon: must be a number, got the text "inf"'),
        ("trials.noise=1000000000", "trials.noise: must be at most 100000, got 1000000000"),
        ("trials=[1]", "trials: must be a section with keys from splits, noise, periods, window, got [1]"),
        ("engine.kind=rya", "engine.kind: must be one of inline, ray, flower, got the text \"rya\"; did you mean 'ray'?"),
        ("engine.workers=0", "engine.workers: must be auto or a whole number from 1, got 0"),
        ("seed=-1", "seed: must be at least 0, got -1"),
        ("seed=9223372036854775808", "seed: must be less than 9223372036854775808, got 9223372036854775808"),
        ("name=a/b", "name: must consist of letters"),
        ("protocols=[{kind: pooled}, {kind: pooled}]", "protocols: entries 0 and 1 (from 0) both ask for 'pooled'; remove one"),
        (f"protocols=[{{kind: soft_vote, bins: {[16] * 70}}}]", "protocols: entry 0 (from 0) has a variant whose options make a name of 224 letters, allowed are 200, as files are called by it; give it a name of its own with name"),
        ("protocols=[{kind: soft_vote, regularisation: 0.0}]", "protocols.0: regularisation must be a positive number, got 0.0"),
    ],
)  # fmt: skip
def test_one_line_says_what_is_wrong(override: str, line: str) -> None:
    lines = _lines(override)
    assert len(lines) == 1
    assert lines[0].removeprefix("scenario: ").removeprefix(f"--set {override}: ").startswith(line)


def test_all_problems_of_a_file_at_once_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        "seed: x\ndata:\n  sourc: digits\nparties: {count: no}\nprotocols:\n"
        "  - {kind: soft_vote, rounds: x,\n     fast: 3}\n  - {kind: pooled}\n  - 3\nprivacy: {}\n"
    )
    lines = _lines("trials.splits=0", source=path)
    assert [line.removeprefix(f"{path}").split(" must")[0].split(" missing")[0] for line in lines] == [
        ":1: seed:",
        ":2: data.source:",
        ":3: data.sourc: unknown key; allowed: source, label, classes, positive, range, outside, auxiliary, test, features, "
        "person, time, drop, rows_per_person, targets; "
        "did you mean 'source'?",
        ":4: parties.count:",
        ":6: protocols.0.rounds:",
        ":7: protocols.0.fast:",
        ":9: protocols.2:",
        ":10: privacy.epsilon:",
        "--set trials.splits=0: trials.splits:",
    ]
    assert _lines(source={})[0] == "scenario: data: missing; it has no default"


def test_scikit_learn_classifiers_are_checked_by_name_and_parameter() -> None:
    scenario = resolve(MINIMAL, ["parties.classifier.KNeighborsClassifier.n_neighbors=1"])
    assert scenario.parties.classifier == {"name": "KNeighborsClassifier", "parameters": {"n_neighbors": 1}}
    assert "did you mean 'KNeighborsClassifier'?" in _lines("parties.classifier=KNeighborClassifier")[0]
    assert "n_neighbors" in _lines("parties.classifier={KNeighborsClassifier: {n_neighbours: 1}}")[0]
    with pytest.raises(ValidationError):
        scenario.seed = 2  # type: ignore[misc]  # a scenario cannot be changed


def test_the_json_schema_accepts_what_files_may_say() -> None:
    valid = accepted(json.loads(json.dumps(Scenario.model_json_schema())))
    good = ["parties.count=[1, 2]", "data.auxiliary=[1, 0.5]", "protocols=[{kind: soft_vote, rounds: [1, 2]}]"]
    assert valid(resolve(MINIMAL, good).to_plain())
    plain = resolve(MINIMAL).to_plain()
    for wrong in (
        {"parties": {"coutn": 1}},
        {"protocols": [{"kind": "soft_vote", "noise": "x"}]},
        {"seed": "1"},
    ):
        assert not valid(plain | wrong)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["parties.classifier=GaussianNB", "protocols=[{kind: soft_vote}, {kind: parameter_average}]"],
         r"protocols\.1.*parameter_average"),
        (["parties.classifier=[logistic, GaussianNB]", "protocols=[{kind: parameter_average}]"],
         r"protocols\.0.*parameter_average"),
        (["protocols=[{kind: majority_vote, protect: party_and_auxiliary_row}]"],
         r"protocols\.0.*data\.features"),
        (["data.features=[{whiten: 3}]", "protocols=[{kind: parameter_average, average: plain}]"],
         r"protocols\.0.*data\.features.*average.*plain.*1"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("installed_protocols")
def test_protocols_that_cannot_work_in_the_world_are_refused_before_any_party_is_asked(overrides, words):
    refused(words, resolve, "quickstart", ["data.features=[scale, {whiten: auto}, unit_norm]", *overrides])


@pytest.mark.usefixtures("installed_protocols")
def test_protocols_that_can_work_in_every_swept_world_are_not_refused():
    swept = "parties.classifier={logistic: {regularisation: [1e-4, 1e-2]}}"
    assert resolve("quickstart", [swept, "protocols=[{kind: parameter_average}]"])


def test_all_protocols_of_a_scenario_have_one_task(tmp_path):
    path = tmp_path / "mixed.yaml"
    path.write_text(
        "data: {source: digits}\nparties: {count: 9}\nprivacy: {epsilon: 1}\n"
        "protocols:\n  - {kind: ratio}\n  - {kind: pooled}\n  - {kind: soft_vote}\n  - {kind: individual}\n"
    )
    with pytest.raises(InputError) as caught:
        resolve(path)
    first, second = str(caught.value).splitlines()
    assert re.search(rf"{path}.*7.*protocols\.2.*soft_vote.*class_ratio", first)
    assert second.startswith(f"{path}:8: protocols.3: the baseline individual")


@pytest.mark.parametrize(
    ("entries", "beside"),
    [
        ([{"kind": "soft_vote"}], ["constant", "pooled", "individual", "noise_free"]),
        ([{"kind": "pooled"}, {"kind": "soft_vote"}], ["constant", "individual", "noise_free"]),
        ([{"kind": "pooled"}, {"kind": "ratio", "noise": ["auto", "off"]}], ["constant", "noise_free"]),
        ([{"kind": "pooled"}], []),
    ],
)
def test_baselines_stand_beside_protocols_unless_they_are_switched_off(entries, beside) -> None:
    found = resolve({**MINIMAL, "protocols": entries})
    assert [protocol.kind for protocol in found.protocols] == [entry["kind"] for entry in entries] + beside
    assert resolve(found.to_plain()) == found
    assert len(resolve({**MINIMAL, "protocols": entries, "baselines": False}).protocols) == len(entries)


@pytest.mark.parametrize(
    ("parties", "kind"),
    [
        ({"partition": {"dirichlet": 0.1}}, "parameter_average"),
        ({"partition": {"dirichlet": 0.1}, "classifier": {"logistic": {"regularisation": 0.01}}}, "parameter_average"),
        ({"partition": {"dirichlet": 0.1}, "classifier": "GaussianNB"}, "soft_vote"),
        ({"partition": {"dirichlet": 0.5}}, "soft_vote"),
        ({}, "soft_vote"),
    ],
)
def test_without_protocols_parties_who_see_few_classes_average_parameters(parties, kind, monkeypatch) -> None:
    monkeypatch.setitem(KINDS, "parameter_average", KINDS["soft_vote"])
    plain = {**MINIMAL, "parties": {"count": 20, **parties}, "baselines": False}
    assert [protocol.kind for protocol in resolve(plain).protocols] == [kind]
    chosen = resolve({**plain, "protocols": [{"kind": "soft_vote"}]})
    assert [protocol.kind for protocol in chosen.protocols] == ["soft_vote"]


def test_a_source_that_no_file_can_be_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for source, words in (("x" * 5000 + ".csv", None), ("a\0.csv", None), (str(tmp_path / "pipe.csv"), r"pipe\.csv")):
        refused(words, resolve, {**MINIMAL, "data": {"source": source, "label": "y"}})
    assert resolve({**MINIMAL, "data": {"source": "~nobody-of-that-name/a.csv", "label": "y"}}).data.source[0] == "~"


HASHED = ["data.features=[{hash: 6}, {hash: {column: said, bits: 4}}, {project: 3}, unit_norm]", "seed=7"]


def test_a_random_projection_has_the_scenarios_seed_hashing_is_not_fitted_and_others_are_refused():
    data = resolve(MINIMAL, HASHED).data
    projection = {"project": {"seed": 7, "dimensions": 3}}
    assert data.features == ({"hash": 6}, {"hash": {"column": "said", "bits": 4}}, projection, "unit_norm")
    assert data.stages == (projection, "unit_norm")
    own = resolve(MINIMAL, ["data.features=[{project: {dimensions: 3, seed: 5}}, unit_norm]"])
    assert own.data.stages[0] == {"project": {"seed": 5, "dimensions": 3}}
    assert resolve(own.to_plain()).data.features == own.data.features
    for features, words in (
        ("[unit_norm, {hash: 6}]", r"data\.features.*hash"),
        ("[{hash: 6}, {hash: 7}]", None),
        ("[{hash: 17}]", r"1.*16.*NAME.*bits.*1.*16"),
        ("[{hash: {column: said, bits: 4, words: 4}}]", r"words.*1.*3"),
        ("[{hash: {column: said}}]", None),
        ("[{project: 0}]", r"1.*100000"),
        ("[{project: {dimensions: 3, sead: 2}}]", r"NUMBER.*seed.*NUMBER"),
    ):
        refused(words, resolve, MINIMAL, [f"data.features={features}"])


def scenario(*protocols):
    return document(protocols=list(protocols))


@pytest.mark.usefixtures("installed_protocols")
def test_a_name_stands_in_place_of_the_automatic_one_and_is_kept_in_the_file():
    entries = [{"kind": "soft_vote"}, {**GAUSSIAN, "name": "ours"}]
    found = variants(resolve(scenario(*entries)))
    assert [(one.name, one.key) for one in found] == [("soft_vote", "soft_vote"), ("ours", "soft_vote-gaussian")]
    swept = {"kind": "soft_vote", "name": "ours", "noise": ["pure", "gaussian"], "student": False}
    assert [one.name for one in variants(resolve(scenario(swept)))] == ["ours", "ours-gaussian"]
    assert [one.default for one in variants(resolve(scenario({"kind": "soft_vote", "name": "ours"})))] == [True]
    made = resolve(scenario({**GAUSSIAN, "name": "ours"}))
    assert made.to_plain()["protocols"][0]["name"] == "ours"
    assert resolve(made.to_plain()) == made
    assert "name" not in resolve(scenario(GAUSSIAN)).to_plain()["protocols"][0]


SOFT_VOTE = {"kind": "soft_vote"}


@pytest.mark.usefixtures("installed_protocols")
@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([{**GAUSSIAN, "name": "a/b"}], "name: must consist of letters, digits, '-', '_' and '.'"),
        ([{**GAUSSIAN, "name": ".."}], "name: must consist of letters"),
        ([{**GAUSSIAN, "name": ""}], "name: must"),
        ([{**GAUSSIAN, "name": 7}], "name: must"),
        ([{**GAUSSIAN, "name": "default"}], "name: must not be 'default', which is taken; choose another"),
        ([{**GAUSSIAN, "name": "pooled"}], "name: must not be 'pooled', which is taken"),
        ([{**GAUSSIAN, "name": "x" * 201}], "a name of 201 letters, allowed are 200"),
        ([{**GAUSSIAN, "name": "Ours"}, {**SOFT_VOTE, "name": "ours"}], "both call a variant 'ours'; rename either"),
        ([SOFT_VOTE, {**SOFT_VOTE, "name": "again"}], "entries 0 and 1 (from 0) both ask for 'soft_vote'; remove one"),
        ([SOFT_VOTE, {"kind": "pooled", "name": "all"}], "protocols.1.name: unknown key; allowed: kind"),
    ],
)
def test_a_name_that_no_file_or_no_other_may_have_is_refused(entries, said):
    refused(re.escape(said), resolve, scenario(*entries))


@pytest.mark.usefixtures("installed_protocols")
def test_what_variants_are_called_changes_nothing_else(tmp_path, monkeypatch):
    """Also not the noise of the aggregator, which is drawn under the automatic name."""
    monkeypatch.setattr("scenarios.reports.figures.draw", lambda *_: [])
    monkeypatch.setattr("scenarios.reports.figures._drawn", lambda *_: "")
    small = {"trials": {"splits": 1, "noise": 2}, "parties": {"count": 10, "rows": 5}}
    plain, named = (
        run(document(protocols=[{"kind": "soft_vote"}, entry], **small), out=tmp_path / folder, keep_models=True)
        for folder, entry in (("plain", GAUSSIAN), ("named", {**GAUSSIAN, "name": "ours"}))
    )
    renamed = [row | {"variant": row["variant"].replace("soft_vote-gaussian", "ours")} for row in plain.rows]
    assert named.rows == renamed
    assert {path.name for path in (tmp_path / "named/models").iterdir()} == {"soft_vote", "ours"}
    assert named.model("ours", epsilon=30.0) is not None
    page = (tmp_path / "named/report.html").read_text()
    assert ">ours<" in page
    assert "gaussian" not in page.split('id="run-1-guarantees"')[0]
