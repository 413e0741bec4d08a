import json

import pytest

from scenarios.cli import _exit_code
from scenarios.settings import schema


def advise(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["federation", "advise", *arguments])
    code = _exit_code()
    return code, capsys.readouterr()


def test_advice_is_sorted_and_says_why(monkeypatch, capsys):
    code, printed = advise(monkeypatch, capsys, "--n", "20000", "--d", "9", "--range", "0,5", "--json")
    assert code == 0
    advice = json.loads(printed.out)["advice"]
    risks = [one["predicted_excess"] for one in advice]
    assert risks == sorted(risks)
    assert all(one["why"] for one in advice)
    assert advice[0]["mechanism"] == "label_sums"


def test_many_parties_that_trust_nobody_are_told_to_make_labels_private(monkeypatch, capsys):
    arguments = ("--n", "80000", "--d", "112", "--range", "0,52", "--parties", "100", "--json")
    _, alone = advise(monkeypatch, capsys, *arguments, "--trust", "none")
    _, together = advise(monkeypatch, capsys, *arguments, "--trust", "aggregator")
    assert json.loads(alone.out)["advice"][0]["mechanism"] == "private_labels"
    assert json.loads(together.out)["advice"][0]["mechanism"] == "label_sums"


@pytest.mark.parametrize("trust", ["none", "aggregator"])
def test_the_written_scenario_is_one(monkeypatch, capsys, tmp_path, trust):
    path = tmp_path / "advised.yaml"
    arguments = ("--n", "350", "--d", "10", "--parties", "3", "--epsilon", "4", "--trust", trust)
    code, printed = advise(monkeypatch, capsys, *arguments, "--source", "diabetes", "--write", str(path))
    assert code == 0
    assert str(path) in printed.out
    scenario = schema.resolve(path)
    assert scenario.parties.count == (3 if trust == "none" else 1)
    assert [one.kind for one in scenario.protocols][-2:] == ["constant", "noise_free"]
    assert len(scenario.protocols) == 6


def test_a_file_gets_its_label_and_range(monkeypatch, capsys):
    _, printed = advise(monkeypatch, capsys, "--n", "350", "--d", "10", "--range", "1,9", "--label", "stay", "--json")
    data = json.loads(printed.out)["scenario"]["data"]
    assert data == {"source": "my.csv", "label": "stay", "range": [1.0, 9.0]}


def test_a_data_set_has_its_documented_range(monkeypatch, capsys):
    common = ("--n", "15000", "--d", "8", "--residual", "0.5", "--json")
    _, documented = advise(monkeypatch, capsys, *common, "--source", "housing")
    _, declared = advise(monkeypatch, capsys, *common, "--range", "0.15,5")
    assert json.loads(documented.out)["advice"] == json.loads(declared.out)["advice"]
    assert json.loads(documented.out)["scenario"]["data"] == {"source": "housing"}


def test_without_delta_all_advice_is_pure(monkeypatch, capsys):
    _, printed = advise(monkeypatch, capsys, "--n", "350", "--d", "10", "--delta", "0", "--json")
    record = json.loads(printed.out)
    assert {one["delta"] for one in record["advice"]} == {0.0}
    assert "delta" not in record["scenario"]["privacy"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--n", "5", "--d", "9", "--parties", "10"), "parties"),
        (("--n", "50", "--d", "9", "--range", "3"), "--range"),
        (("--n", "50", "--d", "9", "--range", "3,1"), "range"),
        (("--n", "50", "--d", "9", "--epsilon", "0"), "epsilon"),
        (("--n", "50", "--d", "9", "--source", "digits"), "classes"),
        (("--n", "50", "--d", "9", "--delta", "1"), "delta"),
        (("--n", "50", "--d", "9", "--write", "/no/such/folder/a.yaml"), "cannot write"),
        (("--n", "50", "--d", "9", "--task", "classification", "--write", "a.yaml"), "regression"),
    ],
)
def test_bad_input_is_named(monkeypatch, capsys, arguments, text):
    code, printed = advise(monkeypatch, capsys, *arguments)
    assert code == 2
    assert text in printed.err


def test_two_classes_are_told_of_the_protocol_made_for_them(monkeypatch, capsys):
    numbers = ("--epsilon", "0.5", "--delta", "1e-06", "--parties", "3")
    _, printed = advise(monkeypatch, capsys, "--n", "318", "--d", "30", "--task", "classification", *numbers)
    command = "federation privacy mean-operator --rows 318 --d 31 --parties 3 --epsilon 0.5 --delta 1e-06"
    assert command in printed.out
    monkeypatch.setattr("sys.argv", command.split())
    assert _exit_code() == 0
