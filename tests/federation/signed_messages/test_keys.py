"""Keys in files."""

import os
from base64 import b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as on_curve
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from support.refusals import refused

from federation.contract.errors import InputError
from federation.signed_messages.keys import (
    ed25519_key_from_text,
    fingerprint,
    load_key,
    masks_key,
    new_site_key,
    public_text,
    raw_public,
    require_private,
    save_key,
    site_key_from_text,
    sums_key,
)


def test_a_key_comes_back_from_its_file_which_nobody_else_reads_and_is_never_replaced(tmp_path, monkeypatch):
    key, synced, fsync = new_site_key(), [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size) or fsync(file))
    save_key(tmp_path / "key", key)
    assert synced == [(tmp_path / "key").stat().st_size]  # it is on the disk before anybody is told of it
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    again = load_key(tmp_path / "key", EllipticCurvePrivateKey)
    assert fingerprint(again.public_key()) == fingerprint(key.public_key())
    with pytest.raises(FileExistsError):
        save_key(tmp_path / "key", new_site_key())


def test_a_file_that_others_may_read_is_refused_with_what_to_type(tmp_path):
    save_key(tmp_path / "key", new_site_key())
    (tmp_path / "key").chmod(0o640)
    refused(rf"chmod.*600.*{tmp_path / 'key'}", load_key, tmp_path / "key", EllipticCurvePrivateKey)
    tmp_path.chmod(0o755)
    refused(rf"chmod.*700.*{tmp_path}", require_private, tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_file_of_another_user_is_refused(tmp_path):
    save_key(tmp_path / "key", new_site_key())
    os.chown(tmp_path / "key", 12345, -1)
    with pytest.raises(InputError):
        require_private(tmp_path / "key")


@pytest.mark.parametrize("other", [Ed25519PrivateKey.generate(), on_curve(SECP256R1())], ids=["kind", "curve"])
def test_a_key_of_another_kind_is_refused(tmp_path, other):
    save_key(tmp_path / "key", other)
    with pytest.raises(InputError, match="384"):
        load_key(tmp_path / "key", EllipticCurvePrivateKey)


@pytest.mark.parametrize("content", [b"", b"no key", b"\x80\xff", None], ids=["empty", "text", "bytes", "not there"])
def test_what_is_no_key_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "key").write_bytes(content)
        (tmp_path / "key").chmod(0o600)
    with pytest.raises(InputError):
        load_key(tmp_path / "key", Ed25519PrivateKey)


def test_public_keys_travel_as_a_line_and_fingerprints_tell_them_apart():
    key = new_site_key().public_key()
    assert site_key_from_text(public_text(key), "site 'north'") == key
    assert "\n" not in public_text(key)
    keys = [key, new_site_key().public_key(), Ed25519PublicKey.from_public_bytes(bytes(32))]
    assert len({fingerprint(key) for key in keys}) == 3


OTHER = public_text(Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key())


PARTS = (b"ecdsa-sha2-nistp384", b"nistp384", b"\x02" + bytes(48))
COMPRESSED = b"".join(len(part).to_bytes(4, "big") + part for part in PARTS)


@pytest.mark.parametrize(
    "text",
    ["", "ssh-ed25519 AAAA", "ü", OTHER, f"ecdsa-sha2-nistp384 {b64encode(COMPRESSED).decode()}"],
    ids=["empty", "short", "letter", "other kind", "compressed"],
)
def test_other_lines_are_refused_with_where_they_are(text):
    with pytest.raises(InputError):
        site_key_from_text(text, "site 'north'")


def test_a_private_key_that_was_sent_by_mistake_is_not_shown(tmp_path):
    save_key(tmp_path / "key", new_site_key())
    for line in (tmp_path / "key").read_text().splitlines():
        with pytest.raises(InputError, match=r"PRIVATE.*KEY") as told:
            site_key_from_text(line, "south.pub")
        assert line not in str(told.value)


def test_an_aggregators_key_is_of_its_own_kind():
    assert public_text(ed25519_key_from_text(OTHER, "aggregator")) == OTHER
    with pytest.raises(InputError, match="Ed25519"):
        ed25519_key_from_text(public_text(new_site_key().public_key()), "aggregator")


@pytest.mark.parametrize("derived", [sums_key, masks_key])
def test_keys_for_sums_and_masks_follow_from_ones_own_and_tell_nothing_of_it(derived):
    key = new_site_key()
    own = derived(key)
    assert raw_public(own) == raw_public(derived(key)) != raw_public(derived(new_site_key()))
    scalar = key.private_numbers().private_value.to_bytes(48, "big")
    assert own.private_bytes_raw() not in (scalar[:32], scalar[16:])
    assert masks_key(key).private_bytes_raw() != sums_key(key).private_bytes_raw()
