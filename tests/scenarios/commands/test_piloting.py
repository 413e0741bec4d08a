"""The pilot of `federation advise` from end to end: marked, kept, repeated, refused, and carried into every ledger."""

from __future__ import annotations

import json

import numpy as np
import pytest

from aggregator.contract.registry import model
from aggregator.releases.model_files import head
from federation.contract.errors import BudgetExceededError
from federation.mechanisms.accounting.private_selection import RandomStopping
from scenarios.advice import pilot_runs as measuring
from scenarios.cli import _exit_code
from scenarios.runs import runner
from scenarios.settings.schema import resolve
from scenarios.settings.sections import CHOSEN_ON_PRIVATE_DATA

WISH = ("--label", "outcome", "--protect", "label", "--trust", "none", "--parties", "5", "--write", "a.yaml", "--json")
TINY = ["trials.splits=1", "trials.noise=1"]


@pytest.fixture
def advise(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    for name in ("own", "public"):
        rows = random.normal(size=(160, 2))
        lines = [f"{a:.3f},{b:.3f},{'ill' if a + b > 0 else 'well'}" for a, b in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join(["age,dose,outcome", *lines]) + "\n")

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["federation", "advise", *arguments])
        code = _exit_code()
        return code, capsys.readouterr()

    return call


def test_what_a_pilot_chose_is_marked_in_every_ledger_of_its_scenario(advise, monkeypatch, tmp_path):
    code, printed = advise("own.csv", *WISH, "--pilot", "60", "--accuracy", "0.8")
    assert code == 0, printed.err
    found = json.loads(printed.out)
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


def test_the_same_command_goes_on_from_what_was_kept(advise, monkeypatch):
    assert advise("own.csv", *WISH, "--pilot", "60")[0] == 0
    monkeypatch.setattr(measuring.Bench, "_run", lambda *_: pytest.fail("it was measured before"))
    code, printed = advise("own.csv", *WISH, "--pilot", "60")
    assert code == 0
    assert json.loads(printed.out)["pilot"]["standings"][0]["splits"] == 5


def test_an_interruption_keeps_what_there_is_and_says_so(advise, monkeypatch, tmp_path):
    run, done = measuring.Bench._run, []

    def stopped(self, *arguments):
        if done:
            raise KeyboardInterrupt
        done.append(1)
        return run(self, *arguments)

    monkeypatch.setattr(measuring.Bench, "_run", stopped)
    code, printed = advise("own.csv", *WISH, "--pilot", "60")
    assert code == 130
    found = json.loads(printed.out)["pilot"]
    assert (found["interrupted"], len(found["standings"])) == (True, 1)
    assert found["left_out"]
    assert (tmp_path / "a.yaml").exists()


def test_public_rows_leave_no_mark(advise):
    code, printed = advise("own.csv", *WISH, "--pilot", "60", "--pilot-data", "public.csv")
    assert code == 0, printed.err
    found = json.loads(printed.out)
    assert not found["pilot"]["non_private"]
    assert "NON-PRIVATE" not in " ".join(found["sentences"])
    scenario = resolve("a.yaml")
    assert scenario.chosen.private
    assert scenario.chosen.premise == ""
    numbers = (
        "--task",
        "binary",
        "--n",
        "90",
        "--d",
        "2",
        "--label",
        "outcome",
        "--protect",
        "label",
        "--trust",
        "none",
    )
    code, printed = advise(*numbers, "--pilot", "60", "--pilot-data", "public.csv")
    assert code == 0, printed.err
    assert "pilot on public rows" in printed.out


def test_a_choice_that_is_paid_for_counts_in_every_ledger_and_comes_with_its_model(advise, monkeypatch, tmp_path):
    monkeypatch.setattr(RandomStopping, "draw", lambda *_: 2)
    code, printed = advise("own.csv", *WISH, "--charged-pilot", "5")
    assert code == 0, printed.err
    found = json.loads(printed.out)["pilot"]
    assert (found["charged"], found["non_private"]) == (True, False)
    spent, scenario = found["guarantee"], resolve("a.yaml")
    assert scenario.chosen.charge["epsilon"] == spent["epsilon"] < 3
    assert scenario.protocols[0].kind == found["chosen"].split()[0]
    [promised] = model(head(tmp_path / "a.npz")[0]).load(tmp_path / "a.npz").guarantees  # chosen by chance
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
    with pytest.raises(BudgetExceededError, match="together with the choice"):
        runner.run("a.yaml", overrides=[*only, "privacy.budget={epsilon: 3, delta: 1e-5}"], out=tmp_path / "other")


@pytest.mark.parametrize("flags", [["--pilot", "5"], ["--pilot-data", "public.csv"], ["--accuracy", "0.8"]])
def test_a_pilot_that_is_paid_for_tells_its_choice_and_no_more(advise, flags):
    code, printed = advise("own.csv", *WISH, "--charged-pilot", "5", *flags)
    assert code == 2
    assert f"{flags[0]} does not go with --charged-pilot" in printed.err


def test_without_rows_and_at_real_parties_there_is_no_pilot(advise, tmp_path):
    numbers = ("--task", "binary", "--n", "90", "--d", "2", "--protect", "label", "--trust", "none")
    code, printed = advise(*numbers, "--pilot", "5")
    assert code == 2
    assert "--pilot needs rows" in printed.err
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "scenario.yaml").write_text(
        "data: {source: breast_cancer}\nparties: {count: 5}\nprivacy: {epsilon: 1}\n"
        "protocols: [{kind: mean_operator}]\n"
    )
    wish = ("--protect", "label", "--trust", "none")
    assert advise("site", *wish)[0] == 0
    code, printed = advise("site", *wish, "--pilot", "5")
    assert code == 2
    assert "parties that are deployed answer no pilot" in printed.err
