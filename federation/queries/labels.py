"""Queries about rows with real labels: bag sums, weighted sums, private labels, and a noisy sum X'y.

Features are public, labels lie in a declared public range, and a row is at one party. Noise and guarantee follow from a
query alone, so that both sides compute the same.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import HELD_ONCE, Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.honest import BEYOND, REACH, ROUNDING, Arrays, Honest, PartySize
from federation.contract.query import (
    MOST_BAGS,
    MOST_ROWS,
    Curve,
    Declared,
    Field,
    Noise,
    PrivateQuestion,
    whole,
    within,
)
from federation.features.feature_map import FeatureMap
from federation.mechanisms.accounting.composition import GaussianCurve
from federation.mechanisms.bag_sums import noisy_labels
from federation.mechanisms.bag_sums import weighted_sums as repaired
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.noisy_labels import LaplaceBagSums, NoisyBagSums, laplace_bag_sums, noisy_bag_sums
from federation.mechanisms.bag_sums.weighted_sums import RepairedBagSums
from federation.mechanisms.labels.calibration import LabelNoise
from federation.mechanisms.labels.calibration import calibrate as calibrate_labels
from federation.mechanisms.labels.mechanism import LabelMechanism, LabelRange
from federation.mechanisms.labels.randomised_response import BinnedResponse
from federation.mechanisms.labels.shaped_gaussian import LabelSums, Shape, fit_shape
from federation.mechanisms.labels.shaped_gaussian import calibrate as calibrate_sums
from federation.mechanisms.labels.unbiased_response import UnbiasedResponse, Weights
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.additive import NOISE_STEPS
from federation.mechanisms.noise.reach import additive_reaches
from federation.numerics.rows import Booleans, Floats
from federation.queries.bags import DIFFERENT_PEOPLE, LARGEST_FEATURE

DATA_DEPENDENT = "published"  # weighted sums without noise, whose delta depends on the data

_LARGEST = 2.0**80  # of sums over a party's rows, noise included
_LARGEST_WEIGHT = 9.0  # normal weights are drawn by 52 bits, and none is beyond 8.3
_ROUNDING = 1e-9  # relative, of sums over the rows of a party
_GRID = 1e-5  # of the range, times a bag's weights: noise of a bag is never finer than a small part of it
_RIDGE = 1e-9  # of the square of an entry: directions that rows and noise lack have some, or nothing could be in them
_SPLITS = np.geomspace(1e-3, 1e3, 61)  # between what rows and what noise reach
_TRACE = 2.0  # noise in the best shape has at most this multiple of the variance of a ball, and mostly much less
_FLAT = 1e-9  # of the largest variance of noise: directions with less have none
_PREMISES = (HELD_ONCE, DIFFERENT_PEOPLE)
_labels = lru_cache(calibrate_labels)  # all parties of a release have the same
_unbiased = lru_cache(UnbiasedResponse)  # whose table is checked once
_repaired = lru_cache(repaired.calibrate)  # parties of equal size have equal mechanisms
_UNSAFE = (
    "sums of rows and labels with secret weights have no guarantee for all data: a bag whose labels are a linear "
    "function of its rows reveals them"
)


@dataclass(frozen=True)
class LabelledRows:
    """Rows behind a public feature map with labels in [lowest, highest], both public; at most `most` at a party.

    Raises `InputError` unless the range has two finite ends, the first below the second.

    Examples:
        >>> LabelledRows(FeatureMap(2, ()), 0.0, 5.0, most=40).assumes().label_range
        (0.0, 5.0)
        >>> LabelledRows(FeatureMap(2, ()), 5.0, 0.0, most=40)
        Traceback (most recent call last):
        federation.contract.errors.InputError: the range of labels must be two finite numbers lo < hi, got [5.0, 0.0]
    """

    feature_map: FeatureMap
    lowest: float
    highest: float
    most: int

    def __post_init__(self) -> None:
        whole("most rows", self.most, 1, MOST_ROWS)
        if not (math.isfinite(self.lowest) and math.isfinite(self.highest) and self.lowest < self.highest):
            raise InputError(
                f"the range of labels must be two finite numbers lo < hi, got [{self.lowest}, {self.highest}]"
            )

    @property
    def label_range(self) -> tuple[float, float]:
        """(lowest, highest)."""
        return self.lowest, self.highest

    @property
    def size(self) -> Field:
        """The field for how many rows a party has, a public number."""
        return Field((), minimum=1.0, maximum=self.most)

    def assumes(self) -> Declared:
        """What a question about these rows takes for granted."""
        return Declared(most_rows=self.most, label_range=self.label_range)


@dataclass(frozen=True)
class BagSums:
    """How a party forms bags: m = `bags` disjoint ones of k = `size` rows, with `weights` "signs" or "gaussian".

    Of its rows the first `records` take part, as many as every party has. Where that is 0, a party forms as many bags
    as it can, up to m, and all rows that take part are in bags. `per_bag` labels of each bag get noise, or, where that
    is 0, the same `noisy` rows of all, drawn without labels. Raises `InputError` for anything but whole numbers that
    some machine has memory for.

    Examples:
        >>> design = BagSums(records=0, bags=4, size=8, weights="signs", per_bag=8, noisy=0)
        >>> design.formed(20), design.taking_part(design.formed(20))
        (2, 16)
    """

    records: int
    bags: int
    size: int
    weights: Literal["signs", "gaussian"]
    per_bag: int
    noisy: int

    def __post_init__(self) -> None:
        whole("bags", self.bags, 1, MOST_ROWS)
        whole("size, the rows of a bag,", self.size, 1, MOST_BAGS)
        for name in ("records", "per_bag", "noisy"):
            whole(name, getattr(self, name), 0, MOST_ROWS)

    def formed(self, rows: int) -> int:
        """How many bags a party with so many rows forms; 0 where they are too few."""
        if self.records:
            return self.bags if rows >= self.records else 0
        return min(rows // self.size, self.bags)

    def taking_part(self, formed: int) -> int:
        """How many rows of a party that forms so many bags take part."""
        return self.records or formed * self.size

    @property
    def rows_differ(self) -> bool:
        """Whether rows of a bag fare differently: some with noise on their labels, some without."""
        every = self.per_bag == self.size or self.noisy == self.records
        return not every and not (self.weights == "signs" and bool(self.per_bag))

    def fields(self) -> dict[str, Field]:
        """How many bags there are; the others are filled up with zeros."""
        return {"formed": Field((), minimum=1.0, maximum=float(self.bags))}

    def shape(self, formed: int | None) -> tuple[int, int, int]:
        """(rows that take part, bags, rows of a bag) of `formed` bags, None for as many as there can be."""
        bags = self.bags if formed is None else formed
        return self.taking_part(bags), bags, self.size


@dataclass(frozen=True)
class LabelQuestion(PrivateQuestion):
    """Base of the questions about real labels."""

    kept: ClassVar[bool] = True
    rows: LabelledRows
    takes_features_as_public = True

    def work(self) -> int:
        """Features of all rows."""
        return self.rows.most * self.rows.feature_map.dimension

    def assumes(self) -> Declared:
        """The most rows and the range of labels."""
        return self.rows.assumes()


@dataclass(frozen=True)
class BagSumsNoise(Noise):
    """Noise of label sums; `sigma` is given, or None for the least that epsilon and delta need."""

    kind: Literal["gaussian", "laplace", "off"]
    sigma: float | None = None


@dataclass(frozen=True)
class BagSumsQuestion(LabelQuestion):
    """Form bags, weigh their rows, and send rows, weights and noisy weighted label sums (Brahmbhatt et al., Fig. 2).

    Bags are the same for all draws, weights and noise are fresh in each.

    Examples:
        >>> from federation.contract.query import ReleaseId
        >>> rows, design = LabelledRows(FeatureMap(2, ()), 0.0, 1.0, 40), BagSums(0, 4, 8, "signs", 8, 0)
        >>> question = BagSumsQuestion(BagSumsNoise("gaussian", 1.0, 1e-6), rows, design, release=ReleaseId("demo"))
        >>> {name: field.shape for name, field in question.fields().items()}
        {'formed': (), 'rows': (4, 8, 2), 'weights': (1, 4, 8), 'sums': (1, 4)}
        >>> question.mechanism().sigma
        1.49365
    """

    kind: ClassVar[str] = "bag_sums"
    noise: BagSumsNoise
    design: BagSums

    def honest(self, public: PartySize) -> "HonestBagSums":
        """Sums that the published weights can give."""
        return HonestBagSums(self)

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        design, largest = self.design, 1.0 if self.design.weights == "signs" else _LARGEST_WEIGHT
        rows = within(LARGEST_FEATURE, design.bags, design.size, self.rows.feature_map.dimension)
        weights = within(largest, self.draws, design.bags, design.size)
        return {**design.fields(), "rows": rows, "weights": weights, "sums": _real(self.draws, design.bags)}

    def work(self) -> int:
        """Features of all rows, and which of those that take part get noise."""
        return super().work() + self.design.records

    def mechanism(self, formed: int | None = None) -> NoisyBagSums | LaplaceBagSums:
        """Noise on labels of `formed` bags, None for as many as there can be: of a given sigma, or the least there is.

        The noise and what it promises do not depend on that number. Raises `InputError`.
        """
        return _bag_sums(self.noise, self.design, self.rows.label_range, formed)

    def curve(self) -> Curve:
        """That of the mechanism."""
        return self.mechanism().delta_at

    def _promised(self) -> Guarantee | NoGuarantee:
        known, mechanism = self.noise, self.mechanism()
        if mechanism.delta > known.delta:  # of a given sigma
            return NoGuarantee(
                f"at epsilon {known.epsilon:g} noise of standard deviation {known.sigma:g} on labels from "
                f"{self.rows.lowest:g} to {self.rows.highest:g} has delta {mechanism.delta:.3g}, above the declared "
                f"{known.delta:g}",
                (known.epsilon, known.delta),
            )
        return mechanism.guarantee(Unit.LABEL, Adjacency.REPLACE, _PREMISES)


@dataclass(frozen=True)
class WeightedSumsNoise(Noise):
    """Noise of label sums; with "published" there is none."""

    kind: Literal["gaussian", "published", "off"]

    @property
    def aims(self) -> bool:
        """Whether there is noise that is calibrated to something."""
        return self.kind == "gaussian"


@dataclass(frozen=True)
class WeightedSumsQuestion(LabelQuestion):
    """Form bags, weigh their rows with secret Gaussian weights, and send sums of rows and labels (ibid., Fig. 1).

    Bags and weights are fresh in each draw, and nobody learns them.

    Examples:
        >>> from federation.contract.query import ReleaseId
        >>> rows, design = LabelledRows(FeatureMap(2, ()), 0.0, 1.0, 40), BagSums(0, 4, 8, "gaussian", 0, 0)
        >>> published = WeightedSumsNoise("published", 1.0, 1e-6)
        >>> WeightedSumsQuestion(published, rows, design, release=ReleaseId("demo")).promise().reason[:56]
        'sums of rows and labels with secret weights have no guar'
    """

    kind: ClassVar[str] = "weighted_sums"
    noise: WeightedSumsNoise
    design: BagSums

    def honest(self, public: PartySize) -> "HonestWeightedSums":
        """Sums of labels under weights that are hardly ever large."""
        return HonestWeightedSums(self)

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        shape = (self.draws, self.design.bags)
        sums = {"row_sums": _real(*shape, self.rows.feature_map.dimension), "label_sums": _real(*shape)}
        return {**self.design.fields(), **sums}

    def work(self) -> int:
        """Weights of all bags, and features of all rows."""
        return super().work() + self.design.records + self.design.bags * self.design.size

    def mechanism(self, formed: int | None = None) -> RepairedBagSums:
        """Noise on label sums of `formed` bags with secret weights; as `BagSumsQuestion.mechanism`."""
        return _repaired(*self.design.shape(formed), label_range=self.rows.label_range, **self.noise.target)

    def curve(self) -> Curve:
        """That of the mechanism."""
        return self.mechanism().delta_at

    def _promised(self) -> Guarantee | NoGuarantee:
        if self.noise.kind == DATA_DEPENDENT:
            return NoGuarantee(_UNSAFE)
        return self.mechanism().guarantee(Unit.LABEL, Adjacency.REPLACE, _PREMISES)


@dataclass(frozen=True)
class LabelsNoise(Noise):
    """Noise of single labels; `debiased` corrects the answers of bins.

    "unbiased" carries its table of answers, `outputs` in half widths of the range and `weights` of each over 2^32: a
    party checks that it keeps epsilon, and does not make it again.
    """

    kind: LabelNoise | Literal["off"]
    debiased: bool = False
    outputs: tuple[float, ...] = ()
    weights: Weights = ()


@dataclass(frozen=True)
class PrivateLabelsQuestion(LabelQuestion):
    """Send your rows with labels that are made private one by one; fewer than `rows.most` are filled up with zeros.

    Examples:
        >>> from federation.contract.query import ReleaseId
        >>> from federation.contract.randomness import NoiseBits
        >>> rows = LabelledRows(FeatureMap(2, ()), 0.0, 1.0, 40)
        >>> question = PrivateLabelsQuestion(LabelsNoise("one_bit", 1.0), rows, release=ReleaseId("demo"))
        >>> question.mechanism().release(np.array([0.0, 1.0, 0.5]), NoiseBits(0, "demo")).round(3)
        array([-0.582,  1.582, -0.582])
    """

    kind: ClassVar[str] = "private_labels"
    noise: LabelsNoise

    def honest(self, public: PartySize) -> "HonestLabels":
        """Labels where the mechanism can put them."""
        return HonestLabels(self)

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        rows = within(LARGEST_FEATURE, self.rows.most, self.rows.feature_map.dimension)
        return {"size": self.rows.size, "rows": rows, "labels": _real(self.draws, self.rows.most)}

    def mechanism(self) -> LabelMechanism:
        """Noise on single labels. Raises `InputError`, also for a table that does not keep epsilon."""
        if self.noise.kind == "unbiased":
            labels = LabelRange(*self.rows.label_range, "clip")
            return _unbiased(labels, self.noise.epsilon, self.noise.outputs, self.noise.weights)
        known = {"label_range": self.rows.label_range, "outside": "clip", "debiased": self.noise.debiased}
        return _labels(self.noise.kind, **self.noise.target, **known)

    def noised(self, arrays: Arrays) -> np.ndarray:
        """The labels of the rows that there are."""
        return arrays["labels"][:, : int(arrays["size"])]

    def _promised(self) -> Guarantee | NoGuarantee:
        return self.mechanism().guarantee(Unit.LABEL, Adjacency.REPLACE, _PREMISES)


@dataclass(frozen=True)
class LabelSumsNoise(Noise):
    """Noise of X'y; "auto" is the less of the other two by public numbers."""

    kind: Literal["auto", "gaussian", "pure", "off"]


@dataclass(frozen=True)
class LabelSumsQuestion(LabelQuestion):
    """Send X'X and X'1 of your public rows, and X'y with noise in a `shape` that hides every label.

    With noise comes its covariance, which the rows alone decide.

    Examples:
        >>> from federation.contract.query import ReleaseId
        >>> rows, noise = LabelledRows(FeatureMap(2, ()), 0.0, 1.0, 40), LabelSumsNoise("auto", 1.0, 1e-6)
        >>> question = LabelSumsQuestion(noise, rows, "optimal", release=ReleaseId("demo"))
        >>> {name: field.shape for name, field in question.fields().items()}
        {'size': (), 'gram': (2, 2), 'moment': (1, 2), 'row_sum': (2,), 'covariance': (2, 2)}
    """

    kind: ClassVar[str] = "label_sums"
    kept: ClassVar[bool] = False
    noise: LabelSumsNoise
    shape: Literal["optimal", "whitened", "isotropic"]

    def honest(self, public: PartySize) -> "HonestMoments":
        """Sums that X'X and the noise can reach."""
        return HonestMoments(self)

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        dimension = self.rows.feature_map.dimension
        square = (dimension, dimension)
        sent = {"size": self.rows.size, "gram": _real(*square), "moment": _real(self.draws, dimension)}
        if not self.noise.aims:
            return sent
        return {**sent, "row_sum": _real(dimension), "covariance": within(_LARGEST**2, *square)}

    def mechanism(self, rows: np.ndarray) -> LabelSums:
        """Noise on X'y for the public rows X (n, d) of a party. Raises `InputError`."""
        return self._shaped(fit_shape(rows, self.shape), len(rows))

    def log_ratio(self, seen: Arrays, here: Arrays, there: Arrays) -> np.ndarray:
        """That of the noise, in coordinates in which its covariance, which was sent, is that of unit rows."""
        variances, axes = np.linalg.eigh(seen["covariance"])
        held = variances > _FLAT * variances[-1]
        noise = self.mechanism(np.eye(int(held.sum())))
        inner = axes[:, held] * np.sqrt(noise.variance() / variances[held])
        return noise.additive.log_ratio(*(side["moment"] @ inner for side in (seen, here, there)))

    def _promised(self) -> Guarantee:
        """Without the numbers that each party's own rows decide: its noise has the shape of those."""
        unit = Shape(np.ones((1, 1)), np.ones((1, 1)), 1.0, 1.0)
        promised = self._shaped(unit, self.rows.most).guarantee(Unit.LABEL, Adjacency.REPLACE, _PREMISES)
        known = {name: promised.parameters[name] for name in ("low", "high")}
        return replace(promised, parameters={**known, "shape": self.shape}, gaussian_mu=None)

    def curve(self) -> Curve | None:
        """What Gaussian noise of no shape exceeds: none has a larger mu, nor a coarser grid."""
        delta, grid = self._promised().delta, (self.rows.feature_map.dimension, int(NOISE_STEPS))
        return GaussianCurve(gaussian.mu(self.noise.epsilon, delta), grid).delta if delta else None

    def _shaped(self, shape: Shape, rows: int) -> LabelSums:
        epsilon, delta, pure = self.noise.epsilon, self.noise.delta, self.noise.kind == "pure"
        if self.noise.kind == "auto":
            # By variance on each coordinate, of as many as there are features: the same number at all parties.
            variance = (self.rows.feature_map.dimension + 1) / epsilon**2
            pure = delta == 0 or variance <= 1 / gaussian.mu(epsilon, delta) ** 2
        labels = LabelRange(self.rows.lowest, self.rows.highest, "clip")  # to which every party clips its labels
        target = {"epsilon": epsilon, "delta": 0.0 if pure else delta}
        return calibrate_sums(shape, "pure" if pure else "gaussian", rows=rows, labels=labels, **target)


class HonestOfLabels(Honest):
    """Base: public are the range of labels, the rows and weights that come with them, and the law of the noise.

    What is said of labels can lie 40 standard deviations beyond the largest honest value, and no further.
    """

    def __init__(self, query: LabelQuestion) -> None:
        low, high = query.rows.label_range
        self._middle, self._half, self._largest = low + (high - low) / 2, (high - low) / 2, max(abs(low), abs(high))


class HonestLabels(HonestOfLabels):
    """Labels where the mechanism can put them, and zeros where there is no row."""

    def __init__(self, query: PrivateLabelsQuestion) -> None:
        super().__init__(query)
        self._low, self._high = query.rows.label_range
        mechanism = query.mechanism() if query.noise.aims else None
        if isinstance(mechanism, BinnedResponse):
            self._low, self._high = min(mechanism.values), max(mechanism.values)
        elif mechanism is not None:
            reach = REACH * float(np.max(mechanism.variance())) ** 0.5
            self._low, self._high = self._low - reach, self._high + reach

    def plausible(self, arrays: Arrays) -> Booleans:
        """Those whose labels are in the mechanism's range."""
        slack = _ROUNDING * self._largest
        held = np.arange(arrays["labels"].shape[2]) < arrays["size"][:, None]
        labels = arrays["labels"].swapaxes(0, 1)
        inside = np.where(held, (labels >= self._low - slack) & (labels <= self._high + slack), labels == 0)
        empty = (arrays["rows"] == 0).all(axis=2) | held
        return np.asarray(_whole(arrays["size"]) & inside.all(axis=(0, 2)) & empty.all(axis=1))


class HonestWeightedSums(HonestOfLabels):
    """Sums of labels under secret weights; sums of rows have no such bound."""

    def __init__(self, query: WeightedSumsQuestion) -> None:
        super().__init__(query)
        deviation = query.mechanism().tau if query.noise.aims else 0.0
        self._spread = math.hypot(query.design.size**0.5 * self._largest, deviation)

    def plausible(self, arrays: Arrays) -> Booleans:
        """Those within 40 standard deviations of weights and noise."""
        inside = (np.abs(arrays["label_sums"]) <= REACH * self._spread).all(axis=(1, 2))
        return np.asarray(_whole(arrays["formed"]) & inside)


class HonestBagSums(HonestOfLabels):
    """Sums that the published weights can give."""

    def __init__(self, query: BagSumsQuestion) -> None:
        super().__init__(query)
        self._signs, self._laplace = query.design.weights == "signs", query.noise.kind == "laplace"
        bags = query.mechanism() if query.noise.aims else None
        self._deviation = 0.0
        if bags is not None:
            self._deviation = 2**0.5 * bags.scale if isinstance(bags, LaplaceBagSums) else bags.sigma

    def plausible(self, arrays: Arrays) -> Booleans:
        """Those within 40 standard deviations of the noise on labels, or on sums."""
        weights = arrays["weights"]
        total, sizes = weights.sum(axis=3), np.abs(weights).sum(axis=3)
        if self._laplace:
            deviation = np.full(total.shape, self._deviation)
        else:
            deviation = self._deviation * np.sqrt(np.square(weights).sum(axis=3))
        slack = (_GRID * self._half + _ROUNDING * self._largest) * sizes
        beyond = np.abs(arrays["sums"] - self._middle * total) - self._half * sizes - slack
        fine = (beyond <= REACH * deviation).all(axis=(1, 2))
        formed = np.arange(weights.shape[2]) < arrays["formed"][:, None]
        if self._signs:
            fine &= (np.abs(weights) == formed[:, None, :, None]).all(axis=(1, 2, 3))
        return np.asarray(fine & _whole(arrays["formed"]))


class HonestMoments(HonestOfLabels):
    """Sums over public rows X (n, d) with labels in the query's range, and noise of the covariance that is sent.

    X'(y - middle) is from an ellipsoid of shape X'X, as |y - middle|² <= n half², and the noise but for its probability
    from one of the shape of its covariance. A sum of two is in every ellipsoid of shape (1 + 1/t) A + (1 + t) B, t > 0.
    Columns are bounded each by itself, too: by Cauchy and Schwarz, and by the law of one entry of the noise. Sums that
    are longer than honest ones are by their noise are scaled to what those reach.
    """

    on_grid = False

    def __init__(self, query: LabelSumsQuestion) -> None:
        super().__init__(query)
        self._query, dimension = query, query.rows.feature_map.dimension
        self._known: dict[int, tuple[float, float]] = {}
        self._deviation = 0.0
        if query.noise.aims:  # as for rows in all directions: fewer have no more noise
            self._deviation = query.mechanism(np.eye(dimension)).variance() ** 0.5
            self.widths = {"moment": dimension}

    def plausible(self, arrays: Arrays) -> Booleans:
        """Those with an X'X that is one, and what can come with it: |x'y| <= |x| |y| for every column x."""
        fine = (arrays["size"] == np.floor(arrays["size"])) & _second_moments(arrays["gram"])
        squares = np.diagonal(arrays["gram"], axis1=1, axis2=2).clip(0.0)
        norms, root = np.sqrt(squares), np.sqrt(arrays["size"])[:, None] * (1 + _ROUNDING)
        if self._query.shape == "isotropic":
            longest = np.sqrt(squares.sum(axis=1, keepdims=True))
        else:
            longest = np.sqrt(_TRACE * norms.shape[1]) * norms
        deviation = self._deviation * longest
        reach = root * self._largest * norms + REACH * deviation
        reach += _ROUNDING * reach.max(axis=1, keepdims=True)  # noise comes back in all columns, those of zeros too
        fine &= (np.abs(arrays["moment"]) <= reach[:, None]).all(axis=(1, 2))
        if "covariance" not in arrays:
            return np.asarray(fine)
        deviation = deviation + _ROUNDING * deviation.max(axis=1, keepdims=True)
        fine &= (np.diagonal(arrays["covariance"], axis1=1, axis2=2) <= deviation**2).all(axis=1)
        fine &= (np.abs(arrays["row_sum"]) <= root * norms).all(axis=1)
        return np.asarray(fine & _second_moments(arrays["covariance"]))

    def _reaches(self, rank: int) -> tuple[float, float]:
        """Of an entry and of the norm of noise of this rank, in standard deviations."""
        if rank not in self._known:
            noise = self._query.mechanism(np.eye(rank))
            entry, norm = additive_reaches(noise.additive, BEYOND)
            self._known[rank] = entry / noise.variance() ** 0.5, norm / noise.variance() ** 0.5
        return self._known[rank]

    def bounded(self, arrays: Arrays) -> tuple[dict[str, Floats], Booleans]:
        """The sums X'y (P, draws, d), within the ellipsoids."""
        moments, changed = arrays["moment"].copy(), np.zeros(len(arrays["moment"]), dtype=bool)
        for party in range(len(moments)):
            known = (arrays[name][party] for name in ("gram", "covariance", "size"))
            surplus = moments[party] - self._middle * arrays["row_sum"][party]
            kept = self._kept(surplus, *known)
            own = (kept != surplus).any(axis=1)
            moments[party, own] = (kept + self._middle * arrays["row_sum"][party])[own]
            changed[party] = own.any()
        return {"moment": moments}, changed

    def _kept(self, surplus: Floats, gram: Floats, covariance: Floats, size: Floats) -> Floats:
        """X'(y - middle) and noise (draws, d), no longer than that of honest parties."""
        entry, norm = self._reaches(int(np.linalg.matrix_rank(covariance, hermitian=True)) or 1)
        exact = self._half * np.sqrt(size)
        own = exact * np.sqrt(np.diagonal(gram).clip(0.0)) + entry * np.sqrt(np.diagonal(covariance).clip(0.0))
        reach = own * (1 + ROUNDING) + ROUNDING * own.max()
        cut: Floats = np.clip(surplus, -reach, reach)
        gauges = _gauges(cut, gram * exact**2, covariance * norm**2)
        return np.where(gauges[:, None] > 1 + ROUNDING, cut / np.maximum(gauges, 1.0)[:, None], cut)


def _gauges(vectors: Floats, *shapes: Floats) -> Floats:
    """How far vectors (draws, d) are out in the sum of two ellipsoids of these shapes (d, d): 1 is at its border.

    Of all ellipsoids around the sum the nearest on a grid, so that nothing in the sum is told to be out.
    """
    from scipy.linalg import eigh

    scale = np.sqrt(sum((np.diagonal(shape).clip(0.0) for shape in shapes), np.zeros(vectors.shape[1])))
    scale[scale == 0] = 1.0
    first, second = (shape / scale[:, None] / scale for shape in shapes)
    both = first + second
    # Whoever sends shapes may leave them indefinite by as much as rounding does.
    lengths, axes = eigh((both + both.T) / 2)
    axes = axes / np.sqrt(lengths.clip(0.0) + _RIDGE)
    inner = axes.T @ first @ axes
    values, turned = eigh((inner + inner.T) / 2)
    # In these coordinates the first shape is diag(values), and the second what is left to one.
    values = values.clip(0.0, 1.0)
    squares = np.square((vectors / scale) @ axes @ turned)
    split = _SPLITS[:, None]
    widths = (1 + 1 / split) * values + (1 + split) * (1 - values)
    return np.asarray(np.sqrt((squares @ (1 / widths.T)).max(axis=1)))


def _second_moments(matrices: Floats) -> Booleans:
    """Which of (P, d, d) are symmetric and positive semidefinite but for rounding, in units of their diagonals."""
    squares = np.diagonal(matrices, axis1=1, axis2=2)
    scale = np.sqrt(np.where(squares > 0, squares, 1.0))
    scaled = matrices / scale[:, :, None] / scale[:, None, :]
    rounding = _ROUNDING * scaled.shape[1]
    fine = (squares >= 0).all(axis=1) & (np.abs(scaled - scaled.swapaxes(1, 2)) <= rounding).all(axis=(1, 2))
    fine &= (np.abs(scaled) <= 1 + rounding).all(axis=(1, 2))
    fine[fine] = np.linalg.eigvalsh(scaled[fine])[:, 0] >= -rounding
    return np.asarray(fine)


def _whole(sizes: np.ndarray) -> np.ndarray:
    return np.asarray(sizes == np.floor(sizes))


def _real(*shape: int) -> Field:
    return within(_LARGEST, *shape)


@lru_cache  # parties of equal size have equal mechanisms
def _bag_sums(
    noise: BagSumsNoise, design: BagSums, label_range: tuple[float, float], formed: int | None
) -> NoisyBagSums | LaplaceBagSums:
    shape = design.shape(formed)
    if noise.kind == "laplace":
        return laplace_bag_sums(*shape, label_range=label_range, epsilon=noise.epsilon)
    if noise.kind != "gaussian":
        raise InputError(f"noise of bag sums must be gaussian or laplace, got {noise.kind!r}")
    chosen = {"per_bag": design.per_bag} if design.per_bag else {"noisy": design.noisy}
    bags = BagDesign(*shape, weights=design.weights, **chosen)
    if noise.sigma is not None:
        return noisy_bag_sums(bags, sigma=noise.sigma, label_range=label_range, epsilon=noise.epsilon)
    return noisy_labels.calibrate(bags, label_range=label_range, **noise.target)
