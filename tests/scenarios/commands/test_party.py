"""`federation party`: a site from its first key to what it has spent, as a person types it."""

import json
import re
import stat
import sys
from functools import partial

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from flwr.app import Array, ArrayRecord, RecordDict
from support.exchanges import agreement_for
from support.questions import QUESTIONS
from support.second_folders import second_folder
from support.site_folders import ROWS, site_folder

from federation.contract.errors import InputError
from federation.contract.files import write_lasting
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import fingerprint, load_key, site_key_from_text
from federation.signed_messages.messages import padded_answer, records_packet
from parties.site.accounts import Journal
from parties.site.messages import OPEN
from parties.site.settings import Settings
from parties.site.state import Identity, State, contents
from scenarios.commands import party
from scenarios.deployment.table_check import WatchedTable


@pytest.fixture
def typed(typed):
    """Types a command of a site or a second server."""
    return partial(typed, "party")


@pytest.fixture
def charged(tmp_path):
    """A site that has answered once."""
    site = site_folder(tmp_path)
    journal = State.found(tmp_path / "state").journal()
    guarantee = {"epsilon": 1.0, "delta": 0.0, "unit": "party", "adjacency": "replace", "mechanism": "x"}
    guarantee |= {"parameters": {}, "assumptions": [], "gaussian_mu": None}
    journal.add("charged", key="k", table="patients", trusted=True, guarantee=guarantee)
    numbers = RecordDict({"arrays": ArrayRecord({"votes": Array(np.array([[0, 2, 1]]))})})
    write_lasting(tmp_path / f"state/answers/k{OPEN}", padded_answer(records_packet(numbers), 1000))
    journal.add("answered", key="k", kind="votes", bytes=100)
    return site


def test_from_an_invitation_to_an_approved_plan(done, refused, typed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    signing = Ed25519PrivateKey.generate()
    label = {"name": "ill", "classes": ["no", "yes", "maybe"]}
    invited = agreement_for(signing, [], QUESTIONS["votes"], sites=[{"name": "north"}, {"name": "south"}], label=label)
    (tmp_path / "invitation.json").write_bytes(invited.canonical())
    (tmp_path / "patients.csv").write_text("p,q,r,ill\n" + ROWS)
    options = ["--invitation", "invitation.json", "--name", "north", "--data", "patients.csv"]
    printed = done("init", "site/site.toml", *options)
    key = load_key(tmp_path / "site/key", EllipticCurvePrivateKey).public_key()
    public = (tmp_path / "site/north.pub").read_text()
    assert fingerprint(site_key_from_text(public, "it")) == fingerprint(key)
    for known in (fingerprint(key), fingerprint(signing.public_key())):
        assert known in printed
    assert stat.S_IMODE((tmp_path / "site").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "site/site.toml").stat().st_mode) == 0o600
    assert Settings.load(tmp_path / "site/site.toml").data.file.resolve() == tmp_path / "patients.csv"

    assert "plan.json cannot be read" in refused("check", "site/site.toml")
    sealed = json.loads(invited.canonical())
    sealed["sites"] = [{"name": "south", "key": ""}, {"name": "north", "key": public.strip()}]
    (tmp_path / "site/plan.json").write_text(json.dumps(sealed))
    code, _, error = typed("check", "site/site.toml")
    assert (code, "the plan is an invitation only" in error) == (2, True)
    sealed["sites"] = sealed["sites"][1:]
    (tmp_path / "site/plan.json").write_text(json.dumps(sealed))
    printed = done("check", "site/site.toml")
    for words in ("votes, once at most", "no noise (the aggregator is trusted to add it)", "40 rows", "ready"):
        assert words in printed
    printed = done("approve", "site/site.toml")
    assert re.search(r"who asks: .*\n(.*\n)*approved: [0-9a-f]{12} by \w+ on 20", printed)
    assert "approved: " in typed("check", "site/site.toml")[1]
    assert "denied: " in typed("deny", "site/site.toml")[1]


def test_a_second_server_from_its_first_key_to_what_it_told(done, refused, typed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = second_folder(tmp_path)
    own = ["--invitation", "D/invitation.json", "--name", "ombud"]
    printed = done("init", "new/second.toml", *own)
    masks = (tmp_path / "new/ombud.pub").read_text().splitlines()[1]
    assert re.search(rf"{masks}.*SITE", printed)
    assert typed("init", "other/second.toml", *own, "--data", "rows.csv")[0] == 2
    assert not (tmp_path / "other").exists()
    assert done("check", path).splitlines()[-1] == "ready"
    assert re.search(r"(?s)and no rows.*approved: ", done("approve", path))
    assert typed("deny", path)[0] == 0
    for command in ("spent", "new-table"):
        assert "is the configuration of a second server, which holds no rows" in refused(command, path)
    State.found(path.parent / "state").journal().add("told the sum of masks", counted=2, of=3, bytes=9)
    assert re.search(r"2.*3.*sites.*9", done("log", path))
    served = []
    monkeypatch.setattr("parties.helper_server.run", lambda settings, agreement: served.append(settings.name))
    assert typed("run", path)[0] == 0
    assert served == ["ombud"]


@pytest.mark.parametrize("there", ["site.toml", "key", "north.pub", "state"])
def test_init_overwrites_nothing(refused, tmp_path, there):
    invited = agreement_for(Ed25519PrivateKey.generate(), [], QUESTIONS["votes"], sites=[{"name": "north"}])
    (tmp_path / "invitation.json").write_bytes(invited.canonical())
    (tmp_path / there).write_text("mine")
    before = sorted(path.name for path in tmp_path.iterdir())
    options = ["--invitation", tmp_path / "invitation.json", "--name", "north"]
    error = refused("init", tmp_path / "site.toml", *options)
    assert error == f"error: {tmp_path / there} exists, and is not overwritten; choose another folder for this site\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert "the plan has no site 'nord'" in refused("init", tmp_path / "new/site.toml", *options[:-1], "nord")
    assert not (tmp_path / "new").exists()


def test_check_says_all_that_is_wrong_and_its_exit_code_what(typed, tmp_path):
    site = site_folder(tmp_path, replaced=[("epsilon = 1.5", "epsilon = 0.5"), ('"class_ratio"', '"soft_vote"')])
    (tmp_path / "rows.csv").write_text("p,q,s,ill\n" + ROWS)
    code, printed, error = typed("check", site)
    assert code == 3
    assert printed.endswith("NOT ready\n")
    assert len(error.splitlines()) == 3
    for words in ("policy.protocols allows soft_vote", "its allowance is epsilon=0.5", "has no column 'r'"):
        assert words in error
    code, printed, _ = typed("check", site, "--json")
    record = json.loads(printed)
    assert (code, record["ready"], len(record["errors"])) == (3, False, 3)
    assert record["spent"]["label/replace"] == {"epsilon": 0, "allowed_epsilon": 0.5, "delta": 0, "allowed_delta": 0}


def test_a_check_spends_nothing_and_every_exchange_is_named_where_each_is_approved(refused, typed, tmp_path):
    site = site_folder(tmp_path, replaced=[("[policy]", '[policy]\napprove = "each"')])
    assert typed("check", site)[0] == 0
    assert not (tmp_path / "state/journal.jsonl").exists()
    code, printed, error = typed("approve", site)
    assert (code, error) == (2, "error: nothing waits for approval\n")
    assert "every exchange waits for it once it is asked for" in printed
    assert typed("approve", site, "0123456789ab")[2].startswith("error: '0123456789ab' is not known here")


def test_what_was_spent_and_what_happened(done, refused, typed, charged):
    accounts = json.loads(done("spent", charged, "--json"))["accounts"]
    spent = [(one["account"], one["epsilon"], one["allowed_epsilon"]) for one in accounts]
    assert spent == [("label/replace", 0.0, 1.5), ("trusted", 1.0, 1.0)]
    assert [line.split("  ")[-1] for line in done("log", charged).splitlines()] == [
        "charged table 'patients': epsilon 1, delta 0 for one party (replace), if the aggregator adds its noise",
        "answered 'votes': 100 bytes",
    ]
    shown = json.loads(typed("log", charged, "--show", 2)[1])
    assert (shown["kind"], shown["answer"]) == ("votes", {"votes": [[0, 2, 1]]})
    assert "--show must be at most 2, as many lines as there are, got 3\n" in refused("log", charged, "--show", 3)
    assert typed("log", charged, "--verify")[1].startswith("2 lines, none of them missing or changed")
    assert typed("check", charged)[0] == 3


def test_lines_that_are_changed_or_gone_from_the_end_are_found_out(refused, typed, charged, tmp_path):
    path = tmp_path / "state/journal.jsonl"
    first, last = path.read_text().splitlines()
    head = json.loads(last)["hash"]  # as the coordinator was told
    assert typed("log", charged, "--verify", "--head", head)[0] == 0
    path.write_text(first + "\n")
    assert typed("log", charged, "--verify")[0] == 0
    told = refused("log", charged, "--verify", "--head", head)
    assert "lines were taken off its end, or an older copy was put back" in told
    path.write_text(f"{first}\n{last}\n".replace('"epsilon": 1.0', '"epsilon": 0.1'))
    assert "line 1 is not as it was written" in refused("log", charged, "--verify")


@pytest.mark.slow
def test_a_table_known_by_another_name_is_settled_by_a_person(refused, typed, tmp_path):
    site = site_folder(tmp_path)
    settings = Settings.load(site)
    holdings, _ = WatchedTable(settings.data, Agreement.load(settings.plan), 0).read()
    known = Identity(tmp_path / "state/tables", Journal(tmp_path / "state/journal.jsonl"))
    known.remember("patients", contents(holdings, known.key))
    site.write_text(site.read_text().replace('table = "patients"', 'table = "people"'))
    code, _, error = typed("check", site)
    assert (code, "federation party same-table SITE.toml 'patients'" in error) == (2, True)
    assert "no table 'patient' is known here; did you mean" in refused("same-table", site, "patient")
    told = "the tables 'people' and 'patients' spend one allowance from now on\n"
    assert typed("same-table", site, "patients")[1] == told
    assert typed("check", site)[0] == 0
    site.write_text(site.read_text().replace('table = "people"', 'table = "others"'))
    assert typed("new-table", site)[1] == "the table 'others' is another one than patients\n"
    assert typed("check", site)[0] == 0
    with State.found(tmp_path / "state").owned():
        assert "another process is at work" in refused("new-table", site)


def test_a_state_that_has_moved_is_served_once_somebody_has_said_that_it_is_the_newest(typed, tmp_path):
    site = site_folder(tmp_path)
    state = State.found(tmp_path / "state")
    state.journal().add("start", plan="", table="patients", **state.place | {"file": 1})
    assert typed("newest-state", site)[1] == f"{state.folder} is served from now on; never serve another copy of it\n"
    state.require_in_place(state.journal())
    assert "said that this copy of the state is the newest there is" in typed("log", site)[1]


def test_run_serves_the_plan_with_the_table_on_linux(typed, tmp_path, monkeypatch):
    site, served = site_folder(tmp_path), []
    monkeypatch.setattr("parties.site.service.run", lambda *known: served.append(known))
    assert typed("run", site, "--quiet")[0] == 0
    settings, agreement, table = served[0]
    assert (settings.name, agreement.name, table.party) == ("north", "trial", 0)
    assert len(table.read()[0].rows) == 40
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(InputError):
        party._linux()
