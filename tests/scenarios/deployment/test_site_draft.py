"""The configuration that a new site begins with is one that it can run with."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.exchanges import agreement_for
from support.questions import QUESTIONS
from support.refusals import refused

from federation.contract.guarantee import Adjacency, Unit
from federation.signed_messages.keys import fingerprint
from parties.site.accounts import Account
from parties.site.settings import SecondSettings, Settings, configuration
from scenarios.data.hashing import Hashing
from scenarios.deployment.site_draft import second_draft, site_draft

SIGNING = Ed25519PrivateKey.generate()
COUNTED = {"kind": "counts", "times": 1, "same": {}, "length": 1, "reply": 1, "masked": True}


def drafted(tmp_path, data="rows.csv", **changed):
    invitation = agreement_for(SIGNING, [], QUESTIONS["votes"], sites=[{"name": "north"}], **changed)
    path = tmp_path / "site.toml"
    path.write_text(site_draft(invitation, "north", Path(data)))
    path.chmod(0o600)
    return Settings.load(path), path.read_text()


@pytest.mark.parametrize("needed", [True, False])
def test_it_allows_what_the_invitation_asks_and_leaves_public_features_to_the_site(tmp_path, needed):
    found, text = drafted(tmp_path, public_features=needed)
    assert ("this plan needs true: it protects labels alone" in text) is needed
    assert found.policy.aggregators == (fingerprint(SIGNING.public_key()),)
    assert (found.policy.protocols, found.policy.public_features) == (("class_ratio",), False)
    label, party = (Account(unit, Adjacency.REPLACE, 1.0, 0.0) for unit in (Unit.LABEL, Unit.PARTY))
    assert found.allowances.proved == (label,)
    assert (found.allowances.trusted, found.allowances.trusted_answers) == (party, 1)
    assert (found.data.file, found.data.table) == (tmp_path / "rows.csv", "rows")


@pytest.mark.parametrize("servers", ["one", "one_semi_honest", "two"])
def test_nobody_is_believed_unless_somebody_at_the_site_says_so(tmp_path, servers):
    second = {"second": {"name": "ombud"}} if servers == "two" else {}
    found, text = drafted(tmp_path, asked=[COUNTED], servers=servers, **second)
    assert (found.policy.servers, found.policy.second_servers) == (("one",), ())
    assert ("as 'ombud' reads it out by telephone" in text) is (servers == "two")
    assert (f'this plan needs "{servers}"' in text) is (servers != "one")


def test_a_second_server_begins_with_what_it_needs_and_no_table(tmp_path):
    known = {"sites": [{"name": "north"}], "servers": "two", "second": {"name": "ombud"}}
    invitation = agreement_for(SIGNING, [], QUESTIONS["counts"], **known)
    path = tmp_path / "second.toml"
    path.write_text(second_draft(invitation, "ombud"))
    path.chmod(0o600)
    found = configuration(path)
    assert isinstance(found, SecondSettings)
    assert found.policy.aggregators == (fingerprint(SIGNING.public_key()),)
    assert (found.name, found.plan, found.policy.approve) == ("ombud", tmp_path / "plan.json", "plan")
    refused(None, Settings.load, path)


@pytest.mark.parametrize("label", [{"name": "y", "range": [0.0, 5.0]}, {"name": "ill", "classes": ["no", "yes"]}])
def test_it_names_every_column_of_the_plan(tmp_path, label):
    changed = {"bags": {"column": "ward", "most": 3}, "person": "who", "rows_per_person": 1, "label": label}
    _, text = drafted(tmp_path, **changed)
    in_words = ("p: numbers", "q: numbers", "ward: in which bag", "who: whose row", f"{label['name']}: what is learned")
    for name in in_words:
        assert f"#   {name}" in text


@pytest.mark.parametrize("mark", ["\n", "\r", "\x85", "\u2028", "\x00", "\x7f", '"'])
def test_whoever_wrote_the_invitation_writes_no_line_of_it(tmp_path, mark):
    text = f"x{mark}[policy]{mark}public-features = true{mark}"
    label = {"name": text, "classes": [text, "b"]}
    changed = {"bags": {"column": text, "most": 3}, "person": text, "label": label, "protocol": text}
    found, _ = drafted(tmp_path, columns=[{"name": text}], name=text, **changed)
    assert not found.policy.public_features
    assert found.policy.protocols == (text,)


def test_names_that_toml_would_misread_are_quoted_and_hashed_words_are_named_by_their_column(tmp_path):
    found, text = drafted(tmp_path, data='a "b"\\c.csv', columns=[{"name": "a mole"}])
    assert '# "a mole" = "NAME HERE"\n# ill = {from = "NAME HERE"' in text
    assert found.data.file == tmp_path / 'a "b"\\c.csv'
    assert json.dumps(found.data.table) == json.dumps('a "b"\\c')
    columns = [{"name": "age"}, *({"name": name} for name in Hashing(4, "note").names)]
    _, text = drafted(tmp_path, columns=columns)
    assert text.count("note") == 1
    assert "#   note: texts, of which the words are hashed\n" in text


def test_a_plan_with_secure_sums_asks_how_many_sites_may_collude(tmp_path):
    found, text = drafted(tmp_path, asked=[COUNTED])
    assert found.policy.colluding == 0.1
    assert "\ncolluding = 0.1 " in text
    assert "colluding" not in drafted(tmp_path)[1]
