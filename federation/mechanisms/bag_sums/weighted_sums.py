"""Privacy of wtd-LBA: a diagnostic of its leak without noise, and a repaired mechanism with noise and a guarantee.

Without noise, wtd-LBA reveals something of each label. The diagnostic (`per_instance_delta`) measures how much, for
given bags of given data. It is no guarantee. Its result depends on the data, so publishing the result leaks. For other
data the labels may be revealed completely: constant labels under an intercept, bags with no more records than columns,
a category that occurs once in a bag.

Given a bag, (sum w_i x_i, sum w_i y_i) is normal with covariance [X y]'[X y]. The sums of rows have the same law
whatever the labels. Given the sums of rows, the label sum is normal with variance |residual|². The residual is that of
y on the columns of X. `pair_delta` says how one changed label moves this law.

`RepairedBagSums` adds noise of standard deviation tau to every label sum, which gives wtd-LBA a guarantee for all data
sets.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check, Keeper
from federation.contract.randomness import NoiseBits
from federation.contract.validation import apart, required
from federation.mechanisms.bag_sums import calibration
from federation.mechanisms.bag_sums import exact_sums as label_sums
from federation.mechanisms.bag_sums.design import Weights, binomial, mean_delta_chi, require_bags
from federation.mechanisms.bag_sums.noisy_labels import AlikeBags, public_numbers
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.noise.mechanism import Parameters, require_positive, require_whole
from federation.numerics.rows import Floats, Integers, numbers

_RANK_CUT = 1e-10  # of a unit column, times sqrt(k)
_NO_RESIDUAL = 1e-12  # of the labels' squared norm, less their mean where rows have a constant
_ROUNDED = 1e-15  # of a label: what is left of labels may be due to how doubles hold them
_CANDIDATES = 9  # equally spaced changed labels that are tried first
_REFINEMENTS = 10  # golden-section steps around the worst of them
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class PerInstanceDelta:
    """What an attacker could learn of a label at `at_epsilon`, in the bags that were looked at. NOT a guarantee.

    Every value is the delta between this data set and one with the worst other label in the declared range, the bag
    known. `mean` is over all records of the bags, `mean_largest` over bags, of their most exposed record, `largest`
    over everything; `revealed` is the share of records with a delta of 1. A release that keeps bags secret has at most
    `inclusion` = m k/n times a record's mean over bags.
    """

    at_epsilon: float
    bags_seen: int
    size: int
    inclusion: float
    mean: float
    mean_largest: float
    largest: float
    revealed: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, with the warning."""
        renamed = {name: f"per_instance_delta_{name}" for name in ("mean", "mean_largest", "largest")}
        renamed["revealed"] = "revealed_share"
        values = {renamed.get(name, name): value for name, value in asdict(self).items()}
        return {"guarantee": None, "warning": DATA_DEPENDENT, **values}


DATA_DEPENDENT = (
    "these figures depend on the private labels: they are no (epsilon, delta) guarantee and must not be published"
)


def per_instance_delta(
    epsilon: float,
    rows: Floats,
    labels: Floats,
    bags: Integers,
    *,
    label_range: tuple[float, float],
    inclusion: float = 1.0,
) -> PerInstanceDelta:
    """Looks at every record of the given bags.

    `rows`: (n, d) with the constant column if the release has one; `labels`: (n,) in the declared `label_range`;
    `bags`: row numbers (m, k). Raises `InputError` for labels outside, non-finite numbers or epsilon outside [0, 700].

    Examples:
        >>> rng = np.random.default_rng(1)
        >>> rows, labels = rng.normal(size=(40, 3)), rng.uniform(0, 1, 40)
        >>> found = per_instance_delta(1.0, rows, labels, np.arange(40).reshape(2, 20), label_range=(0.0, 1.0))
        >>> found.mean, found.largest, found.revealed
        (0.0002628, 0.001459, 0.0)
    """
    rows, labels, bags = numbers(rows, "rows"), numbers(labels, "labels"), np.asarray(bags)
    if rows.ndim != 2 or labels.shape != rows.shape[:1]:
        raise InputError(f"rows must be (n, d) and labels (n,), got shapes {rows.shape} and {labels.shape}")
    if bags.ndim != 2 or bags.size == 0 or bags.dtype.kind not in "iu":
        raise InputError(f"bags must be row numbers (bags, size), at least one, got {bags.dtype} of shape {bags.shape}")
    if not 0 <= bags.min() <= bags.max() < len(rows):
        raise InputError(f"bags must be numbers of the {len(rows)} rows, from 0, got {bags.min()} to {bags.max()}")
    required("inclusion", inclusion, "lie in [0, 1]", lambda given: 0 <= given <= 1)
    found = np.stack([bag_deltas(epsilon, rows[bag], labels[bag], label_range=label_range) for bag in bags])
    worst = found.max(axis=1)
    mean, mean_largest, largest, revealed = map(float, (found.mean(), worst.mean(), worst.max(), (found == 1).mean()))
    return PerInstanceDelta(epsilon, len(bags), bags.shape[1], inclusion, mean, mean_largest, largest, revealed)


def bag_deltas(epsilon: float, rows: Floats, labels: Floats, *, label_range: tuple[float, float]) -> Floats:
    """The delta (k,) of each record of one bag, for the worst other label in the range.

    That may be an inner one, for which the labels fit the rows best; it is searched for. Arguments and errors as in
    `per_instance_delta`.

    Examples:
        >>> rng = np.random.default_rng(1)
        >>> found = bag_deltas(1.0, rng.normal(size=(30, 2)), rng.uniform(0, 1, 30), label_range=(0.0, 1.0))
        >>> found.shape, float(found.max())
        ((30,), 0.0006402)
    """
    declared = LabelRange.of(label_range)
    low, high = declared.low, declared.high
    if not (np.all(np.isfinite(rows)) and np.all((labels >= low) & (labels <= high))):
        least, most = apart(low, high)
        raise InputError(f"rows must be finite and labels from {least} to {most}, the declared range; clip or refuse")
    leverage, residual = leverages_and_residuals(rows, labels)
    rss = float(residual @ residual)
    if rss == 0:
        return np.ones(len(labels))
    labels, high = labels - low, high - low  # differences keep the digits that labels far from zero have left

    def at(changed: Floats, coarse: bool = True) -> Floats:
        """Deltas at other labels, shape of `changed`: (c, k)."""
        change = changed - labels
        h, r = (np.broadcast_to(part, change.shape).ravel() for part in (leverage, residual))
        return pair_delta(epsilon, change.ravel(), h, r, rss, coarse=coarse).reshape(change.shape)

    # Where the label fits the rest of the bag best, the residual that hides it is smallest.
    with np.errstate(divide="ignore", invalid="ignore"):
        fitting = np.where(leverage < 1, labels - residual / (1 - leverage), 0.0)
    everyone = np.arange(len(labels))
    grid = np.repeat(np.linspace(0.0, high, _CANDIDATES)[:, None], len(labels), axis=1)
    candidates = np.sort(np.concatenate([grid, np.clip(fitting, 0.0, high)[None]]), axis=0)
    best = at(candidates).argmax(axis=0)
    ends = (candidates[np.clip(best + step, 0, len(candidates) - 1), everyone] for step in (-1, 1))
    refined = _golden_section(at, *ends)
    worst: Floats = at(np.stack([candidates[best, everyone], refined]), coarse=False).max(axis=0)
    return worst


def _golden_section(value: Callable[[Floats], Floats], left: Floats, right: Floats) -> Floats:
    """Where `value`, (2, k) -> (2, k), is largest between `left` and `right`, (k,) each."""
    for _ in range(_REFINEMENTS):
        first, second = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
        below, above = value(np.stack([first, second]))
        left, right = np.where(above > below, first, left), np.where(above > below, right, second)
    return (left + right) / 2


def leverages_and_residuals(rows: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Of least squares of the labels (k,) on the rows (k, d): h_i and r_i, both (k,).

    Columns are scaled to unit length and a pivoted QR factorisation drops dependent ones, so that neither units nor
    duplicate columns matter; the residual is orthogonalised twice. It is exactly zero where the labels are a function
    of the rows up to rounding; where the rows have a constant, the labels' distance from zero does not matter.

    Examples:
        >>> leverages_and_residuals(np.ones((4, 1)), np.array([0.0, 0.0, 1.0, 3.0]))
        (array([0.25, 0.25, 0.25, 0.25]), array([-1., -1.,  0.,  2.]))
    """
    from scipy.linalg import qr

    lengths = np.linalg.norm(rows, axis=0)
    scaled = rows[:, lengths > 0] / lengths[lengths > 0]
    if scaled.shape[1] == 0:
        return np.zeros(len(labels)), labels.astype(float)
    basis, triangle, _ = qr(scaled, mode="economic", pivoting=True)
    rank = int((np.abs(np.diag(triangle)) > _RANK_CUT * math.sqrt(len(labels))).sum())
    basis = basis[:, :rank]

    def rest(values: Floats) -> Floats:
        once: Floats = values - basis @ (basis.T @ values)
        left: Floats = once - basis @ (basis.T @ once)
        return left

    held = _ROUNDED * math.sqrt(len(labels)) * float(np.abs(labels).max())
    if np.linalg.norm(rest(np.ones(len(labels)))) <= _RANK_CUT * math.sqrt(len(labels)):
        labels = labels - labels.mean()
    residual = rest(labels)
    if residual @ residual <= max(_NO_RESIDUAL * float(labels @ labels), held**2):
        residual = np.zeros(len(labels))
    return np.minimum(np.square(basis).sum(axis=1), 1.0), residual


_UNPROTECTED_ROWS = Assumption(
    "only labels are protected: sums of rows are released without noise and may reveal features",
    Check.DECLARED,
    Keeper.HOLDER,
)


@dataclass(frozen=True)
class RepairedBagSums(AlikeBags):
    """Releases of m sums of k labels with N(0, 1) weights, each with Gaussian noise of standard deviation `tau`.

    `epsilon` and `delta` are what one release claims, the sums of rows with the same weights included. Made by
    `repaired_bag_sums` or `calibrate`.

    If an attacker saw bags and weights too, a changed label would be a Gaussian mechanism at |w| Delta/tau. So
    delta <= m k/n E_u delta_G(epsilon, |u| Delta/tau), u ~ N(0, 1). In a bag, a record whose features no other record
    shares reaches this bound when the other labels leave no residual: the sums of rows show its weight. Without tau
    nothing holds for all data. T releases with fresh weights and noise are at |v| Delta/tau, v ~ N(0, I_T).
    """

    tau: float
    epsilon: float
    delta: float

    name: ClassVar[str] = "weighted_lba"
    weights: ClassVar[Weights] = "gaussian"
    assumptions = (label_sums.DISJOINT_BAGS, _UNPROTECTED_ROWS, label_sums.NORMAL_WEIGHTS, *label_sums.COMMON)

    @property
    def parameters(self) -> Parameters:
        """Public numbers of the mechanism, as its guarantee lists them."""
        return public_numbers(self, self.label_range, tau=self.tau)

    def release(self, labels: Floats, weights: Floats, bits: NoiseBits) -> Floats:
        """Noisy sums of every bag, (m,) float64, in units of labels.

        `labels`, `weights`: (m, k) of the records in each bag, in the same order; of several releases
        one after another (..., m, k), which gives (..., m). The weights stay secret only for the features' sake; the
        guarantee would hold if they were known. Raises `InputError` for other shapes and for labels
        outside the range.
        """
        self._require_shape(labels)
        scales = np.full(np.shape(labels)[:-1], self.tau)
        return label_sums.gaussian_sums(labels, weights, self.label_range, scales, bits)

    def log_ratio(self, released: Floats, here: Floats, there: Floats) -> Floats:
        """The log likelihood ratio of sums (n, m), exact sums `there` over `here`, (n, m) too, up to scale; (n,)."""
        return np.asarray(((there - here) * (released - (here + there) / 2)).sum(axis=1))

    def delta_at(self, epsilon: float) -> float:
        """The delta of one release at another epsilon >= 0 on the worst data, its discretisation charged."""
        return self.composed_delta(epsilon, 1)

    def composed_delta(self, epsilon: float, releases: int) -> float:
        """The same of so many releases with fresh bags, weights and noise, also when chosen adaptively."""
        require_whole("releases", releases, 1)
        ratio = calibration.width(self.label_range) / require_positive("tau", self.tau)
        return label_sums.charged(lambda e: self._mean(e, ratio, releases), epsilon)

    def _mean(self, epsilon: float, ratio: float, releases: int) -> float:
        """The mean over how many of the releases have the record in a bag."""
        times, probability = binomial(releases, self.inclusion)
        charges = label_sums.CHARGE * np.sqrt(times)
        return math.fsum(
            p * mean_delta_chi(epsilon, ratio, int(t), charge)
            for t, p, charge in zip(times, probability, charges, strict=True)
            if t > 0
        )


def repaired_bag_sums(
    records: int, bags: int, size: int, *, tau: float, label_range: tuple[float, float], epsilon: float
) -> RepairedBagSums:
    """The mechanism with a given noise scale; it claims the delta at `epsilon` that holds for all data.

    Raises `InputError` for arguments out of range.

    Examples:
        >>> repaired_bag_sums(6400, 50, 64, tau=5.0, label_range=(0.0, 1.0), epsilon=1.0).delta
        0.0001622
    """
    require_bags(records, bags, size)
    claimed = RepairedBagSums(records, bags, size, label_range, tau, epsilon, 0.0).delta_at(epsilon)
    return RepairedBagSums(records, bags, size, label_range, tau, epsilon, claimed)


def calibrate(
    records: int, bags: int, size: int, *, label_range: tuple[float, float], epsilon: float, delta: float
) -> RepairedBagSums:
    """The mechanism with the least noise that makes one release (epsilon, delta)-private for all data.

    Raises `InputError` for arguments out of range.

    Examples:
        >>> calibrate(6400, 50, 64, label_range=(0.0, 1.0), epsilon=1.0, delta=1e-5).tau
        7.278
    """
    require_bags(records, bags, size)
    calibration.require_target(epsilon, delta)
    per_bag = min(delta * (1 - 1e-8) * records / (bags * size), 1 - 1e-8)
    tau = calibration.smallest_tau(epsilon, per_bag, label_range=label_range, charge=label_sums.CHARGE)
    return RepairedBagSums(records, bags, size, label_range, tau, epsilon, delta)


# Least value and step of x = ln(distance from where the integrand begins)
_PRECISE, _COARSE = (-24.0, 0.05), (-8.0, 0.2)
_LARGEST = 40.0  # |u| beyond is impossible
_LARGEST_EPSILON = 700.0
_PAIRS = 256  # at a time: the work arrays stay in the processor's cache
_COLLAPSED = 1e-12  # below this b² the changed labels leave no residual


def pair_delta(
    epsilon: float, change: Floats, leverage: Floats, residual: Floats, rss: float, *, coarse: bool = False
) -> Floats:
    """The exact delta of one changed label in a bag, in the worse of both orders, elementwise over (k,) arrays.

    A label moves by dy, h is the leverage of its row, r its residual, and rss = |residual|². The two laws are those of
    P: u, v ~ N(0, 1), and Q: u ~ N(0, 1), v | u ~ N(a u, b²). Here a = dy sqrt(h/rss) and b² = 1 + (2 dy r + dy²
    (1 - h))/rss.

    `change`: dy; `leverage` in [0, 1] and `residual` of the changed record's row; `rss` > 0, the sum of squared
    residuals. 1 where the changed labels leave no residual. Relative error below 1e-8 as long as delta is above 1e-40;
    with `coarse` within some per cent above 1e-12, for a search. Raises `InputError` for epsilon outside [0, 700].

    Examples:
        >>> change, leverage, residual = np.array([0.1, 1.0]), np.array([0.2, 0.2]), np.array([0.3, 0.3])
        >>> pair_delta(0.5, change, leverage, residual, rss=4.0)
        array([6.421e-10, 0.02816])
    """
    required(
        "epsilon", epsilon, f"lie between 0 and {_LARGEST_EPSILON:g}", lambda given: 0 <= given <= _LARGEST_EPSILON
    )
    shift = np.abs(change) * np.sqrt(leverage / rss)
    square = 1 + (2 * change * residual + change**2 * (1 - leverage)) / rss
    collapsed = square <= _COLLAPSED
    spread = np.sqrt(np.where(collapsed, 1.0, square))
    result = np.empty(len(shift))
    low, step = _COARSE if coarse else _PRECISE
    x = np.arange(low, math.log(_LARGEST) + step, step)
    for start in range(0, len(shift), _PAIRS):
        part = slice(start, start + _PAIRS)
        a, b = shift[part], spread[part]
        # Seen from Q in units of its own spread, P is shifted by a/b and spread by 1/b.
        result[part] = np.maximum(_hockey_stick(epsilon, a, b, x), _hockey_stick(epsilon, a / b, 1 / b, x))
    return np.where(collapsed, 1.0, np.minimum(result, 1.0))


def _hockey_stick(epsilon: float, a: Floats, b: Floats, x: Floats) -> Floats:
    """E over u ~ N(0, 1) of the hockey-stick divergence of N(0, 1) from N(a u, b²), shape (k,).

    Twice the integral over u > 0, from where it begins to be positive; trapezoidal rule at equidistant ln(u - begin).
    """
    widened = np.maximum(epsilon - np.log(b), 0.0) * (b > 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        begin = np.where(widened > 0, np.sqrt(2 * (b**2 - 1) * widened) / a, 0.0)
    begin = np.minimum(begin, _LARGEST)[:, None]  # also where a = 0 makes it infinite
    u = begin + np.exp(x)
    density = np.exp(-0.5 * u * u + x) * ((x[1] - x[0]) * 2 / math.sqrt(2 * math.pi))
    integral: Floats = (density * _inner(epsilon, a[:, None] * u, b[:, None])).sum(axis=1)
    return integral


def _inner(epsilon: float, mean: Floats, b: Floats) -> Floats:
    """The hockey-stick divergence at e^epsilon of N(0, 1) from N(mean, b²), mean >= 0, broadcast.

    The log ratio of densities at v exceeds epsilon where A v² + B v + C > 0, with A = (1/b² - 1)/2, B = -mean/b² and
    C = mean²/2b² + ln b - epsilon: between the roots for b > 1, outside of them for b < 1, below one for b = 1.
    """
    from scipy.special import ndtr

    inverse = 1 / b
    half = (inverse - 1) * (inverse + 1) / 2
    linear = mean * inverse**2
    constant = (mean * inverse) ** 2 / 2 + np.log(b) - epsilon
    discriminant = (mean * inverse) ** 2 - 4 * half * (np.log(b) - epsilon)
    q = (linear + np.sqrt(np.maximum(discriminant, 0.0))) / 2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near = np.where(q > 0, constant / q, -np.inf)  # the root that stays where it is as b passes 1
        far = np.where(half == 0, np.inf, q / half)

    def mass(centre: Floats, scale: Floats) -> Floats:
        below: Floats = ndtr((near - centre) * scale)
        beyond: Floats = ndtr((far - centre) * np.where(b > 1, scale, -scale))
        return below + np.where(b > 1, -1, 1) * beyond

    seen = mass(np.zeros_like(mean), np.ones_like(b)) - math.exp(epsilon) * mass(mean, inverse)
    return np.where(discriminant > 0, np.maximum(seen, 0.0), 0.0)
