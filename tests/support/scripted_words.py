"""Random words that were written down before: the law of a mechanism by running every case of them."""

import numpy as np

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
