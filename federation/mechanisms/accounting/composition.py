"""Composition of guarantees, conversion between protected units, and (epsilon, delta) as the odds of an attacker.

Several releases about the same units compose, also when they are chosen adaptively (`compose`). Releases over time
compose for a unit that takes part in all of them, or in those of a window (`spent_over_periods`). The module converts
between units only where a proof exists (`steps_between`).

`GaussianCurve` is the privacy curve that a `gaussian_mu` claims: a delta at every epsilon, for one release or for
several together. `Odds` bounds how well the best attacker can tell two neighbouring inputs apart.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit, require_delta, require_epsilon
from federation.contract.validation import required
from federation.mechanisms.noise import discrete as discrete_gaussian
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.mechanism import require_delta_above_zero, require_positive


def compose(guarantees: Sequence[Guarantee], delta: float) -> tuple[float, float]:
    """The total (epsilon, delta) of releases that protect the same unit under the same adjacency.

    Pure epsilons add. Releases with a `gaussian_mu` compose exactly, at what the others leave of the target
    `delta` (theirs add up, like their epsilons); at their own summed (epsilon, delta) when that is smaller at
    no more delta, or when nothing of the target is left. The returned delta may exceed the target only in
    that last case and when the others alone exceed it. No releases: (0, 0).

    Raises `InputError` when units or adjacencies differ, or `delta` is outside [0, 1).

    Examples:
        >>> from federation.contract.guarantee import Adjacency, Unit
        >>> from federation.mechanisms.noise.additive import calibrate
        >>> noise = calibrate("gaussian", sensitivity=1.0, dimension=5, epsilon=1.0, delta=1e-6)
        >>> once = noise.guarantee(Unit.PARTY, Adjacency.REPLACE)
        >>> compose([once] * 4, delta=1e-6)
        (2.123, 1e-06)
    """
    require_delta(delta)
    kinds = {(g.unit, g.adjacency) for g in guarantees}
    if len(kinds) > 1:
        names = ", ".join(sorted(f"{unit}/{adjacency}" for unit, adjacency in kinds))
        raise InputError(f"guarantees must share one unit and adjacency to compose, got {names}; total them apart")
    normal = [g for g in guarantees if g.gaussian_mu is not None]
    others = [g for g in guarantees if g.gaussian_mu is None]
    epsilon, spent = _sum(others)
    if normal:
        normal_epsilon, normal_delta = _compose_gaussian(normal, delta - spent)
        epsilon, spent = epsilon + normal_epsilon, spent + normal_delta
    return epsilon, min(spent, 1.0)


def concentrated_epsilon(delta: float, rho: float) -> float:
    """An epsilon for which rho-zCDP implies (epsilon, delta)-privacy, the best of all Renyi orders.

    delta = exp((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1) for every alpha > 1 (Canonne,
    Kamath, Steinke 2020, Corollary 13). Discrete Gaussians of scales sigma_i on integers of sensitivities s_i are
    together (sum s_i²/sigma_i²)/2-zCDP (Theorem 14). Raises `InputError` unless rho > 0 and 0 < delta < 1.

    Examples:
        >>> concentrated_epsilon(1e-6, rho=0.1)
        2.142
    """
    require_positive("rho", rho)
    require_delta_above_zero(delta)
    # imported here because optimisers load slowly
    from scipy.optimize import minimize_scalar

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)  # alpha - 1
        alpha = 1 + excess
        # A sum of logarithms, and 1 - 1/alpha as excess/alpha: products and quotients of extreme numbers underflow.
        return alpha * rho - (math.log(delta) + log_excess + alpha * math.log1p(1 / excess)) / excess

    # With alpha - 1 = sqrt(ln(1/delta)/rho) the classic conversion is met; the best order is not far from that.
    near = 0.5 * (math.log(-math.log(delta)) - math.log(rho))
    found = minimize_scalar(at, bounds=(near - 8, near + 8), method="bounded")
    return max(0.0, min(float(found.fun), at(near)))


def _sum(guarantees: Sequence[Guarantee]) -> tuple[float, float]:
    """Basic composition (Dwork, Roth 2014, Theorem 3.16)."""
    return math.fsum(g.epsilon for g in guarantees), math.fsum(g.delta for g in guarantees)


def _compose_gaussian(guarantees: Sequence[Guarantee], target: float) -> tuple[float, float]:
    """(epsilon, delta) of Gaussian releases; discrete ones pay the slack of `delta_bound`, or of zCDP if smaller."""
    summed = _sum(guarantees)
    if target <= 0:
        return summed
    curve = GaussianCurve.of(guarantees)
    assert curve is not None
    exact = curve.epsilon(target)
    if curve.grid is not None:
        exact = min(exact, concentrated_epsilon(target, curve.mu**2 / 2))
    return summed if summed[1] <= target and summed[0] < exact else (exact, target)


@dataclass(frozen=True)
class Odds:
    """The odds of a guarantee of `epsilon` and `delta`; lower ones where its whole privacy `curve` is known.

    The attacker knows all other data, the mechanism and the law of its noise. From a release, the attacker guesses
    which of two inputs that differ in one unit produced it. All numbers are upper bounds. Some (epsilon, delta)-private
    mechanisms attain them, and continuous Gaussian noise attains those of its curve.

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
    curve: "GaussianCurve | None" = None

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        require_delta(self.delta)

    @classmethod
    def of(cls, guarantee: Guarantee) -> "Odds":
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


ARRIVING = (Unit.ROW, Unit.LABEL)  # what arrives in one period, whereas parties and persons may have a part in all


def most_releases(unit: Unit, releases: int, window: int | None) -> int:
    """In how many of so many releases, one for each period, a unit has part at most.

    A release learns from the `window` periods before its own, without a window from all, so that what arrives once is
    in as many windows as these are long.

    Examples:
        >>> most_releases(Unit.LABEL, 7, window=2), most_releases(Unit.PARTY, 7, window=2)
        (2, 7)
        >>> most_releases(Unit.LABEL, 7, window=None)
        7
    """
    return releases if window is None or unit not in ARRIVING else min(window, releases)


def spent_over_periods(
    releases: Mapping[int, Guarantee], window: int | None, unit: Unit, delta: float
) -> tuple[float, float]:
    """The most that one `unit` has spent, (epsilon, delta), on releases by the period before which their windows end.

    There must be one at least. Each must protect the unit (`Unit.covers`), and all under one adjacency. Windows that no
    unit is in both of compose in parallel: over disjoint rows the largest counts (McSherry 2009, Theorem 4), where it
    is public in which period a row arrives. All others `compose`. Raises `InputError` as that does.

    Examples:
        >>> from federation.contract.guarantee import Adjacency
        >>> spent = {t: Guarantee(t / 10, 0.0, Unit.LABEL, Adjacency.REPLACE, "laplace") for t in (2, 3, 4)}
        >>> spent_over_periods(spent, 1, Unit.LABEL, 0.0), spent_over_periods(spent, 2, Unit.LABEL, 0.0)
        ((0.4, 0.0), (0.7, 0.0))
    """
    last = max(releases)
    reach = most_releases(unit, last, window)
    found = [
        compose([releases[t] for t in range(first, first + reach) if t in releases], delta)
        for first in range(min(releases), max(min(releases), last - reach + 1) + 1)
    ]
    return max(epsilon for epsilon, _ in found), max(spent for _, spent in found)


@dataclass(frozen=True)
class GaussianCurve:
    """delta(epsilon) of mu-Gaussian noise, and where noise is discrete of its proved bound (`delta_bound`).

    `grid` is the number of coordinates and the smallest scale in steps of discrete noise, None of the continuous one.

    Examples:
        >>> curve = GaussianCurve(gaussian.mu(1.0, 1e-6))
        >>> curve.delta(1.0), curve.delta(0.25)
        (1e-06, 0.01997)
        >>> curve.epsilon(1e-6)
        1.0
    """

    mu: float
    grid: tuple[int, int] | None = None

    @classmethod
    def of(cls, guarantees: Sequence[Guarantee]) -> "GaussianCurve | None":
        """What guarantees that all have a `gaussian_mu` promise together; None where one has none, or there are none.

        mu = sqrt(sum mu_i²) (Dong, Roth, Su 2022, Corollary 3.3); of discrete noise the joint law is bounded.
        """
        mus = [g.gaussian_mu for g in guarantees if g.gaussian_mu is not None]
        if not mus or len(mus) < len(guarantees):
            return None
        discrete = [g.parameters for g in guarantees if "grid_scale" in g.parameters]
        if not discrete:
            return cls(gaussian.compose(mus))
        coordinates = sum(int(p["dimension"]) * int(p.get("rounds", 1)) for p in discrete)
        return cls(gaussian.compose(mus), (coordinates, min(int(p["grid_scale"]) for p in discrete)))

    def delta(self, epsilon: float) -> float:
        """The delta that is claimed at an epsilon >= 0."""
        if self.grid is None:
            return float(gaussian.delta(epsilon, self.mu))
        return discrete_gaussian.delta_bound(epsilon, self.mu, *self.grid)

    def epsilon(self, delta: float) -> float:
        """The epsilon that is claimed at a delta in (0, 1); infinite where the grid is too coarse."""
        if self.grid is None:
            return gaussian.epsilon(delta, self.mu)
        return discrete_gaussian.epsilon_bound(delta, self.mu, *self.grid)


_MOST_EPSILON = 20.0  # beyond it a converted guarantee says nothing that is worth writing down


def group_delta(epsilon: float, delta: float, steps: int) -> float:
    """The delta of an (epsilon, delta)-private release for neighbours `steps` changes apart, at `steps` epsilon.

    delta (e^(k epsilon) - 1)/(e^epsilon - 1), by k triangle inequalities (Vadhan 2017, Lemma 2.2 with its exact sum).
    At most 1.

    Examples:
        >>> group_delta(1.0, 1e-6, 2)  # (1 + e) delta
        3.718e-06
    """
    return min(1.0, delta * math.fsum(math.exp(step * epsilon) for step in range(steps)))


def steps_between(held: Guarantee, unit: Unit, adjacency: Adjacency, rows_per_person: int = 0) -> int:
    """How many changes of the unit that a guarantee protects make up one change of another unit.

    - Replacing a unit replaces any part of it: 1.
    - Where units are added and removed, a replaced unit, or any change within one, is one that leaves and one that
      comes: 2. That takes for granted that one unit fewer is an input, too.
    - What protects labels or rows protects all labels of a person with at most `rows_per_person` rows as so many
      changes; 0 says that there is no such bound.

    Raises `InputError` where nothing is proved: a replaced unit says nothing of one that is added, as numbers of units
    may be told exactly, and labels nothing of rows, whose features may go out as they are.

    Examples:
        >>> party = Guarantee(1.0, 0.0, Unit.PARTY, Adjacency.REPLACE, "laplace")
        >>> steps_between(party, Unit.LABEL, Adjacency.REPLACE)
        1
        >>> row = Guarantee(1.0, 0.0, Unit.ROW, Adjacency.ADD_REMOVE, "laplace")
        >>> steps_between(row, Unit.ROW, Adjacency.REPLACE), steps_between(row, Unit.PERSON, Adjacency.REPLACE, 3)
        (2, 6)
    """
    if (held.unit, held.adjacency) == (unit, adjacency):
        return 1
    comes_and_goes = held.adjacency is Adjacency.ADD_REMOVE
    each = 2 if comes_and_goes else 1
    if comes_and_goes or adjacency is Adjacency.REPLACE:
        if held.unit.covers(unit) and (adjacency is Adjacency.REPLACE or unit is Unit.ROW):
            return each
        if unit is Unit.PERSON and adjacency is Adjacency.REPLACE and held.unit in (Unit.LABEL, Unit.ROW):
            if rows_per_person:
                return each * rows_per_person
            raise InputError(
                f"what protects one {held.unit} protects a person only where a person has at most so many rows; "
                "declare rows_per_person"
            )
    raise InputError(
        f"nothing is proved for {unit}/{adjacency} from a release that protects {held.unit}/{held.adjacency}"
    )


def converted(held: Guarantee, unit: Unit, adjacency: Adjacency, rows_per_person: int = 0) -> Guarantee:
    """The guarantee for another unit that follows from one that is held.

    Raises `InputError` as `steps_between`, and where the epsilon that follows is above 20.

    Examples:
        >>> row = Guarantee(1.0, 1e-6, Unit.ROW, Adjacency.ADD_REMOVE, "gaussian", gaussian_mu=0.25)
        >>> found = converted(row, Unit.ROW, Adjacency.REPLACE)
        >>> found.epsilon, found.delta, found.gaussian_mu
        (2.0, 3.718e-06, 0.5)
    """
    steps = steps_between(held, unit, adjacency, rows_per_person)
    epsilon = steps * held.epsilon
    if steps > 1 and epsilon > _MOST_EPSILON:
        raise InputError(
            f"epsilon {held.epsilon:g} for {held.unit}/{held.adjacency} is {epsilon:g} for {unit}/{adjacency}, which "
            "protects nobody"
        )
    delta = group_delta(held.epsilon, held.delta, steps)
    mu = None if held.gaussian_mu is None else steps * held.gaussian_mu
    return replace(held, unit=unit, adjacency=adjacency, epsilon=epsilon, delta=delta, gaussian_mu=mu)
