"""`federation collect`: what it says, and with which exit code it ends."""

import json

import pytest
from support.command_line import call
from support.letter_sites import deployed

from federation.contract.errors import InputError
from scenarios.commands.deploy import parsed_time
from scenarios.deployment import collecting
from scenarios.deployment.collecting import Patience

SPENT = [{"epsilon": 1.0, "delta": 1e-5, "unit": "label"}]
DONE = {"status": "released", "exit_code": 0, "exchange": "001", "files": ["a.npz"], "spent": SPENT}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return deployed(tmp_path_factory.mktemp("sites"))[0].path


@pytest.fixture
def collected(monkeypatch):
    """What was asked for, and a place for how it ends."""
    state = {"outcome": DONE}

    def collect(folder, patience, fresh, tell):
        state.update(patience=patience, fresh=fresh)
        tell("3 of 4 sites answered question 2 of 12; waiting for north")
        if isinstance(state["outcome"], BaseException):
            raise state["outcome"]
        return state["outcome"]

    monkeypatch.setattr(collecting, "collect", collect)
    return state


def test_it_ends_with_what_was_written_and_spent(monkeypatch, folder, collected, capsys):
    assert call(monkeypatch, "collect", str(folder)) == 0
    told = capsys.readouterr()
    assert told.err == "3 of 4 sites answered question 2 of 12; waiting for north\n"
    assert told.out.splitlines() == [
        f"wrote {folder}/releases/001/a.npz",
        "spent: epsilon 1, delta 1e-05 per label",
        f"next: federation predict {folder}/releases/001/a.npz FILE",
        f"page for whoever must sign: federation report {folder}/releases/001",
    ]
    assert (collected["patience"], collected["fresh"]) == (Patience(600.0, 3600.0), False)


def test_a_later_exchange_says_what_all_have_spent(monkeypatch, folder, collected, capsys):
    collected["outcome"] = {**DONE, "exchange": "002", "spent_in_all": [{**SPENT[0], "epsilon": 2.0}]}
    call(monkeypatch, "collect", str(folder), "--new-exchange", "--patience", "90s", "--wait", "2h")
    assert "spent by all exchanges: epsilon 2, delta 1e-05 per label" in capsys.readouterr().out
    assert (collected["patience"], collected["fresh"]) == (Patience(90.0, 7200.0), True)


def test_what_was_released_already_says_so(monkeypatch, folder, collected, capsys):
    collected["outcome"] = {**DONE, "status": "released already"}
    assert call(monkeypatch, "collect", str(folder)) == 0
    told = capsys.readouterr().out
    assert "exchange 001 was released already; nothing was asked, nothing was spent" in told
    assert f"there is {folder}/releases/001/a.npz" in told
    assert "wrote" not in told


@pytest.mark.parametrize("code", [1, 2, 3, 4])
def test_a_run_that_fails_ends_with_its_code_and_says_how_to_go_on(monkeypatch, folder, collected, capsys, code):
    why = "1 of 3 parties answered"
    collected["outcome"] = {"status": "failed", "why": why, "exit_code": code, "exchange": "001"}
    assert call(monkeypatch, "collect", str(folder)) == code
    told = capsys.readouterr().err
    assert f"error: {why}" in told
    assert f"hint: federation collect {folder} goes on" in told


def test_interrupted_it_says_how_to_go_on(monkeypatch, folder, collected, capsys):
    collected["outcome"] = KeyboardInterrupt()
    assert call(monkeypatch, "collect", str(folder)) == 130
    told = capsys.readouterr().err
    assert f"federation collect {folder} goes on where this was" in told
    assert "--resume" not in told


def test_it_says_the_same_in_json(monkeypatch, folder, collected, capsys):
    call(monkeypatch, "collect", str(folder), "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["files"] == [f"{folder}/releases/001/a.npz"]
    assert told["spent"] == SPENT


def test_status_asks_nobody(monkeypatch, folder, collected, capsys):
    assert call(monkeypatch, "collect", str(folder), "--status") == 0
    assert capsys.readouterr().out == "nobody has been asked\n"
    assert "patience" not in collected


def test_status_shows_how_far_the_journals_of_the_sites_are_known_to_be(monkeypatch, folder, collected, capsys):
    journals = folder / "exchanges" / "journals"
    journals.mkdir(parents=True)
    (journals / "north").write_text("ab" * 32)
    assert call(monkeypatch, "collect", str(folder), "--status") == 0
    assert f"journal of north, its last line known here: {'ab' * 32}" in capsys.readouterr().out
    call(monkeypatch, "collect", str(folder), "--status", "--json")
    assert json.loads(capsys.readouterr().out)["journals"] == {"north": "ab" * 32}


def test_another_folder_is_refused(monkeypatch, tmp_path, collected, capsys):
    assert call(monkeypatch, "collect", str(tmp_path)) == 2
    assert "is no folder of a deployment" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("3d", 259200)])
def test_times(text, seconds):
    assert parsed_time("--wait", text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0m", "-1m", "1w", "m", "1 h", "inf", "nan", "1e3"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(InputError, match="--patience must be a time above zero"):
        parsed_time("--patience", text)
