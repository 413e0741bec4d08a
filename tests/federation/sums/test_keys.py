"""Keys of a masked sum: everything is bound to the plan and to who talks to whom."""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from federation.secure_aggregation import masks as keys

ONE, OTHER = bytes(32), bytes(31) + b"\1"


def test_both_sides_have_the_same_keys() -> None:
    first, second = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    common = keys.shared(first, keys.public(second))
    assert common == keys.shared(second, keys.public(first))
    assert keys.mask_key(common, ONE, 3, 9) == keys.mask_key(common, ONE, 9, 3)
    there, back = keys.letter_keys(common, ONE, 3, 9)
    assert there != back
    assert keys.letter_keys(common, ONE, 9, 3) == (back, there)


def test_numbers_uses_and_plans_make_other_keys() -> None:
    found = {
        keys.mask_key(ONE, ONE, 3, 9),
        keys.mask_key(ONE, ONE, 3, 10),
        keys.mask_key(ONE, ONE, 4, 9),
        keys.mask_key(ONE, OTHER, 3, 9),
        *keys.letter_keys(ONE, ONE, 3, 9),
        *keys.letter_keys(ONE, OTHER, 3, 9),
        keys.derived(ONE, ONE, "self"),
        keys.derived(ONE, ONE, "masks"),
    }
    assert len(found) == 10


def test_a_key_that_gives_nothing_secret() -> None:
    assert keys.shared(X25519PrivateKey.generate(), bytes(32)) is None


def test_letters_open_for_their_ends_only() -> None:
    letter = keys.sealed(ONE, 3, 9, b"shares")
    assert keys.opened(ONE, 3, 9, letter) == b"shares"
    assert keys.opened(ONE, 9, 3, letter) is None
    assert keys.opened(OTHER, 3, 9, letter) is None
    assert keys.opened(ONE, 3, 9, letter[:-1] + b"x") is None


def test_signatures_are_for_one_step_of_one_party() -> None:
    key = Ed25519PrivateKey.generate()
    own = key.public_key().public_bytes_raw()
    said = keys.signature(key, ONE, "live", 3, b"content")
    assert keys.signed(own, said, ONE, "live", 3, b"content")
    for digest, use, party, content in [
        (OTHER, "live", 3, b"content"),
        (ONE, "sent", 3, b"content"),
        (ONE, "live", 4, b"content"),
        (ONE, "live", 3, b"other"),
    ]:
        assert not keys.signed(own, said, digest, use, party, content)
    assert not keys.signed(b"\xff" * 32, said, ONE, "live", 3, b"content")
    assert not keys.signed(own, b"", ONE, "live", 3, b"content")


def test_masks_are_uniform_words() -> None:
    words = keys.stream(ONE, 100_000)
    assert words.dtype == np.uint64
    assert (keys.stream(ONE, 10) == words[:10]).all()
    high = np.bincount((words >> np.uint64(60)).astype(int), minlength=16)
    assert ((high - 6250) ** 2 / 6250).sum() < 45
