"""`federation deploy`: a plan, its seal, and what is told when something lacks.

`federation collect`: what it says, and with which exit code it ends.
"""

import json
import re
from functools import partial

import pytest
from support.letter_sites import deployed, scenario, write_public

from federation.contract.errors import InputError
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import fingerprint, new_site_key, public_text, sums_key
from scenarios.commands.deploy import parsed_address, parsed_rows, parsed_time
from scenarios.deployment import collecting
from scenarios.settings.loader import dump

OPTIONS = ("--superlink", "localhost:9", "--sites", "north, south", "--rows", "60:67")
SPENT = [{"epsilon": 1.0, "delta": 1e-5, "unit": "label"}]
DONE = {"status": "released", "exit_code": 0, "exchange": "001", "files": ["a.npz"], "spent": SPENT}


@pytest.fixture
def place(tmp_path, monkeypatch):
    write_public(tmp_path / "public.csv")
    (tmp_path / "trial.yaml").write_text(dump(scenario()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_writes_a_folder_and_says_what_is_next(place, done):
    told = done("deploy", "trial.yaml", "D", *OPTIONS)
    assert f"wrote {place}/D/: invitation.json, public.csv, README.txt" in told
    assert re.search(r"2.*sites.*statistic.*1", told)
    assert "promises: epsilon 1, delta 0 per party; noise is added by the aggregator" in told
    assert "next: send invitation.json and public.csv to north, south" in told


def test_settings_of_the_scenario_and_the_closing_can_be_given_and_json_says_the_same(place, done):
    options = (*OPTIONS, "--closing", "2", "--set", "privacy.epsilon=3", "--set", "protocols.0.kind=mean_operator")
    told = json.loads(done("deploy", "trial.yaml", "D", *options, "--json"))
    assert (told["directory"], told["sites"]) == (f"{place}/D", ["north", "south"])
    found = Agreement.load(place / "D" / "invitation.json")
    assert (found.protocol, found.promises[0].epsilon) == ("mean_operator", 3.0)
    now = (place / "D" / "invitation.json").stat().st_mtime
    assert 1.9 < (found.closing - now) / 86_400 <= 2.0


def test_it_says_before_any_key_is_made_that_features_are_taken_as_public(place, done):
    for protect, told in (("label", True), ("row", False)):
        kind = ("--set", "protocols.0.kind=mean_operator", "--set", f"protocols.0.protect={protect}")
        out = done("deploy", "trial.yaml", protect, *OPTIONS, *kind)
        assert ("a site must set public-features = true, or it answers nothing" in out) is told


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ("{epsilon: 3, delta: 1.0e-5}", "for 3 releases; after the first, federation collect DIR --new-exchange"),
        ("{epsilon: 1, delta: 1.0e-5}", "for one release\n"),
        pytest.param("{epsilon: 5000, delta: 1.0e-5}", "for 1000 releases or more;", marks=pytest.mark.slow),
        ("null", ""),
    ],
)
def test_it_says_how_many_releases_the_budget_pays_for(place, budget, told, done):
    out = done("deploy", "trial.yaml", "D", *OPTIONS, "--set", f"privacy.budget={budget}")
    assert f"budget: {told}" in out if told else "budget" not in out


def test_with_keys_it_seals_and_shows_what_people_compare(place, done, refused):
    done("deploy", "trial.yaml", "D", *OPTIONS)
    before = (place / "D" / "server.crt").read_bytes()
    assert re.search(r"--keys.*FOLDER", refused("deploy", "D"))
    assert "made a new certificate" in done("deploy", "D", "--hosts", "link.example.org")
    assert (place / "D" / "server.crt").read_bytes() != before
    keys = {name: new_site_key().public_key() for name in ("north", "south")}
    (place / "keys").mkdir()
    for name, key in keys.items():
        (place / "keys" / f"{name}.pub").write_text(public_text(key))
    told, agreement = done("deploy", "D", "--keys", "keys"), Agreement.load(place / "D" / "plan.json")
    for name, key in keys.items():
        assert f"{fingerprint(key)}  {name}\n" in told
    assert f"digest of the plan: {agreement.digest.hex()}" in told
    assert fingerprint(agreement.aggregator_key) in told


def test_a_second_server_is_named_and_its_key_shown(place, done, refused):
    sums = ("--set", "servers=two", "--set", "protocols.0.kind=mean_operator", "--set", "protocols.0.trust=secure")
    options = ("--superlink", "localhost:9", "--sites", "north,south,west", "--rows", "60:67", *sums)
    for second, words in (((), r"--second.*NAME"), (("--second", "om bud"), "--second: 'om bud' must be a name")):
        assert re.search(words, refused("deploy", "trial.yaml", "D", *options, *second))
    assert "invitation.json" in done("deploy", "trial.yaml", "D", *options, "--second", "ombud")
    assert "the helper server 'ombud' has the keys of the masks, and no rows" in (place / "D/README.txt").read_text()
    (place / "keys").mkdir()
    for name in ("north", "south", "west"):
        key = new_site_key()
        both = key.public_key(), sums_key(key).public_key()
        (place / "keys" / f"{name}.pub").write_text("\n".join(map(public_text, both)))
    (place / "keys" / "ombud.pub").write_text(f"{public_text(new_site_key().public_key())}\n{'ab' * 32}\n")
    assert re.search(rf"{'ab' * 32}.*ombud", done("deploy", "D", "--keys", "keys"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("trial.yaml", "D", "--sites", "a"), "--superlink: missing"),
        (("trial.yaml", "D", "--superlink", "localhost:9"), "--sites: missing"),
        (("trial.yaml", "D", *OPTIONS[:4]), "parties.rows: say with --rows"),
        (("trial.yaml", "D", *OPTIONS, "--rows", "9:3"), "--rows must be LEAST:MOST"),
        (("trial.yaml", "D", *OPTIONS, "--superlink", "localhost"), "--superlink must be HOST:PORT"),
        (("trial.yaml", "D", *OPTIONS, "--keys", "keys"), "--keys is for a folder that was made before"),
        (("trial.yaml", "D", *OPTIONS, "--sites", "a,a"), "--sites must be different names"),
        (("trial.yaml", "D", *OPTIONS, "--sites", "a b"), "--sites: 'a b'"),
        (("none.yaml", "D", *OPTIONS), "none.yaml"),
        (("D", "--keys", "keys"), "is no folder of a deployment"),
        (("D", "--superlink", "localhost:9"), "--superlink is for a new deployment"),
        (("trial.yaml",), "is no folder of a deployment"),
    ],
)
def test_what_lacks_or_is_wrong_is_told_in_a_sentence(place, arguments, told, refused):
    assert told in refused("deploy", *arguments)
    assert not (place / "D").exists()


def test_texts_that_are_no_rows_address_or_time_are_refused():
    for parsed, words, texts in (
        (parsed_rows, r"--rows.*LEAST.*MOST", ["", "5", "5:", "0:3", "4:3", "a:b", "1:2:3", "-1:3"]),
        (parsed_address, r"--superlink.*HOST.*PORT", ["", "host", "host:", ":9", "host:x", "host:0", "host:70000"]),
        (partial(parsed_time, "--patience"), "--patience", ["", "0", "0m", "-1m", "1w", "m", "1 h", "inf", "1e3"]),
    ):
        for text in texts:
            with pytest.raises(InputError, match=words):
                parsed(text)
    assert parsed_address("[::1]:9") == "[::1]"
    for text, seconds in (("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("3d", 259200)):
        assert parsed_time("--wait", text) == seconds


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


def test_it_ends_with_what_was_written_and_spent_or_was_released_already(folder, collected, typed, done):
    code, out, error = typed("collect", folder)
    assert (code, error) == (0, "3 of 4 sites answered question 2 of 12; waiting for north\n")
    assert out.splitlines() == [
        f"wrote {folder}/releases/001/a.npz",
        "spent: epsilon 1, delta 1e-05 per label",
        f"next: federation predict {folder}/releases/001/a.npz FILE",
        f"page for whoever must sign: federation report {folder}/releases/001",
    ]
    assert (collected["patience"], collected["fresh"]) == (collecting.Patience(600.0, 3600.0), False)
    collected["outcome"] = {**DONE, "status": "released already"}
    told = done("collect", folder)
    assert "exchange 001 was released already; nothing was asked, nothing was spent" in told
    assert f"{folder}/releases/001/a.npz" in told
    assert "wrote" not in told


def test_a_run_that_fails_ends_with_its_code_and_says_how_to_go_on(folder, collected, typed):
    why = "1 of 3 parties answered"
    for code in (1, 2, 3, 4):
        collected["outcome"] = {"status": "failed", "why": why, "exit_code": code, "exchange": "001"}
        found, _, told = typed("collect", folder)
        assert (found, f"error: {why}" in told) == (code, True)
        assert re.search(rf"hint.*{folder}", told)
    collected["outcome"] = KeyboardInterrupt()
    code, _, told = typed("collect", folder)
    assert (code, f"federation collect {folder} goes on where this was" in told) == (130, True)
    assert "--resume" not in told


def test_a_later_exchange_says_what_all_have_spent_and_json_the_same(folder, collected, done):
    told = json.loads(done("collect", folder, "--json"))
    assert (told["files"], told["spent"]) == ([f"{folder}/releases/001/a.npz"], SPENT)
    collected["outcome"] = {**DONE, "exchange": "002", "spent_in_all": [{**SPENT[0], "epsilon": 2.0}]}
    told = done("collect", folder, "--new-exchange", "--patience", "90s", "--wait", "2h")
    assert "spent by all exchanges: epsilon 2, delta 1e-05 per label" in told
    assert (collected["patience"], collected["fresh"]) == (collecting.Patience(90.0, 7200.0), True)


def test_status_asks_nobody_and_shows_how_far_the_journals_are_known_here(folder, collected, done, tmp_path, refused):
    assert done("collect", folder, "--status") == "nobody has been asked\n"
    assert "patience" not in collected
    journals = folder / "exchanges" / "journals"
    journals.mkdir(parents=True)
    (journals / "north").write_text("ab" * 32)
    assert f"journal of north, its last line known here: {'ab' * 32}" in done("collect", folder, "--status")
    assert json.loads(done("collect", folder, "--status", "--json"))["journals"] == {"north": "ab" * 32}
    assert "is no folder of a deployment" in refused("collect", tmp_path)
