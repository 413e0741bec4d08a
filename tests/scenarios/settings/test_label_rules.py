"""Scenarios whose data, parties or baselines do not suit real labels, refused before any data is loaded."""

import re

import pytest

from federation.contract.errors import InputError
from scenarios.runs.runner import run
from scenarios.settings.schema import resolve

pytestmark = pytest.mark.usefixtures("protocols")


def document(source="diabetes", kind="slope", **data):
    label = {"label": "y"} if source == "own.csv" else {}
    return {
        "data": {"source": source, **label, **data},
        "parties": {"count": 4},
        "protocols": [{"kind": kind}],
        "privacy": {"epsilon": 1},
    }


@pytest.mark.parametrize(
    "given",
    [
        document(),
        document("own.csv", range=[0, 5]),
        document("own.csv", range=[0, 5], outside="clip"),
        document(range=[30, 300], outside="clip"),
        document("criteo_sscl", range=[0, 400]),
        document(["diabetes", "housing"]),
        document("own.csv", "pooled", range=[0, 5]),
        document("housing", "pooled"),
        document("digits", "pooled"),
        document("own.csv", "soft_vote"),
    ],
)
def test_data_that_suits_the_protocols(given):
    assert resolve(given).data.outside in ("refuse", "clip")


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (document("own.csv"), "data.range: missing; real labels need a declared public range [lo, hi]: one that is"),
        (document("criteo_sscl"), "data.range: missing; real labels need a declared public range"),
        (
            document("digits"),
            "data.source: 'digits' has classes, but slope needs real labels; choose one of diabetes, ",
        ),
        (document("diabetes", "soft_vote"), "data.source: 'diabetes' has real labels, but soft_vote needs classes; "),
        (
            document("diabetes", "ratio"),
            "data.source: 'diabetes' has real labels, but ratio needs classes; choose one ",
        ),
        (document(["diabetes", "digits"]), "data.source: 'digits' has classes, but slope needs real labels"),
        (
            document(["diabetes", "digits"], "pooled"),
            "data.source: 'diabetes' has real labels, but other data here has ",
        ),
        (document("own.csv", "soft_vote", range=[0, 1]), "data.range: is for real labels, which soft_vote cannot use"),
        (
            document("digits", "pooled", range=[0, 1]),
            "data.range: is for real labels, which these data sets cannot use",
        ),
        (document("own.csv", "soft_vote", outside="clip"), "data.outside: is for real labels outside data.range"),
        (document(outside="clip"), "data.outside: needs data.range: a documented range holds all labels"),
        (document(classes=["a", "b"]), "data.classes: names classes, but the labels are real numbers; remove it"),
    ],
)
def test_one_line_says_what_does_not_suit(given, line):
    with pytest.raises(InputError) as refused:
        resolve(given)
    [found] = str(refused.value).splitlines()
    assert found.removeprefix("scenario: ").startswith(line)


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
    with pytest.raises(InputError) as refused:
        resolve(path)
    first, second = str(refused.value).splitlines()
    assert first == (
        f"{path}:4: parties.partition: {kind} deals rows by class, but the labels are real numbers; use iid, quantity "
        "or by"
    )
    assert second.startswith(f"{path}:8: protocols.2: the baseline individual trains classifiers, but the labels are")


@pytest.mark.parametrize("partition", ["iid", {"quantity": 1.0}, {"by": "site"}])
def test_other_partitions_suit_real_labels(partition):
    given = document("own.csv", range=[0, 1])
    given["parties"]["partition"] = partition
    assert resolve(given).parties.partition == partition


@pytest.mark.parametrize(
    ("parties", "key"),
    [({"partition": {"by": "y"}}, "parties.partition"), ({"count": 2, "bags": {"by": "y"}}, "parties.bags")],
)
def test_who_is_where_must_not_be_the_label_where_labels_are_protected(parties, key):
    given = {**document("own.csv", "ratio"), "parties": parties}
    with pytest.raises(InputError, match=f"{key}.*publish the labels"):
        resolve(given)
    resolve({**given, "protocols": [{"kind": "soft_vote"}]} if key == "parties.partition" else document())


def test_persons_are_not_labels():
    with pytest.raises(InputError, match=r"data\.person.*column of the labels"):
        resolve(document("own.csv", "ratio", person="y"))


@pytest.mark.parametrize("kind", ["mean_operator", "error_marginals"])
@pytest.mark.parametrize(
    ("data", "parties", "words"),
    [
        ({"person": "who"}, {}, "knows single rows only"),
        ({"label": "y"}, {"partition": {"by": "y"}, "count": None}, "names the column of the labels"),
        ({"label": "y"}, {"bags": {"by": "y"}}, "names the column of the labels"),
    ],
)
@pytest.mark.usefixtures("installed_protocols")
def test_protocols_that_protect_single_rows_of_two_classes(kind, data, parties, words):
    given = {
        "data": {"source": "own.csv", "label": "y", **data},
        "parties": {"count": 2, **parties},
        "protocols": [{"kind": kind}],
        "privacy": {"epsilon": 1},
    }
    with pytest.raises(InputError, match=words):
        resolve(given)


@pytest.mark.usefixtures("installed_protocols")
def test_more_than_two_classes_are_refused_before_anything_is_run(tmp_path):
    scenario = {
        "data": {"source": ["breast_cancer", "digits"]},
        "parties": {"count": 2},
        "protocols": [{"kind": "mean_operator"}],
        "privacy": {"epsilon": 1},
    }
    with pytest.raises(
        InputError, match=r"data.positive: missing; mean_operator is for two classes, and 'digits' has 10"
    ):
        run(scenario, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
