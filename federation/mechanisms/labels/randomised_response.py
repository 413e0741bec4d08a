"""Randomised response for labels: over k classes, over bins of real labels, and with one bit per label.

- k-ary randomised response (Warner 1965, `respond`) uses exact arithmetic: a response is kept, or drawn afresh among
  all k. With probability lambda = redraw / 2^64 the response is one of the k, each as likely. So it is the true one
  with probability 1 - lambda + lambda/k, and another given one with probability lambda/k.
- Randomised response on bins (Ghazi et al. 2022, `BinnedResponse`): the response is the label's bin or a random one,
  and each bin has one value. `optimal_bins` finds the published values and bins. They lose least in squared error on
  average over a known prior. They pull every label towards the prior's mean, which shrinks whatever is learned from the
  labels. Debiased values are spread until the mean responses have slope 1 in the labels, on average over the prior.
  With these, linear models are not shrunk.
- `EstimatedBins` estimates the prior from the same labels, for a part of epsilon (Ghazi et al. 2022). The mechanism
  first releases the histogram of the labels, by the K-norm mechanism for label counts. The bins follow from the
  histogram, and both releases compose.
- `OneBitLabels` sends one bit per label: two values, far enough apart to be unbiased (Duchi, Jordan, Wainwright 2018,
  Section 3.2). The label becomes one of the range's ends at random, with its own mean. Randomised response then answers
  with that end or the other. Both steps are exact, and so is their law: the answer is high with probability
  1/2 + (1 - lambda) (y - middle)/width.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check, Keeper
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts import exact_laws as lattice_laplace
from federation.mechanisms.labels.mechanism import LabelRange, LabelReplacement
from federation.mechanisms.noise.lazy_uniform import collect
from federation.mechanisms.noise.mechanism import Parameters, require_epsilon_from_zero, require_share, require_whole
from federation.numerics.rows import Floats, Integers
from federation.numerics.simplex import project

_FLAT = 0.05  # bins whose means have a smaller slope in the labels tell too little of them
_LARGE_EPSILON = 50.0  # from here on nothing is lost by treating answers as true


@dataclass(frozen=True)
class BinnedResponse(LabelReplacement):
    """Bin j holds the points starts[j] .. starts[j+1] - 1 of `points` evenly spaced ones in the range; pure.

    A label belongs to the nearest point, and its bin is kept or, with probability redraw / 2^64, drawn afresh; the
    answer is values[bin].
    """

    labels: LabelRange
    epsilon: float
    points: int
    starts: tuple[int, ...]
    values: tuple[float, ...]
    redraw: int

    name: ClassVar[str] = "label_bins"
    delta: ClassVar[float] = 0.0
    _own_assumptions = (
        Assumption("bins and their values come from a prior that is public", Check.DECLARED, Keeper.COORDINATOR),
        Assumption("each label has random words of its own, compared as integers", Check.ENFORCED),
    )

    @property
    def parameters(self) -> Parameters:
        """Public numbers; bins begin at `starts` and answer `values`."""
        bins = {"starts": " ".join(map(str, self.starts)), "values": " ".join(map("{:.17g}".format, self.values))}
        sizes = {"points": self.points, "bins": len(self.starts)}
        return {"low": self.labels.low, "high": self.labels.high, **sizes, **bins}

    def release(self, labels: Floats, bits: NoiseBits) -> Floats:
        """Values of bins, (n,) float64. Raises `InputError` as `LabelRange.checked`."""
        return np.array(self.values)[respond(self._bins(labels), len(self.starts), self.redraw, bits)]

    def variance(self, labels: Floats | None = None) -> Floats | float:
        """Of the answers to each given label (n,); without labels the largest of any label."""
        values = np.array(self.values)
        by_bin = self._mean_answer(np.square(values)) - np.square(self._mean_answer(values))
        return float(by_bin.max()) if labels is None else by_bin[self._bins(labels)]

    def bias(self, labels: Floats | None = None) -> Floats | float:
        """E answer - label for each given label (n,); without labels its largest size, at an end of some bin."""
        means = self._mean_answer(np.array(self.values))
        if labels is not None:
            return means[self._bins(labels)] - self.labels.checked(labels)
        edges = np.array([*self.starts, self.points]) - 0.5
        edges[0], edges[-1] = 0, self.points - 1
        places = self.labels.points(edges, self.points - 1)
        return float(max(np.abs(means - places[:-1]).max(), np.abs(means - places[1:]).max()))

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0: that of two different bins."""
        return delta(require_epsilon_from_zero(epsilon), len(self.starts), self.redraw)

    def _bins(self, labels: Floats) -> Integers:
        return np.searchsorted(self.starts, self.labels.positions(labels, self.points - 1), side="right") - 1

    def _mean_answer(self, values: Floats) -> Floats:
        """E values[answer] by true bin, (k,)."""
        true, other = probabilities(len(values), self.redraw)
        return other * float(values.sum()) + (true - other) * values


def calibrate(labels: LabelRange, epsilon: float, prior: Floats, debiased: bool = False) -> BinnedResponse:
    """Epsilon-private randomised response on the bins of least mean squared error under a public prior (B,).

    The prior weighs B evenly spaced points from the low end of the range to its high end. As published, answers are
    biased. `debiased` takes, of the published bins for each number of them above 1, those whose debiased answers have
    the least mean squared error. Raises `InputError` for epsilon below 1e-6 or a prior that is none, of fewer than 2
    or more than 512 points, or to be debiased with all weight on one point.

    Examples:
        >>> prior = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
        >>> noise = calibrate(LabelRange(0.0, 10.0), epsilon=2.0, prior=prior)
        >>> noise.starts, [round(value, 2) for value in noise.values]
        ((0, 2, 3), [2.81, 5.0, 7.19])
        >>> noise.release(np.array([1.0, 5.0, 9.0]), NoiseBits(1, "example")).round(2)
        array([2.81, 5.  , 7.19])
    """
    prior = _checked_prior(prior)
    size = len(prior)
    points = labels.points(np.arange(size), size - 1)
    found = optimal_bins(points, prior, min(epsilon, _LARGE_EPSILON))
    if not debiased:
        best = min(found, key=lambda bins: bins.loss)
        redraw = calibrate_redraw(len(best.starts), epsilon)
        return BinnedResponse(labels, epsilon, size, best.starts, best.values, redraw)
    steep = [bins for bins in found if _slope(points, prior, bins) > _FLAT]
    candidates = [_debiased(labels, epsilon, points, prior, bins) for bins in steep]
    if not candidates:
        raise InputError("prior must have weight on two points or more, or answers cannot be debiased; choose one_bit")
    return min(candidates, key=lambda mechanism: sum(mean_errors(mechanism, prior)))


def mean_errors(mechanism: BinnedResponse, prior: Floats | None = None) -> tuple[float, float]:
    """Mean variance and mean squared bias of the answers over a prior on the mechanism's points, by default uniform.

    Examples:
        >>> prior = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
        >>> mean_errors(calibrate(LabelRange(0.0, 10.0), 2.0, prior), prior)
        (1.648, 2.871)
        >>> mean_errors(calibrate(LabelRange(0.0, 10.0), 2.0, prior, debiased=True), prior)
        (10.43, 0.9375)
    """
    size = mechanism.points
    weights = np.full(size, 1 / size) if prior is None else prior
    points = mechanism.labels.points(np.arange(size), size - 1)
    return float(weights @ mechanism.variance(points)), float(weights @ np.square(mechanism.bias(points)))


def _debiased(labels: LabelRange, epsilon: float, points: Floats, prior: Floats, bins: "Bins") -> BinnedResponse:
    """The same bins, with values whose mean answer to bin j is t_j = mu + (m_j - mu)/slope, m_j the prior's mean there.

    (1 - lambda) v_j + lambda mean(v) = t_j, so v_j = (t_j - lambda mean(t)) / (1 - lambda).
    """
    redraw = calibrate_redraw(len(bins.starts), epsilon)
    kept = (WORDS - redraw) / WORDS
    mean = prior @ points
    targets = mean + (_bin_means(points, prior, bins)[1] - mean) / _slope(points, prior, bins)
    values = (targets - (1 - kept) * targets.mean()) / kept
    return BinnedResponse(labels, epsilon, len(points), bins.starts, tuple(map(float, values)), redraw)


def _slope(points: Floats, prior: Floats, bins: "Bins") -> float:
    """Of the least squares line through bin means over labels: Var m / Var y, from 0 to 1."""
    weights, means = _bin_means(points, prior, bins)
    variance = prior @ np.square(points - prior @ points)
    return float(weights @ np.square(means - prior @ points) / variance) if variance > 0 else 0.0


def _bin_means(points: Floats, prior: Floats, bins: "Bins") -> tuple[Floats, Floats]:
    """Weight and mean of the prior in each bin, (k,); the middle of a bin without weight."""
    weights = np.add.reduceat(prior, bins.starts)
    middles = np.add.reduceat(points, bins.starts) / np.diff([*bins.starts, len(points)])
    moments = np.add.reduceat(prior * points, bins.starts)
    return weights, np.where(weights > 0, moments / np.where(weights > 0, weights, 1.0), middles)


def _checked_prior(prior: Floats) -> Floats:
    """The prior as float64 (B,), of sum 1 exactly. Raises `InputError` as `calibrate`."""
    given = np.asarray(prior, dtype=np.float64)
    if given.ndim != 1 or not 2 <= len(given) <= MAX_POINTS:
        raise InputError(f"prior must have 2 to {MAX_POINTS} weights, one for each point, got shape {given.shape}")
    if not (np.all(given >= 0) and math.isclose(given.sum(), 1.0, rel_tol=1e-6)):
        raise InputError("prior must be weights >= 0 of sum 1; divide counts by their sum")
    return given / float(given.sum())


_STEPS = 2**52  # places of a label between the ends


@dataclass(frozen=True)
class OneBitLabels(LabelReplacement):
    """middle ± reach, reach = width / (2 (1 - lambda)) = width/2 (e^epsilon + 1)/(e^epsilon - 1); unbiased and pure."""

    labels: LabelRange
    epsilon: float
    redraw: int

    name: ClassVar[str] = "label_one_bit"
    delta: ClassVar[float] = 0.0
    _own_assumptions = (Assumption("each label has two random words of its own, compared as integers", Check.ENFORCED),)

    @property
    def parameters(self) -> Parameters:
        """Public numbers; `flip` is the probability of the wrong end."""
        _, flip = probabilities(2, self.redraw)
        return {"low": self.labels.low, "high": self.labels.high, "reach": self.reach, "flip": flip}

    @property
    def reach(self) -> float:
        """Distance of the two values to the middle of the range."""
        return self.labels.width / 2 * (WORDS / (WORDS - self.redraw))

    def release(self, labels: Floats, bits: NoiseBits) -> Floats:
        """middle ± reach, (n,) float64. Raises `InputError` as `LabelRange.checked`."""
        places = self.labels.positions(labels, _STEPS)
        ends = ((bits.words(len(places)) >> np.uint64(12)) < places.astype(np.uint64)).astype(np.int64)
        signs = 2 * respond(ends, 2, self.redraw, bits).astype(np.float64) - 1
        return self.labels.middle + self.reach * signs

    def variance(self, labels: Floats | None = None) -> Floats | float:
        """reach² - (y - middle)²: largest in the middle of the range."""
        if labels is None:
            return self.reach**2
        return self.reach**2 - np.square(self.labels.checked(labels) - self.labels.middle)

    def bias(self, labels: Floats | None = None) -> Floats | float:
        """E released - label: 0 for each of the given labels (n,), or the number 0; answers are unbiased."""
        return 0.0 if labels is None else np.zeros(len(self.labels.checked(labels)))

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0: that of the two ends, the worst pair."""
        return delta(require_epsilon_from_zero(epsilon), 2, self.redraw)


def calibrate_one_bit(labels: LabelRange, epsilon: float) -> OneBitLabels:
    """The two values nearest to each other that make a label epsilon-private without bias.

    Raises `InputError` for epsilon below 1e-6.

    Examples:
        >>> noise = calibrate_one_bit(LabelRange(0.0, 1.0), epsilon=1.0)
        >>> noise.reach, noise.variance()
        (1.082, 1.171)
        >>> noise.release(np.array([0.1, 0.9, 0.5]), NoiseBits(1, "example"))
        array([ 1.582,  1.582, -0.582])
    """
    return OneBitLabels(labels, epsilon, calibrate_redraw(2, epsilon))


DEFAULT_POINTS = 32
DEFAULT_SHARE = 0.2
_UNSEEN = 0.01  # of the prior goes to all points alike


@dataclass(frozen=True)
class EstimatedBins(LabelReplacement):
    """`share` of epsilon for the histogram on `points` evenly spaced points of the range, the rest for the answers.

    Examples:
        >>> noise = EstimatedBins(LabelRange(0.0, 10.0), epsilon=2.0, points=6)
        >>> labels = np.random.default_rng(1).normal(5.0, 1.0, 300).clip(0, 10)
        >>> noise.prior(labels, NoiseBits(1, "example")).round(2)
        array([0.04, 0.01, 0.48, 0.45, 0.01, 0.01])
        >>> noise.delta_at(2.0), noise.delta_at(1.0)
        (0.0, 0.3754)
    """

    labels: LabelRange
    epsilon: float
    points: int = DEFAULT_POINTS
    share: float = DEFAULT_SHARE
    debiased: bool = False

    name: ClassVar[str] = "label_estimated_bins"
    delta: ClassVar[float] = 0.0
    _own_assumptions = (
        Assumption("bins come from a private histogram of the same labels; both are charged", Check.ENFORCED),
        Assumption("noise and answers are drawn exactly, in integer arithmetic", Check.ENFORCED),
    )

    def __post_init__(self) -> None:
        require_whole("points", self.points, 2, MAX_POINTS)
        require_share("share", self.share)

    @property
    def parameters(self) -> Parameters:
        """Public numbers of the mechanism, as its guarantee lists them."""
        spent = {"histogram_epsilon": self._histogram.epsilon, "answer_epsilon": self._answer_epsilon}
        grid = {"points": self.points, "histogram_scale": float(self._histogram.scale)}
        return {"low": self.labels.low, "high": self.labels.high, **grid, **spent}

    def prior(self, labels: Floats, bits: NoiseBits) -> Floats:
        """The private histogram as weights (points,), none of them 0. Raises `InputError` as `LabelRange.checked`."""
        counts = np.bincount(self.labels.positions(labels, self.points - 1), minlength=self.points)
        seen: Floats = project(self._histogram.release(counts, bits) / len(labels))[0]
        return (1 - _UNSEEN) * seen + _UNSEEN / self.points

    def answers(self, prior: Floats) -> BinnedResponse:
        """The second step, given what the first released."""
        return calibrate(self.labels, self._answer_epsilon, prior, self.debiased)

    def release(self, labels: Floats, bits: NoiseBits) -> Floats:
        """Values of bins, (n,) float64. Raises `InputError` as `LabelRange.checked`."""
        return self.answers(self.prior(labels, bits)).release(labels, bits)

    def variance(self, labels: Floats | None = None) -> Floats | float:
        """A bound for every prior: of answers in the range a quarter of its squared width; none if debiased."""
        bound = math.inf if self.debiased else self.labels.width**2 / 4
        return bound if labels is None else np.full(len(self.labels.checked(labels)), bound)

    def bias(self, labels: Floats | None = None) -> Floats | float:
        """A bound on its size for every prior, for each given label (n,), infinite where debiased."""
        if self.debiased:
            return math.inf if labels is None else np.full(len(self.labels.checked(labels)), math.inf)
        if labels is None:
            return self.labels.width
        given = self.labels.checked(labels)
        return np.maximum(given - self.labels.low, self.labels.high - given)

    def delta_at(self, epsilon: float) -> float:
        """The delta of both releases at another epsilon >= 0, exact for answers of two bins, which lose most.

        The histogram's loss is 2/s or -2/s, or 0, whatever the counts, and independent of that of the answers.
        """
        epsilon = require_epsilon_from_zero(epsilon)
        loss = 2 / float(self._histogram.scale)
        likely = 1 / lattice_laplace.ratio(self.points - 1, float(self._histogram.scale))
        losses = ((loss, likely), (-loss, likely * math.exp(-loss)), (0.0, 1 - likely * (1 + math.exp(-loss))))
        redraw = calibrate_redraw(2, self._answer_epsilon)
        return sum(mass * delta(epsilon - spent, 2, redraw) for spent, mass in losses)

    @property
    def _histogram(self) -> lattice_laplace.LatticeLaplace:
        return lattice_laplace.calibrate_lattice_laplace(self.points, self.epsilon * self.share, 0.0)

    @property
    def _answer_epsilon(self) -> float:
        """What the histogram, at its own scale, leaves of epsilon."""
        return (self.epsilon - 2 / float(self._histogram.scale)) * (1 - 1e-15)


MAX_POINTS = 512


@dataclass(frozen=True)
class Bins:
    """Bin j holds the prior's points starts[j] .. starts[j+1] - 1 and answers values[j]; `loss` is the mean loss."""

    starts: tuple[int, ...]
    values: tuple[float, ...]
    loss: float


def optimal_bins(points: Floats, prior: Floats, epsilon: float) -> list[Bins]:
    """The best bins for each number of them, 1..B (Ghazi et al. 2022, Algorithm 2), for the squared loss.

    `points` (B,) ascending, `prior` (B,) on the simplex. Randomised response among k bins gives label y the value of
    its own bin with e^epsilon times the probability of another's. So a bin I with value v adds to the mean loss
    (sum_y p_y w_y (v - y)²) / (e^epsilon + k - 1), w_y = e^epsilon in I and 1 elsewhere, which v = the weighted mean
    minimises; bins are intervals, and a dynamic programme over the last bin's start finds them.

    Examples:
        >>> found = optimal_bins(np.arange(4.0), np.array([0.4, 0.1, 0.1, 0.4]), epsilon=2.0)
        >>> min(found, key=lambda bins: bins.loss)
        Bins(starts=(0, 2), values=(0.5099, 2.49), loss=0.8698)
    """
    size, factor = len(points), math.expm1(epsilon)
    centred = points - prior @ points
    sums = np.concatenate([np.zeros((3, 1)), np.cumsum(prior * centred ** np.arange(3)[:, None], axis=1)], axis=1)
    inside = sums[:, None, :] - sums[:, :, None]  # of the points from .. to - 1: weight, first and second moment
    weight, first, second = (total + factor * part for total, part in zip((1.0, 0.0, sums[2, -1]), inside, strict=True))
    cost = np.where(np.tri(size + 1, dtype=bool), np.inf, second - first**2 / np.maximum(weight, 1.0))
    means = prior @ points + first / np.maximum(weight, 1.0)
    reached, ways, found = np.full(size + 1, np.inf), [], []
    reached[0] = 0.0
    for k in range(1, size + 1):
        candidates = reached[:, None] + cost
        ways.append(np.argmin(candidates, axis=0))
        reached = candidates[ways[-1], np.arange(size + 1)]
        starts, end = [], size
        for way in reversed(ways):
            starts.append(int(way[end]))
            end = starts[-1]
        starts.reverse()
        values = means[starts, [*starts[1:], size]]
        found.append(Bins(tuple(starts), tuple(map(float, values)), float(reached[-1]) / (factor + k)))
    return found


WORDS = 2**64
MIN_EPSILON = 1e-6  # below it answers tell next to nothing, and lambda's distance to 1 would feel its rounding
_SAFE = 1 + 2.0**-48  # covers the rounding of lambda's computation


def calibrate_redraw(answers: int, epsilon: float) -> int:
    """The smallest `redraw` with (1 - lambda) k / lambda + 1 <= e^epsilon, but for 1e-14 of it; k = `answers` >= 1.

    Raises `InputError` for epsilon below 1e-6.

    Examples:
        >>> calibrate_redraw(answers=2, epsilon=1.0) / WORDS
        0.5379
    """
    if not epsilon >= MIN_EPSILON:
        raise InputError(f"epsilon must be at least {MIN_EPSILON:g} for randomised response, got {epsilon}")
    share = answers / (math.expm1(min(epsilon, 100.0)) + answers) * _SAFE
    return max(1, math.ceil(share * WORDS))


def respond(truth: Integers, answers: int, redraw: int, bits: NoiseBits) -> Integers:
    """Answers (n,) int64 in 0..k-1 to the true ones (n,).

    Examples:
        >>> respond(np.zeros(10, dtype=int), 3, calibrate_redraw(3, 1.0), NoiseBits(1, "example")).tolist()
        [0, 2, 0, 0, 0, 0, 1, 0, 1, 0]
    """
    fresh = _uniform(bits, answers, len(truth))
    return np.where(bits.words(len(truth)) < np.uint64(redraw), fresh, truth)


def probabilities(answers: int, redraw: int) -> tuple[float, float]:
    """Of the true answer, and of each other one.

    Examples:
        >>> true, other = probabilities(3, calibrate_redraw(3, 1.0))
        >>> true, other, math.log(true / other)
        (0.5761, 0.2119, 1.0)
    """
    other = redraw / WORDS / answers
    return 1 - (answers - 1) * other, other


def delta(epsilon: float, answers: int, redraw: int) -> float:
    """The exact delta at any real epsilon: the likelihood ratio is (p/q, q/p) for two answers and 1 for the others.

    Examples:
        >>> [round(delta(e, 2, calibrate_redraw(2, 1.0)), 4) for e in (0.0, 0.5, 1.0)]
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
