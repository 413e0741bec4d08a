"""Private selection: repeat a private computation a random number of times, keep the best, and account for all.

An analyst who tries protocols one after another on private rows and keeps the best pays for every try. The price is two
or three times that of one try if the number of tries is random and secret (Liu and Talwar 2019, geometric; Papernot and
Steinke 2022, the law below). A try is any private computation that ends with a score. For example, it draws one of
several protocols, runs it, and scores it privately.

Law. For eta > -1 and 0 < gamma < 1 the number of tries K >= 1 has the probabilities

    P[K = k] ∝ (1 - gamma)^k prod_{l=1}^{k-1} (l + eta)/(l + 1).

It is geometric for eta = 1 and logarithmic for eta = 0. With f(x) = E x^K and m = E K,

    f'(1 - u) = m (gamma/(gamma + (1 - gamma) u))^(1 + eta) for 0 <= u <= 1.

Theorem. Let delta(.) be a privacy curve of one try Q: Q(S) <= e^x Q'(S) + delta(x) for all x >= 0, all sets S and all
neighbours, both ways. Let r >= 0 be so large that gamma (e^r - 1) >= (1 - gamma) delta(r). Then the best of K
independent tries, ties broken at random, is (epsilon + (1 + eta) r, m delta(epsilon))-private for every epsilon >= 0.

Proof. Each try also draws a uniform number, which decides ties. Let u(y) be the probability that a further try does
better than y. The best of k tries is y with density k Q(dy) (1 - u)^(k - 1). The best of K tries therefore has the law
A(dy) = Q(dy) f'(1 - u). On neighbouring data u becomes u'. As "better than y" is an event, u' <= e^r u + delta(r).
Hence

    gamma + (1 - gamma) u' <= gamma + (1 - gamma) e^r u + gamma (e^r - 1) = e^r (gamma + (1 - gamma) u),

and so f'(1 - u) <= e^((1 + eta) r) f'(1 - u'). For every set S of results, A(S) - e^(epsilon + (1 + eta) r) A'(S) is
therefore at most the integral of f'(1 - u) (Q - e^epsilon Q')(dy) over S. As f' lies between 0 and m, that integral is
at most m delta(epsilon).

Tries that are epsilon-private have delta(epsilon) = 0 and r <= epsilon. So (2 + eta) epsilon is enough, 3 epsilon for
the geometric law. It is less for few tries. For a curve of which only epsilon-privacy is known, r is
ln((e^epsilon + gamma)/(1 + gamma e^epsilon)). No smaller r holds, as some tries attain it. Renyi bounds (Papernot and
Steinke 2022, Theorem 2) of Gaussian tries are larger than the bound of the theorem.

The result does not reveal K, and K must stay secret in every other way; the running time is one of them. The program
therefore draws K before it reads any row, and no time limit may cut the tries short.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

from federation.contract.errors import InputError
from federation.contract.guarantee import require_delta, require_epsilon
from federation.contract.query import Curve
from federation.contract.randomness import NoiseBits
from federation.contract.validation import required
from federation.mechanisms.noise.lazy_uniform import floor_exponential
from federation.mechanisms.noise.mechanism import require_epsilon_from_zero, require_scale

T = TypeVar("T")

GEOMETRIC, LOGARITHMIC = Fraction(1), Fraction(0)
_MOST_TRIES = 1e6  # on average
_HALVINGS = 60


@dataclass(frozen=True)
class RandomStopping:
    """The law of the number of tries, with 1 - gamma = exp(-1/scale), and what the best of them costs.

    `eta` lies above -1 and at most at 1, beyond which as many tries cost more. Raises `InputError` for another, and for
    a scale that is no whole number, or `Fraction` of two, from 1 to 2^40.

    Examples:
        >>> law = RandomStopping(scale=10)
        >>> round(law.mean, 2)
        10.51
        >>> law.draw(NoiseBits(1, "example"))
        14
        >>> law.spent(weakest_curve(1.0), 1.0)  # no more than three times the epsilon of a try
        (2.609, 0.0)
    """

    scale: int | Fraction
    eta: Fraction = GEOMETRIC

    def __post_init__(self) -> None:
        require_scale("scale", self.scale)
        if not isinstance(self.eta, int | Fraction) or not -1 < self.eta <= 1:
            raise InputError(f"eta must be a fraction above -1 and at most 1, got {self.eta!r}; 1 is the geometric law")

    @classmethod
    def of_mean(cls, tries: float, eta: Fraction = GEOMETRIC) -> "RandomStopping":
        """The law with at least so many tries on average, to a thousandth of its scale.

        Raises `InputError` unless `tries` lies between 2 and a million.

        Examples:
            >>> round(RandomStopping.of_mean(20, LOGARITHMIC).mean, 3)
            20.0
        """
        required("tries", tries, f"lie in [2, {_MOST_TRIES:g}]", lambda value: 2 <= value <= _MOST_TRIES)
        low, high = 0, 1024
        while cls(Fraction(high, 1024), eta).mean < tries:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if cls(Fraction(max(middle, 1), 1024), eta).mean < tries else (low, middle)
        return cls(Fraction(high, 1024), eta)

    @property
    def gamma(self) -> float:
        """The probability of the law's name, in (0, 1)."""
        return -math.expm1(-1 / self.scale)

    @cached_property
    def mean(self) -> float:
        """E K."""
        power = float(self.eta) * math.log(self.gamma)  # (1 - gamma)/gamma eta/(1 - gamma^eta)
        share = -1 / math.log(self.gamma) if power == 0 else float(self.eta) / -math.expm1(power)
        return (1 - self.gamma) / self.gamma * share

    def draw(self, bits: NoiseBits) -> int:
        """The number of tries, by the exact law: a geometric number that is kept with the law's further weight."""
        while True:
            tries = 1 + int(floor_exponential(bits.words(1), self.scale, bits)[0])
            weights = ((l_ + self.eta) / Fraction(l_ + 1) for l_ in range(1, tries))
            if self.eta == 1 or all(_coin(weight, bits) for weight in weights):
                return tries

    def best(self, attempt: Callable[[], tuple[float, T]], bits: NoiseBits) -> T:
        """The result of the highest score of so many attempts; each must draw fresh noise. How many there were is lost.

        Of equal scores the first: as tries are alike, that is one of them at random.
        """
        tries = self.draw(bits)
        score, kept = attempt()
        for _ in range(tries - 1):
            other, result = attempt()
            if other > score:
                score, kept = other, result
        return kept

    def excess(self, curve: Curve) -> float:
        """The r of the theorem: by how much the privacy loss of what may do better exceeds nothing, to 2^-60 above.

        `curve` is the delta of one try at every epsilon >= 0, and does not increase.
        """

        def enough(r: float) -> bool:
            return self.gamma * math.expm1(r) >= (1 - self.gamma) * curve(r)

        low, high = 0.0, 1.0
        while not enough(high):
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high

    def spent(self, curve: Curve, epsilon: float) -> tuple[float, float]:
        """(epsilon, delta) of the best of all tries, whose number is not told, at an epsilon >= 0 of one try.

        Raises `InputError` for an epsilon below 0.

        Examples:
            >>> from federation.mechanisms.accounting.composition import GaussianCurve
            >>> law, once = RandomStopping.of_mean(10), GaussianCurve(0.2)
            >>> law.spent(once.delta, once.epsilon(1e-7))  # a delta of 1e-6
            (1.292, 1e-06)
        """
        require_epsilon_from_zero(epsilon)
        return epsilon + float(1 + self.eta) * self.excess(curve), min(1.0, self.mean * curve(epsilon))


def weakest_curve(epsilon: float, delta: float = 0.0) -> Curve:
    """The delta at every epsilon of a mechanism of which nothing but one (epsilon, delta) is known.

    delta + (1 - delta)(e^epsilon - e^x)/(1 + e^epsilon) at x below epsilon (Kairouz, Oh, Viswanath 2015), which
    randomised response with a failure of probability delta has. Raises `InputError` for numbers out of range.

    Examples:
        >>> [round(weakest_curve(1.0)(x), 3) for x in (0.0, 0.5, 1.0)]
        [0.462, 0.288, 0.0]
    """
    require_epsilon(epsilon)
    require_delta(delta)

    def curve(x: float) -> float:
        return delta + (1 - delta) * max(0.0, -math.expm1(x - epsilon)) / (1 + math.exp(-epsilon))

    return curve


def _coin(probability: Fraction, bits: NoiseBits) -> bool:
    """Whether a real uniform number, of which as many bits are drawn as that takes, is below a rational one."""
    left, whole = probability.numerator, probability.denominator
    while True:
        left = (left << 64) - int(bits.words(1)[0]) * whole  # of the next bits as a number below 1
        if left <= 0:
            return False
        if left >= whole:
            return True
