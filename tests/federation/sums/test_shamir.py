"""Shares of secrets: as many as the threshold recover them, fewer say nothing."""

from __future__ import annotations

import secrets

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.secure_aggregation import masks as shamir
from federation.secure_aggregation.masks import CHUNKS, PRIME, recovered, split


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_shares_recover_all_secrets(data) -> None:
    shares = data.draw(st.integers(1, 40))
    threshold = data.draw(st.integers(1, shares))
    own = [data.draw(st.binary(min_size=32, max_size=32)) for _ in range(2)]
    parts = split(own, threshold, shares, data.draw(st.binary(min_size=32, max_size=32)))
    assert parts.shape == (2, shares, 36)
    places = np.array(data.draw(st.permutations(range(shares))))[None, :threshold]
    assert [recovered(part[places[0]][None], places + 1)[0] for part in parts] == own


def evaluated(coefficients: list[int], place: int) -> int:
    return sum(one * pow(place, power, PRIME) for power, one in enumerate(coefficients)) % PRIME


@pytest.mark.parametrize("threshold", [1, 2, 37, 2049])
def test_shares_are_values_of_polynomials_as_python_computes_them(threshold: int, monkeypatch) -> None:
    drawn = {}

    def kept(key: bytes, count: int) -> np.ndarray:
        drawn["uniform"] = np.random.default_rng(0).integers(0, PRIME, count)
        return drawn["uniform"]

    monkeypatch.setattr(shamir, "_uniform", kept)
    secret, shares = b"\xff" * 32, threshold + 2
    values = split([secret], threshold, shares, bytes(32))[0].view("<u4")
    whole = int.from_bytes(secret, "little")
    above = drawn["uniform"].reshape(threshold - 1, CHUNKS).tolist()
    for place in (1, shares):
        for chunk in (0, CHUNKS - 1):
            coefficients = [whole >> (30 * chunk) & (2**30 - 1), *(row[chunk] for row in above)]
            assert values[place - 1, chunk] == evaluated(coefficients, place)


def test_many_secrets_at_once_each_from_other_places() -> None:
    own = [secrets.token_bytes(32) for _ in range(50)]
    parts = split(own, 9, 30, secrets.token_bytes(32))
    random = np.random.default_rng(0)
    places = np.array([random.permutation(30)[:9] for _ in own])
    chosen = np.array([part[at] for part, at in zip(parts, places, strict=True)])
    assert recovered(chosen, places + 1) == own


def test_fewer_shares_fit_every_secret() -> None:
    # Through t - 1 points and any value at 0 there is one polynomial: the last share decides the secret, one to one.
    parts = split([bytes(32)], 3, 5, bytes(32))[0].view("<u4")[:, 0].astype(np.int64)
    weights = shamir._weights_at_zero(np.array([[1, 2, 3]]))[0]
    last = np.arange(0, PRIME, 10**6)
    first = (weights[:2] * parts[:2] % PRIME).sum()
    assert len(np.unique((first + weights[2] * last % PRIME) % PRIME)) == len(last)


def test_coefficients_are_uniform_and_below_the_prime() -> None:
    drawn = shamir._uniform(bytes(32), 100_000)
    assert drawn.min() >= 0
    assert drawn.max() < PRIME
    counts = np.bincount(drawn // (PRIME // 16 + 1), minlength=16)
    assert ((counts - 6250) ** 2 / 6250).sum() < 45  # chi-square of 15 degrees: a chance below 1e-4


def test_the_prime_itself_is_no_coefficient_and_what_is_refused_is_drawn_again(monkeypatch) -> None:
    def stream(key: bytes, words: int) -> np.ndarray:
        drawn = np.arange(2 * words, dtype="<u4")
        drawn[:70] = 2**32 - 1  # the prime, when it is halved
        return drawn.view("<u8")

    monkeypatch.setattr(shamir, "stream", stream)
    assert shamir._uniform(bytes(32), 10).tolist() == [place // 2 for place in range(70, 80)]


def test_what_is_no_secret_is_none() -> None:
    def said(chunks: list[int]) -> bytes | None:
        """Of a threshold of 1 a share is the secret's chunks."""
        return recovered(np.array(chunks, dtype="<u4").view(np.uint8)[None, None], np.array([[1]]))[0]

    largest = [2**30 - 1] * 8 + [2**16 - 1]
    assert said(largest) == b"\xff" * 32
    assert said([2**30] + [0] * 8) is None
    assert said([0] * 8 + [2**16]) is None
