"""What (epsilon, delta) means in odds: how well the best attacker can tell two neighbouring inputs apart.

The attacker knows all other data, the mechanism and the law of its noise, and looks at a release to tell which of two
inputs, that differ in one unit, it was made of. All numbers are upper bounds: there are (epsilon, delta)-private
mechanisms that meet them, and continuous Gaussian noise meets those of its curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from federation.contract.guarantee import Guarantee, require_delta, require_epsilon
from federation.contract.numbers import required
from federation.mechanisms.accounting.gaussian_curve import GaussianCurve


@dataclass(frozen=True)
class Odds:
    """The odds of a guarantee of `epsilon` and `delta`; lower ones where its whole privacy `curve` is known.

    Raises `InputError` unless epsilon > 0 is finite and delta lies in [0, 1).

    Examples:
        >>> Odds(1.0).right_guesses(), Odds(1.0).detections(0.05), Odds(1.0).belief(0.5)
        (0.7311, 0.1359, 0.7311)
        >>> Odds(1.0, 1e-6).right_guesses()  # of any mechanism
        0.7311
        >>> from federation.mechanisms.noise import gaussian
        >>> Odds(1.0, 1e-6, GaussianCurve(gaussian.mu(1.0, 1e-6))).right_guesses()  # of Gaussian noise
        0.5471
    """

    epsilon: float
    delta: float = 0.0
    curve: GaussianCurve | None = None

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        require_delta(self.delta)

    @classmethod
    def of(cls, guarantee: Guarantee) -> Odds:
        """Those of one release.

        Examples:
            >>> from federation.contract.guarantee import Adjacency, Unit
            >>> Odds.of(Guarantee(3.0, 0.0, Unit.LABEL, Adjacency.REPLACE, "response")).right_guesses()
            0.9526
        """
        return cls(guarantee.epsilon, guarantee.delta, GaussianCurve.of([guarantee]))

    def right_guesses(self) -> float:
        """How often the attacker is right who must say which of two equally likely inputs it was; a coin is in 1/2.

        (e^epsilon + delta)/(1 + e^epsilon), as the total variation distance is at most (e^epsilon - 1 + 2 delta) /
        (e^epsilon + 1) (Kairouz, Oh, Viswanath 2015), and with a known curve delta(0).
        """
        return min(_right(epsilon, delta) for epsilon, delta in self._points(0.0))

    def detections(self, false_alarms: float) -> float:
        """How often a test detects one input that raises a false alarm at the other in a share of `false_alarms`.

        min(e^epsilon a + delta, 1 - e^-epsilon (1 - delta - a)), at most 1 (Wasserman, Zhou 2010; Dong, Roth, Su
        2022), the least over all known points of the privacy curve: of mu-Gaussian noise Φ(Φ⁻¹(a) + mu).
        Raises `InputError` unless `false_alarms` lies in [0, 1].

        Examples:
            >>> Odds(1.0, 0.01).detections(0.0), Odds(1.0).detections(1.0)
            (0.01, 1.0)
        """
        required("false_alarms", false_alarms, "lie in [0, 1]", lambda value: 0 <= value <= 1)
        points = self._points(0.0 if self.curve is None else _tangent(self.curve.mu, false_alarms))
        return min(_detected(epsilon, delta, false_alarms) for epsilon, delta in points)

    def belief(self, prior: float) -> float | None:
        """How sure the attacker can be afterwards of what had the probability `prior` before, whatever is released.

        The odds change by a factor of e^epsilon at most. With a delta there is no such bound on every single release,
        and None is returned: `right_guesses` has one on their average. Raises `InputError` unless `prior` is in [0, 1].

        Examples:
            >>> Odds(1.0).belief(0.01), Odds(1.0, 1e-9).belief(0.01)
            (0.02672, None)
        """
        required("prior", prior, "lie in [0, 1]", lambda value: 0 <= value <= 1)
        if self.delta:
            return None
        return prior if prior in (0, 1) else prior / (prior + (1 - prior) * math.exp(-self.epsilon))

    def _points(self, epsilon: float) -> list[tuple[float, float]]:
        """The stated point of the privacy curve, and where the curve is known that at another epsilon >= 0."""
        stated = (self.epsilon, self.delta)
        return [stated] if self.curve is None else [stated, (epsilon, self.curve.delta(epsilon))]


def _right(epsilon: float, delta: float) -> float:
    low = math.exp(-epsilon)
    return min(1.0, (1 + delta * low) / (1 + low))


def _detected(epsilon: float, delta: float, false_alarms: float) -> float:
    low = math.exp(-epsilon)
    steep = math.inf if low == 0 else false_alarms / low
    return min(1.0, (steep if false_alarms else 0.0) + delta, low * (delta + false_alarms) - math.expm1(-epsilon))


def _tangent(mu: float, false_alarms: float) -> float:
    """The epsilon whose bounds touch the curve of mu-Gaussian noise at so many false alarms.

    That is |ln of the likelihood ratio| at the best test's threshold t = -Φ⁻¹(a): |mu t - mu²/2|. Without any false
    alarm, or with nothing else, it would be infinite; thresholds end where less than 1e-298 of the noise is left.
    """
    from scipy.special import ndtri

    threshold = -float(ndtri(false_alarms))
    return abs(mu * min(max(threshold, -37.0), 37.0) - mu**2 / 2)
