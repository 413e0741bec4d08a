"""The folder of a deployment is its coordinator's alone, and is sealed once."""

import json

import pytest
from support.letter_sites import CLOSING, deployed, scenario, write_public
from support.refusals import refused

from aggregator.trial.plan import TrialPlan
from federation.contract.errors import InputError
from federation.signed_messages.aggregation_messages import roster_of
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import masks_key, new_site_key, public_text, raw_public, sums_key
from scenarios.deployment.certificates import require_valid
from scenarios.deployment.folder import Folder, make_folder
from scenarios.settings.schema import resolve

FILES = {
    "README.txt", "ca.crt", "ca.key", "invitation.json", "public.csv", "scenario.yaml", "server.crt", "server.key",
    "signing.key", "world-plan.json",
}  # fmt: skip
KNOWN = {"superlink": "link.org:9", "sites": ("north", "south"), "closing": CLOSING, "rows": (60, 67), "bags": None}


def make(tmp_path, folder="D", **changed):
    public = write_public(tmp_path / "public.csv")
    return make_folder(tmp_path / folder, resolve(scenario(**changed)), public, KNOWN, ["link.org"])[0]


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sealed")
    return deployed(folder)[0], folder / "keys"


def test_it_has_all_that_is_needed_and_only_its_owner_may_look(tmp_path):
    folder = make(tmp_path)
    assert {path.name for path in folder.path.iterdir()} == FILES
    assert folder.path.stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o077 for path in folder.path.glob("*.key")}
    assert modes == dict.fromkeys(modes, 0)
    assert folder.invitation.root == (folder.path / "ca.crt").read_text()
    assert folder.invitation.aggregator == public_text(folder.signing_key.public_key())
    require_valid(folder.path, "link.org")
    TrialPlan.load(folder.path / "world-plan.json")
    # Its scenario is the one that was given, with the public rows beside it, and its page has commands filled in.
    again = resolve(str(folder.path / "scenario.yaml"))
    assert again.data.auxiliary == str(folder.path / "public.csv")
    assert again.model_copy(update={"data": None}) == resolve(scenario()).model_copy(update={"data": None})
    text = (folder.path / "README.txt").read_text()
    for part in ("--name north", f"federation collect {tmp_path}/D", "port 9 of link.org", "federation party approve"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 200


def test_nothing_is_left_of_one_that_could_not_be_made_and_a_folder_with_something_in_it_is_left_alone(tmp_path):
    refused(None, make, tmp_path, options={"noise": "off"})
    assert not (tmp_path / "D").exists()
    (tmp_path / "D").mkdir()
    make(tmp_path)
    (tmp_path / "E").mkdir()
    (tmp_path / "E" / "mine").write_text("kept")
    refused(None, make, tmp_path, "E")
    assert [path.name for path in (tmp_path / "E").iterdir()] == ["mine"]


def test_keys_seal_the_plan_and_nothing_but_them_is_added_and_no_others(sealed, tmp_path):
    folder, keys = sealed
    assert folder.sealed
    assert folder.agreement.sealed
    plain, invited = folder.agreement.model_dump(), folder.invitation.model_dump()
    assert {name for name in plain if plain[name] != invited[name]} == {"sites"}
    assert folder.seal(keys).digest == Agreement.load(folder.path / "plan.json").digest  # again, and nothing changes
    before = (folder.path / "plan.json").read_bytes()
    for site in folder.agreement.sites:
        (tmp_path / f"{site.name}.pub").write_text(public_text(new_site_key().public_key()))
    refused(None, folder.seal, tmp_path)
    assert (folder.path / "plan.json").read_bytes() == before


@pytest.mark.parametrize("name", ["plan.json", "invitation.json"])
def test_a_plan_that_was_changed_since_it_was_sealed_is_refused(sealed, name):
    """No site would answer to it, or say why."""
    path = sealed[0].path / name
    before = path.read_bytes()
    path.write_text(json.dumps(json.loads(before) | {"closing": CLOSING + 1}))
    try:
        with pytest.raises(InputError):
            sealed[0].agreement  # noqa: B018 - what is asked for
    finally:
        path.write_bytes(before)


def test_keys_that_lack_are_equal_or_are_none_are_told_and_so_is_a_folder_that_others_may_read(tmp_path):
    folder, keys = make(tmp_path), tmp_path / "keys"
    refused(None, folder.seal, keys)
    keys.mkdir()
    (keys / "north.pub").write_text(public_text(new_site_key().public_key()))
    refused(r"south\.pub", folder.seal, keys)
    (keys / "south.pub").write_text("ssh-rsa AAAA")
    refused(r"south\.pub", folder.seal, keys)
    (keys / "south.pub").write_bytes((keys / "north.pub").read_bytes())
    refused(r"--keys.*north.*south", folder.seal, keys)
    assert not folder.sealed
    with pytest.raises(InputError, match=r"--keys.*FOLDER"):
        folder.agreement  # noqa: B018 - what is asked for
    assert Folder.opened(folder.path).path == folder.path
    folder.path.chmod(0o755)
    refused("chmod 700", Folder.opened, folder.path)
    refused(None, Folder.opened, tmp_path)


def test_a_disk_that_takes_no_more_is_named(tmp_path, monkeypatch):
    folder, _ = deployed(tmp_path)
    folder.require_room()
    before = sorted(folder.path.iterdir())

    def full(path, content):
        path.with_name(path.name + ".new").write_bytes(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("scenarios.deployment.folder.write_lasting", full)
    refused(None, folder.require_room)
    assert sorted(folder.path.iterdir()) == before


def two_servers(tmp_path):
    known = {"kind": "mean_operator", "options": {"trust": "secure"}, "parties": {"quorum": 1}}
    return deployed(tmp_path, second="ombud", servers="two", **known)


def test_a_second_server_is_sealed_with_the_key_that_sites_are_told(tmp_path):
    made, keys = two_servers(tmp_path)
    sealed = made.agreement.second
    assert (sealed.name, sealed.masks) == ("ombud", raw_public(masks_key(keys["ombud"])).hex())
    readme = (made.path / "README.txt").read_text()
    for said in ("--name ombud", "federation party run second.toml", "let the sites compare it with each other"):
        assert said in readme
    path = tmp_path / "keys" / "ombud.pub"
    first = path.read_text().partition("\n")[0]
    for second in ("", "\n" + first, "\n" + "AB" * 32):
        path.write_text(first + second)
        refused(r"ombud\.pub.*2", made.seal, tmp_path / "keys")
    path.write_text(f"{first}\n{'ab' * 32}\n")
    refused(None, made.seal, tmp_path / "keys")
    path.unlink()
    refused(r"ombud\.pub", made.seal, tmp_path / "keys")


def test_a_plan_with_secure_sums_has_the_second_key_of_each_site(tmp_path):
    options = {"protect": "row", "trust": "secure"}
    made, keys = deployed(tmp_path, kind="mean_operator", options=options, parties={"quorum": 1})
    held = [raw_public(sums_key(key)) for key in keys.values()]
    assert list(roster_of(made.agreement).keys) == held
    assert "let the sites compare it with each other" in (made.path / "README.txt").read_text()
    path = tmp_path / "keys" / "south.pub"
    first = path.read_text().partition("\n")[0]
    for keys, named in ((first, "south"), (f"{first}\n{first}", r"south\.pub.*2.*Ed25519")):
        path.write_text(keys)
        refused(named, made.seal, tmp_path / "keys")
