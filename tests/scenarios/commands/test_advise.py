"""`federation advise` as a person meets it: by numbers, about a file, a scenario, a deployment, and on a terminal.

What `federation advise` makes of its flags: what is open, and how many parties there are.
The pilot of `federation advise` from end to end: marked, kept, repeated, refused, and carried into every ledger.
"""

import json
import re
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.command_line import Terminal

from aggregator.contract import registry
from aggregator.contract.protocol import Trust
from aggregator.releases.model_files import head
from federation.contract.errors import BudgetExceededError, InputError
from federation.mechanisms.accounting.private_selection import RandomStopping
from scenarios.advice import pilot_runs as measuring
from scenarios.commands.advise import Asked
from scenarios.runs import runner
from scenarios.settings.schema import resolve
from scenarios.settings.sections import CHOSEN_ON_PRIVATE_DATA

TWO = ("--task", "binary", "--protect", "label", "--trust", "none", "--features", "public")
SIZE = ("--n", "12000", "--d", "50", "--parties", "100")
TINY = ["trials.splits=1", "trials.noise=1"]
LABELS = ("--protect", "label", "--trust", "none")
WISH = ("own.csv", "--label", "outcome", *LABELS, "--parties", "5", "--write", "a.yaml", "--json")
NUMBERS = ("--task", "binary", "--n", "90", "--d", "2", *LABELS)


@pytest.fixture
def advise(typed, monkeypatch, tmp_path):
    """Advises in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return partial(typed, "advise")


@pytest.fixture
def record(advise):
    """Advises where it must succeed; returns what `--json` has."""

    def call(*arguments):
        code, out, err = advise(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return call


@pytest.fixture
def own(tmp_path):
    random = np.random.default_rng(1)
    rows = random.normal(size=(200, 3))
    lines = [f"{a:.3f},{b:.3f},{c:.3f},{'ill' if a + b > 0 else 'well'},{a - c:.3f}" for a, b, c in rows]
    (tmp_path / "own.csv").write_text("\n".join(["age,dose,mass,outcome,cost", *lines]) + "\n")
    return "own.csv"


def test_every_protocol_is_told_of_with_who_sees_what_and_people_read_the_same_in_sentences(record, advise):
    found = record(*TWO, *SIZE)
    told = [one["protocol"] for one in (*found["advice"], *found["refused"])]
    assert set(told) == set(registry.protocol_names())
    errors = [one["error"] for one in found["advice"]]
    assert errors == sorted(errors)
    assert all(one["reason"] for one in found["refused"])
    for one in found["advice"]:
        assert all(one[key] for key in ("leaves_a_party", "roles", "unit", "adjacency", "assuming"))
    first = found["advice"][0]
    [aggregator] = [role for role in first["roles"] if role["who"] == "the aggregator"]
    assert any("without noise: its public rows without labels" in text for text in aggregator["sees"])
    assert (first["epsilon"], first["unit"], found["verdict"]) == (1.0, "label", "unknown")
    code, out, err = advise(*TWO, *SIZE, "--majority", "0.6")
    assert (code, err) == (0, "")
    for part in (
        "Use mean_operator: accuracy 0.89 if 0.9",
        "the aggregator sees from every party with noise: the sum of its rows by class",
        "the aggregator is trusted with nothing that is protected",
        "nothing of your data was read for this.",
    ):
        assert part in " ".join(out.split())


def test_where_nothing_is_useful_or_keeps_the_wish_the_nearest_is_told_and_nothing_written(record, tmp_path):
    found = record(*TWO, *SIZE, "--majority", "0.95")
    assert found["verdict"] == "none"
    assert any(line.startswith("Nothing is useful here") for line in found["sentences"])
    wish = ("--task", "regression", "--protect", "party", "--trust", "aggregator", "--n", "900", "--d", "4")
    found = record(*wish, "--write", "a.yaml")
    assert (found["verdict"], found["advice"], found["scenario"]) == ("none", [], None)
    assert {"protect": "row"} in [one["flags"] for one in found["nearest"]]
    assert all(one["error"] is not None for one in found["nearest"])
    assert not (tmp_path / "a.yaml").exists()


def test_what_nobody_said_is_said_in_one_line(record):
    size = ("--n", "900", "--d", "4")
    assert record(*size)["assumed"] == [
        "--protect label", "--trust none", "--features public", "--task regression", "--parties 1",
    ]  # fmt: skip
    known = ("--task", "binary", "--parties", "9", "--protect", "row", "--trust", "secure")
    assert record(*size, *known)["assumed"] == ["--features private"]


@pytest.mark.parametrize(
    ("arguments", "answers", "said"),
    [
        (("own.csv",), "row\nnone\n\noutcome\n", "Use mean_operator protect: row"),
        (("own.csv", "--label", "cost"), "person\nnone\n\n-4,4\nage\n", "No protocol protects"),
        ((), "party\naggregator\n\nmulticlass\n900\n4\n3\n30\n", "No protocol protects"),
        ((), "label\nnone\n\nbinary\n900\n4\n30\n", "Use mean_operator"),
        ((), "label\nnone\n\nratio\n4\n50\n2\n\n", "Use class_ratio"),
    ],
)
def test_on_a_terminal_it_asks_for_what_is_missing(advise, own, monkeypatch, arguments, answers, said):
    keyboard = Terminal(answers)
    monkeypatch.setattr("sys.stdin", keyboard)
    code, out, _ = advise(*arguments)
    assert (code, keyboard.read()) == (0, "")
    assert said in " ".join(out.split())
    assert arguments or "quantity" not in out  # as of a table without rows


def test_todays_flags_stay_valid(record):
    numbers = ("--n", "20000", "--d", "9", "--parties", "10", "--epsilon", "1", "--delta", "1e-6")
    found = record(*numbers, "--task", "regression", "--range", "0.15,5")
    assert {one["protocol"] for one in found["advice"]} == {"private_labels", "label_sums"}
    assert found["scenario"]["data"] == {"source": "my.csv", "label": "y", "range": [0.15, 5.0]}
    assert record(*numbers, "--task", "classification")["advice"][0]["protocol"] == "mean_operator"
    found = record(*numbers, "--source", "housing", "--residual", "0.5")
    assert found["scenario"]["data"] == {"source": "housing"}
    assert "in all" in found["advice"][0]["predicted"]


def test_the_scenario_of_numbers_is_one(record):
    numbers = ("--n", "350", "--d", "10", "--parties", "3", "--epsilon", "4", "--source", "diabetes")
    for trust, parties, second in (("none", 3, "private_labels"), ("aggregator", 1, "label_sums")):
        record(*numbers, "--protect", "label", "--trust", trust, "--write", f"{trust}.yaml")
        scenario = resolve(f"{trust}.yaml")
        assert scenario.parties.count == parties
        assert [one.kind for one in scenario.protocols][:2] == ["private_labels", second]
        assert {one.kind for one in scenario.protocols} >= {"pooled", "constant", "noise_free"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        ("--label", "outcome", "--protect", "party", "--trust", "aggregator"),
        ("--label", "outcome", "--protect", "row", "--trust", "secure"),
        ("--label", "outcome", "--protect", "label", "--trust", "none", "--features", "public"),
        ("--label", "cost", "--range=-5,5", "--protect", "row", "--trust", "none"),
        ("--label", "outcome", "--protect", "label", "--trust", "none", "--task", "ratio", "--parties", "2"),
    ],
)
def test_the_scenario_of_a_file_runs_as_it_is(record, own, flags, monkeypatch, tmp_path):
    found = record(own, *flags, "--epsilon", "3", "--write", "advised.yaml")
    monkeypatch.setattr(runner, "_draw", lambda *_: None)
    rows = runner.run("advised.yaml", overrides=TINY, out=tmp_path / "run").rows
    listed = [one["protocol"] for one in found["advice"][:2]]
    assert {row["protocol"] for row in rows} >= set(listed)
    assert {row["epsilon"] for row in rows if row["protocol"] == listed[0]} == {3.0}
    assert "hosen by public numbers alone" in (tmp_path / "advised.yaml").read_text()


def test_a_file_or_a_scenario_is_counted_and_its_public_quarter_is_told(record, own):
    party = ("--protect", "party", "--trust", "aggregator")
    found = record(own, "--label", "outcome", *party)
    assert found["counted"].endswith("were counted in own.csv")
    assert any("40 of the file's own play them" in line for line in found["sentences"])
    refused = record("--task", "binary", "--n", "200", "--d", "3", *party)["refused"]
    assert "--public-rows" in {one["protocol"]: one["reason"] for one in refused}["soft_vote"]
    found = record("quickstart", *party, "--write", "mine.yaml")
    assert found["counted"].endswith("were counted in digits")
    scenario = resolve("mine.yaml")
    assert scenario.parties.count == 200
    assert scenario.protocols[0].kind == found["advice"][0]["protocol"]


@pytest.mark.parametrize(
    "accuracy", ["0.5", pytest.param("0.85", marks=pytest.mark.slow), pytest.param("0.999", marks=pytest.mark.slow)]
)
def test_without_a_pilot_an_epsilon_is_told_within_a_factor_of_ten_only(record, accuracy):
    [told] = [line for line in record(*TWO, *SIZE, "--accuracy", accuracy)["sentences"]
              if line.startswith(f"Accuracy {accuracy}")]  # fmt: skip
    assert any(part in told for part in ("below epsilon", "somewhere between epsilon", "is not reached"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--n", "5", "--d", "9", "--parties", "10"), "parties must be at most rows"),
        (("--d", "9"), "--n: say how many there are"),
        (("--task", "ratio"), "--bags and --bag-rows and --classes"),
        (("--task", "multiclass", "--n", "50", "--d", "3"), "--classes: say how many"),
        (("--n", "50", "--d", "9", "--epsilon", "0"), "epsilon"),
        (("--n", "50", "--d", "9", "--source", "digits"), "--source digits has classes"),
        (("--n", "50", "--d", "9", "--accuracy", "0.9"), "--accuracy is for classes"),
        (("--task", "binary", "--n", "50", "--d", "9", "--accuracy", "9"), "--accuracy must be a share"),
        (("--n", "50", "--d", "9", "--write", "/no/such/folder/a.yaml"), "cannot write"),
        (("none.csv", "--label", "y"), "there is no such file: none.csv"),
        (("own.csv", "--label", "outcome", "--n", "4"), "--n is for advice without data"),
        (("own.csv", "--label", "age", "--protect", "person"), "--range: 'age' holds numbers"),
        (("own.csv", "--label", "outcome", "--protect", "person"), "--protect person needs --person"),
        ((".",), "a folder without scenario.yaml"),
        (("no-such-scenario",), "no-such-scenario"),
    ],
)
@pytest.mark.usefixtures("advise")
def test_bad_input_is_named(refused, own, arguments, text):
    assert text in refused("advise", *arguments)


NOTHING = Asked(**dict.fromkeys(field.name for field in fields(Asked)))
GIVEN = replace(NOTHING, rows=900, columns=4, epsilon=1.0, delta=1e-6, per_person=1, source="my.csv", positive=())


def settled(**flags):
    return replace(GIVEN, **flags).settled(asking=False)


def test_features_are_public_where_labels_alone_are_private_and_who_may_hold_all_rows_is_one_party():
    for protect, public in (("label", True), ("row", False), ("party", False)):
        subject, assumed = settled(protect=protect, trust="none")
        assert subject.wish.public_features is public
        assert assumed == [f"--features {'public' if public else 'private'}", "--task regression", "--parties 1"]
    subject, assumed = settled(protect="label", trust="none", features="private", task="binary", parties=3)
    assert (subject.wish.public_features, assumed) == (False, [])
    assert settled(protect="row", trust="aggregator", parties=7)[0].wish.parties == 1
    assert settled(protect="row", trust="none", parties=7)[0].wish.parties == 7
    subject, _ = settled(protect="party", trust="aggregator", parties=7, task="binary")
    assert (subject.wish.parties, subject.wish.trust) == (7, Trust.AGGREGATOR)
    assert settled()[0].wish.task == "regression"
    assert settled(task="classification")[0].wish.task == "binary"
    assert settled(bags=3, bag_rows=9, classes=2)[0].wish.task == "ratio"


def test_public_rows_are_counted_or_given_and_numbers_of_a_file_are_not_given_beside_it(tmp_path):
    path = tmp_path / "public.csv"
    path.write_text("a,b\n" + "1,2\n" * 31)
    assert settled(public_rows=path)[0].wish.public_rows == 31
    assert settled(public_rows=path, public_count=9)[0].wish.public_rows == 9
    with pytest.raises(InputError):
        settled(about="my.csv", protect="label", trust="none")
    with pytest.raises(InputError):
        settled(about="my.csv", rows=None, columns=None, write=Path("a.yaml"))


@pytest.fixture
def tables(tmp_path):
    """Files of two columns of numbers and a class, one of them public."""
    random = np.random.default_rng(1)
    for name in ("own", "public"):
        rows = random.normal(size=(160, 2))
        lines = [f"{a:.3f},{b:.3f},{'ill' if a + b > 0 else 'well'}" for a, b in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join(["age,dose,outcome", *lines]) + "\n")


@pytest.mark.slow
@pytest.mark.usefixtures("tables")
def test_what_a_pilot_chose_is_marked_in_every_ledger_of_its_scenario(record, monkeypatch, tmp_path):
    found = record(*WISH, "--pilot", "60", "--accuracy", "0.8")
    assert found["pilot"]["non_private"]
    assert found["pilot"]["verdict"] == "useful"
    assert any("is reached at epsilon" in line and "[NON-PRIVATE]" in line for line in found["sentences"])
    assert "NON-PRIVATE" in json.loads((tmp_path / "a.pilot.json").read_text())["note"]
    scenario = resolve("a.yaml")
    assert (scenario.chosen.by, scenario.chosen.private) == ("pilot", False)
    assert scenario.protocols[0].kind == found["pilot"]["chosen"].split()[0]
    monkeypatch.setattr(runner, "_draw", lambda *_: None)
    runner.run("a.yaml", overrides=TINY, out=tmp_path / "run")
    ledger = json.loads((tmp_path / "run/ledger.json").read_text())
    for release in ledger["worlds"][0]["releases"]:
        texts = [one["text"] for one in release["guarantee"]["assumptions"]]
        assert CHOSEN_ON_PRIVATE_DATA in texts
        assert not any("were chosen without private labels" in text for text in texts)


@pytest.mark.usefixtures("tables")
def test_an_interruption_keeps_what_there_is_and_the_same_command_goes_on_from_it(advise, monkeypatch, tmp_path):
    run, left = measuring.Bench._run, []

    def stopped(self, *arguments):
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return run(self, *arguments)

    monkeypatch.setattr(measuring.Bench, "_run", stopped)
    for runs, measured in ((1, 1), (0, 1), (1, 2)):
        left += [None] * runs
        code, out, _ = advise(*WISH, "--pilot", "60")
        assert code == 130
        found = json.loads(out)["pilot"]
        assert (found["interrupted"], sum(one["splits"] for one in found["standings"])) == (True, measured)
        assert found["left_out"]
        assert (tmp_path / "a.yaml").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("tables")
def test_public_rows_leave_no_mark(advise, record):
    found = record(*WISH, "--pilot", "60", "--pilot-data", "public.csv")
    assert not found["pilot"]["non_private"]
    assert "NON-PRIVATE" not in " ".join(found["sentences"])
    scenario = resolve("a.yaml")
    assert scenario.chosen.private
    assert scenario.chosen.premise == ""
    code, out, err = advise(*NUMBERS, "--label", "outcome", "--pilot", "60", "--pilot-data", "public.csv")
    assert code == 0, err
    assert "pilot on public rows" in out


@pytest.mark.usefixtures("tables")
def test_a_choice_that_is_paid_for_counts_in_every_ledger_and_comes_with_its_model(record, monkeypatch, tmp_path):
    monkeypatch.setattr(RandomStopping, "draw", lambda *_: 2)
    found = record(*WISH, "--charged-pilot", "5")["pilot"]
    assert (found["charged"], found["non_private"]) == (True, False)
    spent, scenario = found["guarantee"], resolve("a.yaml")
    assert scenario.chosen.charge["epsilon"] == spent["epsilon"] < 3
    assert scenario.protocols[0].kind == found["chosen"].split()[0]
    [promised] = registry.model(head(tmp_path / "a.npz")[0]).load(tmp_path / "a.npz").guarantees  # chosen by chance
    assert (promised["epsilon"], promised["delta"]) == (spent["epsilon"], spent["delta"])
    monkeypatch.setattr(runner, "_draw", lambda *_: None)
    only = [*TINY, "protocols=[{kind: mean_operator}]"]
    runner.run("a.yaml", overrides=only, out=tmp_path / "run")
    [world] = json.loads((tmp_path / "run/ledger.json").read_text())["worlds"]
    assert world["published_together"][0]["epsilon"] == pytest.approx(1 + spent["epsilon"])
    assert world["choice"]["unit"] == "label"
    texts = [one["text"] for one in world["releases"][0]["guarantee"]["assumptions"]]
    assert any("by a private selection" in text for text in texts)
    assert CHOSEN_ON_PRIVATE_DATA not in texts
    with pytest.raises(BudgetExceededError):
        runner.run("a.yaml", overrides=[*only, "privacy.budget={epsilon: 3, delta: 1e-5}"], out=tmp_path / "other")


@pytest.mark.usefixtures("advise", "tables")
def test_a_pilot_that_is_paid_for_tells_its_choice_and_no_more(refused):
    for flags in (("--pilot", "5"), ("--pilot-data", "public.csv"), ("--accuracy", "0.8")):
        told = refused("advise", *WISH, "--charged-pilot", "5", *flags)
        assert re.search(rf"{flags[0]}.*--charged-pilot", told)


def test_without_rows_and_at_real_parties_there_is_no_pilot(advise, refused, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "scenario.yaml").write_text(
        "data: {source: breast_cancer}\nparties: {count: 5}\nprivacy: {epsilon: 1}\n"
        "protocols: [{kind: mean_operator}]\n"
    )
    assert advise("site", *LABELS)[0] == 0
    assert "--pilot needs rows" in refused("advise", *NUMBERS, "--pilot", "5")
    assert "parties that are deployed answer no pilot" in refused("advise", "site", *LABELS, "--pilot", "5")
