"""k-ary randomised response in exact arithmetic: an answer is kept, or drawn afresh among all k (Warner 1965).

With probability lambda = redraw / 2^64 the answer is one of the k, each as likely; so it is the true one with
probability 1 - lambda + lambda/k, and another given one with lambda/k.
"""

from __future__ import annotations

import math

import numpy as np

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.lazy_uniform import collect
from federation.numerics.arrays import Integers

WORDS = 2**64
MIN_EPSILON = 1e-6  # below it answers tell next to nothing, and lambda's distance to 1 would feel its rounding
_SAFE = 1 + 2.0**-48  # covers the rounding of lambda's computation


def calibrate(answers: int, epsilon: float) -> int:
    """The smallest `redraw` with (1 - lambda) k / lambda + 1 <= e^epsilon, but for 1e-14 of it; k = `answers` >= 1.

    Raises `InputError` for epsilon below 1e-6.

    Examples:
        >>> calibrate(answers=2, epsilon=1.0) / WORDS
        0.5379
    """
    if not epsilon >= MIN_EPSILON:
        raise InputError(f"epsilon must be at least {MIN_EPSILON:g} for randomised response, got {epsilon}")
    share = answers / (math.expm1(min(epsilon, 100.0)) + answers) * _SAFE
    return max(1, math.ceil(share * WORDS))


def respond(truth: Integers, answers: int, redraw: int, bits: NoiseBits) -> Integers:
    """Answers (n,) int64 in 0..k-1 to the true ones (n,).

    Examples:
        >>> respond(np.zeros(10, dtype=int), 3, calibrate(3, 1.0), NoiseBits(1, "example")).tolist()
        [0, 2, 0, 0, 0, 0, 1, 0, 1, 0]
    """
    fresh = _uniform(bits, answers, len(truth))
    return np.where(bits.words(len(truth)) < np.uint64(redraw), fresh, truth)


def probabilities(answers: int, redraw: int) -> tuple[float, float]:
    """Of the true answer, and of each other one.

    Examples:
        >>> true, other = probabilities(3, calibrate(3, 1.0))
        >>> true, other, math.log(true / other)
        (0.5761, 0.2119, 1.0)
    """
    other = redraw / WORDS / answers
    return 1 - (answers - 1) * other, other


def delta(epsilon: float, answers: int, redraw: int) -> float:
    """The exact delta at any real epsilon: the likelihood ratio is (p/q, q/p) for two answers and 1 for the others.

    Examples:
        >>> [round(delta(e, 2, calibrate(2, 1.0)), 4) for e in (0.0, 0.5, 1.0)]
        [0.4621, 0.2876, 0.0]
    """
    if answers == 1:
        return max(0.0, -math.expm1(epsilon))
    true, other = probabilities(answers, redraw)
    factor = math.exp(min(epsilon, 700.0))
    parts = (true - factor * other, other - factor * true, (answers - 2) * other * (1 - factor))
    return sum(max(0.0, part) for part in parts)


def _uniform(bits: NoiseBits, answers: int, size: int) -> Integers:
    """Uniform on 0..k-1, (size,) int64: words in an incomplete last round of k are drawn again."""
    last = np.uint64(WORDS - WORDS % answers - 1)

    def draw(count: int) -> Integers:
        words = bits.words(count)
        return (words[words <= last] % np.uint64(answers)).astype(np.int64)

    return collect(draw, size, 1.0)
