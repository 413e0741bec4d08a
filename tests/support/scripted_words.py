"""Random words that were written down before: laws of mechanisms by running every case of them, or the hard ones."""

from collections.abc import Iterable

import numpy as np

from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels.randomised_response import WORDS


class Script:
    """Words that were written down before, one array per call."""

    def __init__(self, *calls: np.ndarray) -> None:
        self._calls = list(calls)

    def words(self, count: int) -> np.ndarray:
        words = self._calls.pop(0)
        return np.concatenate([words, np.zeros(max(0, count - len(words)), dtype=np.uint64)])[:count]


def evenly(count: int) -> np.ndarray:
    return (np.arange(count, dtype=np.uint64) * np.uint64(WORDS // count)).astype(np.uint64)


class WordsThenBits:
    """Given words first, then random ones; `taken` is how many of both."""

    def __init__(self, words: Iterable[int], later: NoiseBits | None = None) -> None:
        self.taken, self._words, self._bits = 0, [*words], later or NoiseBits(1, "later")

    def words(self, count: int) -> np.ndarray:
        self.taken += count
        given, self._words = self._words[:count], self._words[count:]
        return np.concatenate([np.array(given, dtype=np.uint64), self._bits.words(count - len(given))])
