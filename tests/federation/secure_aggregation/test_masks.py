"""Integers modulo 2^64: exact, and no sum that is allowed wraps around.

Keys of a masked sum: everything is bound to the plan and to who talks to whom.

Shares of secrets: as many as the threshold recover them, fewer say nothing.
"""

import secrets
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.additive import AdditiveMechanism, calibrate, calibrate_laplace
from federation.mechanisms.sums import shares
from federation.secure_aggregation import masks

KINDS = ("discrete_laplace", "discrete_gaussian", "l2_gamma")


def by_kind(kind: str) -> AdditiveMechanism:
    if kind == "discrete_laplace":
        return calibrate_laplace(l1_sensitivity=2.0, dimension=3, epsilon=0.5)
    noise = "pure" if kind == "l2_gamma" else "gaussian"
    return calibrate(noise, sensitivity=2.0, dimension=3, epsilon=0.5, delta=1e-6)


@given(st.lists(st.integers(-masks.MOST_STEPS, masks.MOST_STEPS), min_size=1, max_size=9))
def test_sums_are_those_of_whole_numbers_while_they_are_below_two_to_the_63(values: list[int]) -> None:
    parts = [masks.encoded(np.array([value])) for value in values]
    total = int(masks.decoded(np.sum(parts, axis=0, dtype=np.uint64))[0])
    assert total == (sum(values) + 2**63) % 2**64 - 2**63
    if abs(sum(values)) < 2**63:
        assert total == sum(values)


@pytest.mark.parametrize("kind", KINDS)
def test_at_the_bound_nothing_wraps_and_beyond_it_is_refused(kind: str) -> None:
    mechanism, contributors, parties = by_kind(kind), 25, 100
    bound = masks.noise_bound(mechanism, contributors, parties, 3)
    largest = (masks.MOST_STEPS - bound) // parties
    masks.require_room(largest * (1 - 1e-9), mechanism, contributors, parties, 3)
    assert parties * int(largest) + int(bound) <= 2**62 + 2**11  # doubles of that size are so far apart
    steps = np.array([float(int(largest) // 2**12 * 2**12)])  # a whole number that is a double
    for sign in (1, -1):
        total = np.sum([masks.encoded(sign * steps)] * parties, axis=0, dtype=np.uint64)
        assert int(masks.decoded(total)[0]) == sign * int(steps[0]) * parties
    refused("64", masks.require_room, largest * (1 + 1e-6), mechanism, contributors, parties, 3)
    refused(None, masks.require_room, float("nan"), mechanism, contributors, parties, 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("parties", "contributors"), [(40, 40), (40, 10)])
def test_noise_stays_far_within_its_bound(kind: str, parties: int, contributors: int) -> None:
    mechanism = by_kind(kind)
    drawn = [shares.draw(mechanism, contributors, NoiseBits(3, kind, party), draws=50) for party in range(parties)]
    total = np.sum(drawn, axis=0)
    bound = masks.noise_bound(mechanism, contributors, parties, total.size)
    assert np.abs(total).max() < bound
    assert bound < 200 * np.sqrt(shares.variance(mechanism, contributors) * parties / contributors) / mechanism.step


def test_the_bounds_of_laplace_and_gaussian_shares_beside_their_exact_tails() -> None:
    # All shares of one whole noise: P[|X| > k] = 2 q^(k+1) / (1 + q), which is above 2^-100 until 100 ln 2 scales.
    mechanism = by_kind("discrete_laplace")
    bound = masks.noise_bound(mechanism, 30, 30, 1)
    exact = mechanism.grid_scale * 100 * np.log(2)
    assert exact < bound < 2.1 * exact
    # At half the inverse scale either part of a share has a generating function of 2^(1/m): 90 more are 2s 3 ln 2.
    more = masks.noise_bound(mechanism, 30, 120, 1) - bound
    assert more == pytest.approx(2 * mechanism.grid_scale * 3 * np.log(2))
    mechanism = by_kind("discrete_gaussian")
    exact = mechanism.grid_scale * norm.isf(2.0**-101)
    assert exact < masks.noise_bound(mechanism, 30, 30, 1) < 1.1 * exact
    assert masks.noise_bound(mechanism, 30, 120, 1) == pytest.approx(2 * masks.noise_bound(mechanism, 30, 30, 1))


def test_the_bound_of_gamma_shares_is_that_of_their_generating_function() -> None:
    """Chernoff's bound at half the inverse scale, that of the Gaussian part, and half a step for each rounded share."""
    mechanism = by_kind("l2_gamma")
    likely, scale = np.log(4 * 7) + 100 * np.log(2), mechanism.scale / mechanism.step
    mixed = 2 * scale * (likely + 2 * (120 / 30) * np.log(4 / 3))  # of 3 dimensions
    assert masks.noise_bound(mechanism, 30, 120, 7) == pytest.approx(mixed + np.sqrt(32 * 120 * likely) + 60, rel=1e-12)
    for noise in (mixed, np.sqrt(32 * 120 * likely), 60):
        assert noise > 1e-9 * masks.noise_bound(mechanism, 30, 120, 7)  # each is seen above


def test_noise_takes_its_room_beside_the_values() -> None:
    wide = SimpleNamespace(name="discrete_laplace", scale=2.0**53, step=1.0, dimension=3)
    room = masks.MOST_STEPS - masks.noise_bound(wide, 25, 100, 3)
    assert 0 < room < 0.9 * masks.MOST_STEPS
    masks.require_room(room / 100 * (1 - 1e-9), wide, 25, 100, 3)
    with pytest.raises(InputError, match="64"):
        masks.require_room(room / 100 * (1 + 1e-9), wide, 25, 100, 3)


@pytest.mark.parametrize("value", [0.5, 2.0**62 + 2**10, -(2.0**63), np.nan, np.inf])
def test_what_is_not_whole_or_too_large_is_refused(value: float) -> None:
    with pytest.raises(InputError, match=r"2.*62"):
        masks.encoded(np.array([value]))


ONE, OTHER = bytes(32), bytes(31) + b"\1"


def test_both_sides_have_the_same_keys() -> None:
    first, second = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    common = masks.shared(first, masks.public(second))
    assert common == masks.shared(second, masks.public(first))
    assert masks.mask_key(common, ONE, 3, 9) == masks.mask_key(common, ONE, 9, 3)
    there, back = masks.letter_keys(common, ONE, 3, 9)
    assert there != back
    assert masks.letter_keys(common, ONE, 9, 3) == (back, there)
    assert masks.shared(first, bytes(32)) is None  # a key that gives nothing secret


def test_letters_open_for_their_ends_only() -> None:
    letter = masks.sealed(ONE, 3, 9, b"shares")
    assert masks.opened(ONE, 3, 9, letter) == b"shares"
    for key, *ends, sent in [(ONE, 9, 3, letter), (OTHER, 3, 9, letter), (ONE, 3, 9, letter[:-1] + b"x")]:
        assert masks.opened(key, *ends, sent) is None


def test_numbers_uses_and_plans_make_other_keys() -> None:
    found = {
        masks.mask_key(ONE, ONE, 3, 9),
        masks.mask_key(ONE, ONE, 3, 10),
        masks.mask_key(ONE, ONE, 4, 9),
        masks.mask_key(ONE, OTHER, 3, 9),
        *masks.letter_keys(ONE, ONE, 3, 9),
        *masks.letter_keys(ONE, OTHER, 3, 9),
        masks.derived(ONE, ONE, "self"),
        masks.derived(ONE, ONE, "masks"),
    }
    assert len(found) == 10


def test_signatures_are_for_one_step_of_one_party() -> None:
    key = Ed25519PrivateKey.generate()
    own = key.public_key().public_bytes_raw()
    said = masks.signature(key, ONE, "live", 3, b"content")
    assert masks.signed(own, said, ONE, "live", 3, b"content")
    for changes in [
        {"digest": OTHER},
        {"use": "sent"},
        {"party": 4},
        {"content": b"other"},
        {"key": b"\xff" * 32},
        {"said": b""},
    ]:
        known = {"key": own, "said": said, "digest": ONE, "use": "live", "party": 3, "content": b"content"}
        assert not masks.signed(*(known | changes).values())


@pytest.mark.parametrize("drawn", ["masks", "coefficients"])
def test_masks_and_coefficients_are_uniform(drawn: str) -> None:
    if drawn == "masks":
        words = masks.stream(ONE, 100_000)
        assert words.dtype == np.uint64
        assert (masks.stream(ONE, 10) == words[:10]).all()
        cells = (words >> np.uint64(60)).astype(int)
    else:
        words = masks._uniform(bytes(32), 100_000)
        assert 0 <= words.min() <= words.max() < masks.PRIME
        cells = words // (masks.PRIME // 16 + 1)
    counts = np.bincount(cells, minlength=16)
    assert ((counts - 6250) ** 2 / 6250).sum() < 45  # chi-square of 15 degrees: a chance below 1e-4


@given(st.data())
def test_any_shares_recover_all_secrets(data) -> None:
    shares = data.draw(st.integers(1, 40))
    threshold = data.draw(st.integers(1, shares))
    own = [data.draw(st.binary(min_size=32, max_size=32)) for _ in range(2)]
    parts = masks.split(own, threshold, shares, data.draw(st.binary(min_size=32, max_size=32)))
    assert parts.shape == (2, shares, 36)
    places = np.array(data.draw(st.permutations(range(shares))))[None, :threshold]
    assert [masks.recovered(part[places[0]][None], places + 1)[0] for part in parts] == own


def evaluated(coefficients: list[int], place: int) -> int:
    return sum(one * pow(place, power, masks.PRIME) for power, one in enumerate(coefficients)) % masks.PRIME


@pytest.mark.parametrize("threshold", [1, 2, 37, pytest.param(2049, marks=pytest.mark.slow)])
def test_shares_are_values_of_polynomials_as_python_computes_them(threshold: int, monkeypatch) -> None:
    drawn = {}

    def kept(key: bytes, count: int) -> np.ndarray:
        drawn["uniform"] = np.random.default_rng(0).integers(0, masks.PRIME, count)
        return drawn["uniform"]

    monkeypatch.setattr(masks, "_uniform", kept)
    secret, shares = b"\xff" * 32, threshold + 2
    values = masks.split([secret], threshold, shares, bytes(32))[0].view("<u4")
    whole = int.from_bytes(secret, "little")
    above = drawn["uniform"].reshape(threshold - 1, masks.CHUNKS).tolist()
    for place in (1, shares):
        for chunk in (0, masks.CHUNKS - 1):
            coefficients = [whole >> (30 * chunk) & (2**30 - 1), *(row[chunk] for row in above)]
            assert values[place - 1, chunk] == evaluated(coefficients, place)


def test_many_secrets_at_once_each_from_other_places() -> None:
    own = [secrets.token_bytes(32) for _ in range(50)]
    parts = masks.split(own, 9, 30, secrets.token_bytes(32))
    random = np.random.default_rng(0)
    places = np.array([random.permutation(30)[:9] for _ in own])
    chosen = np.array([part[at] for part, at in zip(parts, places, strict=True)])
    assert masks.recovered(chosen, places + 1) == own


def test_fewer_shares_fit_every_secret() -> None:
    # Through t - 1 points and any value at 0 there is one polynomial: the last share decides the secret, one to one.
    parts = masks.split([bytes(32)], 3, 5, bytes(32))[0].view("<u4")[:, 0].astype(np.int64)
    weights = masks._weights_at_zero(np.array([[1, 2, 3]]))[0]
    last = np.arange(0, masks.PRIME, 10**6)
    first = (weights[:2] * parts[:2] % masks.PRIME).sum()
    assert len(np.unique((first + weights[2] * last % masks.PRIME) % masks.PRIME)) == len(last)


def test_the_prime_itself_is_no_coefficient_and_what_is_refused_is_drawn_again(monkeypatch) -> None:
    def stream(key: bytes, words: int) -> np.ndarray:
        drawn = np.arange(2 * words, dtype="<u4")
        drawn[:70] = 2**32 - 1  # the prime, when it is halved
        return drawn.view("<u8")

    monkeypatch.setattr(masks, "stream", stream)
    assert masks._uniform(bytes(32), 10).tolist() == [place // 2 for place in range(70, 80)]


def test_what_is_no_secret_is_none() -> None:
    def said(chunks: list[int]) -> bytes | None:
        """Of a threshold of 1 a share is the secret's chunks."""
        return masks.recovered(np.array(chunks, dtype="<u4").view(np.uint8)[None, None], np.array([[1]]))[0]

    largest = [2**30 - 1] * 8 + [2**16 - 1]
    assert said(largest) == b"\xff" * 32
    assert said([2**30] + [0] * 8) is None
    assert said([0] * 8 + [2**16]) is None
