"""All mechanisms for private labels, the least predicted excess risk first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from aggregator.advice import risk
from aggregator.learners.inputs.validation import require_one_of
from federation.contract.errors import InputError
from federation.contract.guarantee import require_delta, require_epsilon
from federation.contract.numbers import apart
from federation.mechanisms.bag_sums.calibrated_sums import smallest_sigma, smallest_tau
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.labels import private_prior, unbiased_design
from federation.mechanisms.labels.binned_response import BinnedResponse, mean_errors
from federation.mechanisms.labels.calibrated_labels import LabelNoise, calibrate
from federation.mechanisms.labels.label_range import LabelRange
from federation.mechanisms.labels.unbiased_response import MOST_EPSILON
from federation.mechanisms.noise import gaussian

Trust = Literal["aggregator", "none"]
Task = Literal["regression", "classification"]
Options = dict[str, float | int | str | bool]

BAG_SIZE = 64
_LEARNED = 0.05  # share of the squared bias of debiased bins of the true prior that models of three real tables learned
_COUNTED = 250.0  # labels for each point of a histogram, times epsilon, from which on its noise does not matter


@dataclass(frozen=True)
class Advice:
    """A mechanism with its options, the excess risk that public numbers predict, and the reason in words.

    `mechanism` is "label_sums", "private_labels", "noisy_weighted_llp" or "weighted_lba". `delta` is what it claims.
    """

    mechanism: str
    options: Options
    predicted_excess: float
    delta: float
    why: str


@dataclass(frozen=True)
class _World:
    """The public numbers of `rank`."""

    rows: int
    dimension: int
    parties: int
    epsilon: float
    delta: float
    labels: LabelRange
    residual: float
    trust: Trust
    bag_size: int
    traces: dict[str, float]


def rank(
    n: int,
    dimension: int,
    parties: int,
    epsilon: float,
    delta: float,
    *,
    label_range: tuple[float, float] = (0.0, 1.0),
    trust: Trust = "aggregator",
    task: Task = "regression",
    residual: float | None = None,
    traces: dict[str, float] | None = None,
    bag_size: int = BAG_SIZE,
) -> list[Advice]:
    """Mechanisms by predicted excess risk of linear least squares on n public rows of `dimension` columns.

    A release is shrunk by its noise unless it is told not to, and then has less excess where that is large.
    `dimension` is the rank r of the rows, constant column included; they lie at `parties` parties. With `trust`
    "aggregator" one noise hides the sum of all parties, with "none" each adds its own; mechanisms for single labels
    and for bags need no trust either way. At `delta` 0 only pure mechanisms are compared. `task` "classification" is
    about two classes, labels 0 and 1, in squared error. `residual` is the variance of labels around the best linear
    model, (width/2)² at most and by default; `traces` gives tr C by shape ("optimal", "whitened") where the rows have
    been looked at. Raises `InputError` for numbers out of range.

    Examples:
        >>> for advice in rank(20_000, 10, parties=20, epsilon=1.0, delta=1e-6)[:2]:
        ...     print(advice.mechanism, advice.options, round(advice.predicted_excess, 5))
        label_sums {'shape': 'optimal', 'noise': 'pure'} 0.00019
        label_sums {'shape': 'optimal', 'noise': 'gaussian'} 0.00022
    """
    require_one_of("task", task, get_args(Task))
    require_one_of("trust", trust, get_args(Trust))
    for name, value in (("n", n), ("dimension", dimension), ("parties", parties), ("bag_size", bag_size)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} must be an integer >= 1, got {value!r}")
    if parties > n:
        raise InputError(f"parties must be at most n, one row each, got {parties} parties and {n} rows")
    require_epsilon(epsilon)
    require_delta(delta)
    low, high = (0.0, 1.0) if task == "classification" else label_range
    labels = LabelRange(float(low), float(high))
    largest = (labels.width / 2) ** 2
    if residual is not None and not 0 <= residual <= largest:
        most, given = apart(largest, residual)
        raise InputError(f"residual must lie in [0, {most}], a variance of labels in the range, got {given}")
    for shape, trace in (traces or {}).items():
        if shape not in get_args(risk.Shape) or not 0 < trace < math.inf:
            raise InputError(
                f"traces must be positive numbers by shape, optimal or whitened, got {trace} for {shape!r}"
            )
    known = largest if residual is None else residual
    world = _World(n, dimension, parties, epsilon, delta, labels, known, trust, bag_size, dict(traces or {}))
    found = [*_sums(world), *_single_labels(world), *_bags(world)]
    worse = "; WORSE than predicting the middle of the range"
    judged = [one if one.predicted_excess < largest else replace(one, why=one.why + worse) for one in found]
    return sorted(judged, key=lambda advice: advice.predicted_excess)


def _sums(world: _World) -> Iterator[Advice]:
    copies = world.parties if world.trust == "none" else 1
    noises = {"pure": ((world.dimension + 1) * (world.labels.width / world.epsilon) ** 2, 0.0)}
    if world.delta > 0:
        noises["gaussian"] = ((world.labels.width / gaussian.mu(world.epsilon, world.delta)) ** 2, world.delta)
    hidden = "one noise hides the sum of all parties" if copies == 1 else f"each of {copies} parties adds noise"
    shapes: tuple[risk.Shape, ...] = get_args(risk.Shape)
    for shape in shapes:
        trace = world.traces.get(shape, risk.typical_trace(world.dimension, world.rows, shape))
        for noise, (variance, claimed) in noises.items():
            excess = risk.label_sums(world.dimension, world.rows, world.residual, variance, trace, copies)
            why = (
                f"{hidden}: {world.dimension} numbers for {world.rows} rows; tr C {trace:.3g}"
                f"{'' if shape in world.traces else ' assumed'}, variance {variance:.3g}"
            )
            yield Advice("label_sums", {"shape": shape, "noise": noise}, excess, claimed, why)


def _single_labels(world: _World) -> Iterator[Advice]:
    kinds: list[tuple[LabelNoise, bool]] = [("laplace", False), ("one_bit", False), ("bins", False), ("bins", True)]
    if world.epsilon >= unbiased_design.WORTHWHILE:
        kinds.append(("unbiased", False))
    if world.delta > 0:
        kinds.append(("gaussian", False))
    span = (world.labels.low, world.labels.high)
    for noise, debiased in kinds:
        named, spent = (noise, world.epsilon) if noise != "unbiased" else ("auto", min(world.epsilon, MOST_EPSILON))
        mechanism = calibrate(noise, epsilon=spent, delta=world.delta, label_range=span, debiased=debiased)
        if isinstance(mechanism, BinnedResponse):
            variance, bias = mean_errors(mechanism)
            options: Options = {"noise": noise, "debiased": debiased}
            remark = f"squared bias {bias:.3g} for labels of any value alike, and "
            yield _labels(world, options, variance, bias, remark)
        else:
            yield _labels(world, {"noise": named}, float(mechanism.variance()), 0.0, "unbiased; ", mechanism.delta)
    if world.rows // world.parties * world.epsilon >= _COUNTED * private_prior.DEFAULT_POINTS:
        left = world.epsilon * (1 - private_prior.DEFAULT_SHARE)
        even = calibrate("bins", epsilon=left, delta=0.0, label_range=span, debiased=True)
        assert isinstance(even, BinnedResponse)
        variance, bias = mean_errors(even)
        options = {"noise": "estimated_bins", "debiased": True}
        yield _labels(world, options, variance, _LEARNED * bias, "bins after a private histogram: little bias; ")


def _labels(world: _World, options: Options, variance: float, bias: float, remark: str, claimed: float = 0.0) -> Advice:
    excess = risk.private_labels(world.dimension, world.rows, world.residual, variance, bias)
    why = f"needs no trust, and any learner can use the labels; {remark}variance {variance:.3g} on each"
    return Advice("private_labels", options, excess, claimed, why)


def _bags(world: _World) -> Iterator[Advice]:
    size = world.bag_size
    bags = world.parties * (world.rows // world.parties // size)
    if not bags:
        return
    width, used = world.labels.width, bags * size

    def sums(options: Options, noise: float, claimed: float, why: str) -> Advice:
        excess = risk.bag_sums(world.dimension, used, world.residual, size, noise)
        return Advice("noisy_weighted_llp", {"bag_size": size, **options}, excess, claimed, why)

    why = f"{bags} sums over {size} labels each, which mix their residuals for the same noise on a sum as on one label"
    yield sums({"weights": "signs", "noise": "laplace"}, 2 * (width / world.epsilon) ** 2, 0.0, why)
    if world.delta == 0:
        return
    signs = (width / gaussian.mu(world.epsilon, world.delta)) ** 2
    yield sums({"weights": "signs", "noise": "gaussian"}, signs, world.delta, why)
    design = BagDesign(world.rows // world.parties, bags // world.parties, size, per_bag=size)
    span = (world.labels.low, world.labels.high)
    sigma = smallest_sigma(world.epsilon, world.delta, design, label_range=span)
    published = f"published Gaussian weights make some labels loud: noise {sigma:.3g} on every label"
    yield sums({"weights": "gaussian", "noise": "gaussian"}, size * sigma**2, world.delta, published)
    tau = smallest_tau(world.epsilon, world.delta, label_range=span)
    excess = risk.weighted_bags(world.dimension, bags, world.residual, size, tau**2)
    why = f"{bags} secret combinations of rows and labels; a guarantee for all data needs noise {tau:.3g} on each"
    yield Advice("weighted_lba", {"bag_size": size, "repaired": True}, excess, world.delta, why)
