"""Queries about bags of rows: private label counts, mean embeddings and rows, of one party or summed over parties.

A party holds one or several bags, a bag has a public number of rows, and a row is in one bag. Noise and guarantee
follow from a query alone. So both sides build the same mechanism without a word about private data.

The queries derived from `BagTotalsQuestion` are about bags that are the same at all parties. Only a sum over the
parties is revealed (secure aggregation). A party adds its share of one noise to the label counts of every bag. For a
bag of which it has no row the party sends zeros with a share, so that an observer cannot see which bags it has.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import (
    UNTIMED,
    Adjacency,
    Assumption,
    Check,
    Guarantee,
    Keeper,
    NoGuarantee,
    Unit,
    protected,
)
from federation.contract.honest import BEYOND, REACH, ROUNDING, Arrays, Honest, PartySize, Range
from federation.contract.query import (
    MOST_BAGS,
    MOST_CLASSES,
    MOST_ROWS,
    OFF,
    Curve,
    Declared,
    Field,
    Noise,
    PrivateQuestion,
    PublicQuestion,
    Question,
    whole,
    within,
)
from federation.features.feature_map import FeatureMap
from federation.mechanisms.accounting.composition import GaussianCurve
from federation.mechanisms.counts.additive import AdditiveCounts, CountMechanism
from federation.mechanisms.counts.calibration import CountNoise, published_guarantee
from federation.mechanisms.counts.calibration import calibrate as calibrate_counts
from federation.mechanisms.noise.additive import AdditiveMechanism, calibrate
from federation.mechanisms.noise.reach import Tail, entry_reach, norm_reach
from federation.mechanisms.sums import shared_sums as bag_totals
from federation.mechanisms.sums import shares
from federation.mechanisms.sums.shared_sums import SharedBagNoise
from federation.numerics.rows import Booleans, Floats

PUBLISHED = "published_dirichlet"  # not differentially private, and drawn by a function of its own
LARGEST_COUNT = 2.0**40  # of rows in a bag, noise included
LARGEST_FEATURE = 2.0**100  # of a row; the squares of much larger ones overflow

_DISJOINT = Assumption("a row lies in one bag of one party", Check.ENFORCED)
_ONE_HOLDER = Assumption("no two parties hold the same row or person", Check.DECLARED, Keeper.HOLDER)
_SIZES_PUBLIC = Assumption(
    "bag sizes, and which replaced row lies in which bag, are public knowledge", Check.DECLARED, Keeper.HOLDER
)
DIFFERENT_PEOPLE = Assumption(
    "every row is about another person: what is protected is one row's label", Check.DECLARED, Keeper.HOLDER
)
SHORT_ROWS = Assumption("rows behind the public feature map have norm at most 1", Check.ENFORCED)

_counts = lru_cache(calibrate_counts)  # all parties of a release have the same
_POINTS = 2**14  # of a tail, between which it is taken for what it is at the lower one
_NEVER = 1e-30  # a probability
_COUNT_GRID = 2.0**-20  # records
_SIZE_ROUNDING = 1e-9  # of a bag's size: what counts in units of grid steps may miss in their sum
_ROUNDING = 1e-6  # charged for, relative: norms and sums of rows, and products with the label weight, are rounded


@dataclass(frozen=True)
class Bags:
    """How the rows of a party lie in bags: at most `count` of them, whose sizes are public, over C `classes`.

    `rows_per_person` 0 says that every row is another person's. Otherwise a person's rows count in so many bags at
    most, once in each; its further rows are left out everywhere.

    Raises `InputError` for anything but whole numbers: a person's noise is divided by `rows_per_person`, and of 1.5
    bags a person would be in two. There are 2^20 bags at most, and as many cells of classes in bags.

    Examples:
        >>> Bags(count=2, classes=3).fields()["sizes"].shape
        (2,)
        >>> Bags(count=2, classes=3, rows_per_person=1.5)
        Traceback (most recent call last):
        federation.contract.errors.InputError: rows_per_person of bags must be a whole number from 0 to 1048576, got 1.5
    """

    count: int
    classes: int
    rows_per_person: int = 0

    def __post_init__(self) -> None:
        whole("count of bags", self.count, 1, MOST_BAGS)
        whole("classes of bags", self.classes, 1, MOST_CLASSES)
        whole("rows_per_person of bags", self.rows_per_person, 0, MOST_BAGS)
        if self.count * self.classes > MOST_BAGS:
            raise InputError(
                f"bags times classes must be at most {MOST_BAGS}, got {self.count} bags of {self.classes} classes"
            )

    def fields(self) -> dict[str, Field]:
        """The number of rows of each bag, 0 for bags that the party does not have."""
        return {"sizes": Field((self.count,), minimum=0.0, maximum=LARGEST_COUNT)}

    @property
    def shares(self) -> int:
        """How many bags one person may be in, between which its epsilon and delta are divided."""
        return max(1, self.rows_per_person)

    def assumes(self) -> Declared:
        """What a question about these bags takes for granted."""
        return Declared(classes=self.classes, bags=self.count, rows_per_person=self.rows_per_person)


class BagQuestion(Question):
    """Base of the questions about bags."""

    bags: Bags

    def honest(self, public: PartySize) -> "HonestBags | HonestTotals":
        """What can be of bags of so many rows at most, without noise."""
        return HonestBags(public.largest_bag)

    def assumes(self) -> Declared:
        """Classes, bags and persons."""
        return self.bags.assumes()


class HonestBags(Honest):
    """Responses about bags of at most `largest` rows each.

    Noise takes a count at most `count_reach` below 0 or beyond its bag's size, and moves each entry of a sum of rows of
    norm 1 by `sum_reach`. Counts within that, but further out than the noise of `mechanism` takes those of an honest
    party in `bags` bags, are scaled.
    """

    def __init__(
        self,
        largest: int,
        count_reach: float = 0.0,
        sum_reach: float = 0.0,
        mechanism: AdditiveCounts | None = None,
        bags: int = 1,
    ) -> None:
        self._largest, self._count_reach, self._sum_reach = largest, count_reach, sum_reach
        self._mechanism, self._bags = mechanism, bags
        self.widths = {} if mechanism is None else {"counts": bags * mechanism.classes}

    def plausible(self, arrays: Arrays) -> Booleans:
        """Those whose sizes are whole numbers in range, one of them positive, and all else is possible with them."""
        sizes = arrays["sizes"]
        fine = (sizes == np.floor(sizes)).all(axis=1) & (sizes.max(axis=1) > 0) & (sizes.max(axis=1) <= self._largest)
        if "counts" in arrays:
            counts, whole = arrays["counts"], sizes[:, None, :]
            rounding = _SIZE_ROUNDING * (1 + np.abs(counts).sum(axis=3))
            reach = np.where(whole > 0, self._count_reach, 0.0) + rounding
            fine &= (np.abs(counts.sum(axis=3) - whole) <= rounding).all(axis=(1, 2))
            fine &= ((counts.min(axis=3) >= -reach) & (counts.max(axis=3) <= whole + reach)).all(axis=(1, 2))
        if "means" in arrays:  # (P, B, D), or (P, draws, B, D) of noisy ones
            norms = np.linalg.norm(arrays["means"], axis=-1)
            norms = norms[:, None] if norms.ndim == 2 else norms
            reach = self._sum_reach * np.sqrt(arrays["means"].shape[-1])
            fine &= (sizes[:, None, :] * (norms - 1 - _SIZE_ROUNDING) <= reach).all(axis=(1, 2))
        return np.asarray(fine)

    def bounded(self, arrays: Arrays) -> tuple[dict[str, Floats], Booleans]:
        """Counts within the range of the noise."""
        assert self._mechanism is not None, "nothing is scaled without it"
        counts, scaled = _count_range(self._mechanism, self._bags).bounded(arrays["counts"], arrays["sizes"])
        return {"counts": counts}, scaled


class CountRange:
    """Of counts with the noise of `mechanism` in `bags` bags of a party.

    A count is from 0 to the size m of its bag, so that it lies within m/2 of m/2 but for noise, and the counts of one
    class in all bags, whose noise is independent, within the norm of all m/2.
    """

    def __init__(self, mechanism: AdditiveCounts, bags: int) -> None:
        self._classes = mechanism.classes
        beyond = BEYOND / 2 / mechanism.classes
        tail = _tail(mechanism)
        self._entry, self._norm = entry_reach(tail, beyond / bags), norm_reach(tail, bags, beyond)

    def bounded(self, counts: Floats, sizes: Floats) -> tuple[Floats, Booleans]:
        """Counts (P, draws, B, C) of bags of these sizes (P, B) within the range, and whose were not, (P,).

        What is changed sums to the sizes again.
        """
        half = sizes[:, None, :] / 2
        honest = Range(half.max(axis=(1, 2)) + self._entry, np.linalg.norm(half, axis=2)[:, 0] + self._norm)
        found, changed = counts.copy(), np.zeros(len(counts), dtype=bool)
        for label in range(self._classes):
            kept, own = honest.bounded(counts[..., label] - half, _COUNT_GRID)
            found[..., label], changed = np.where(own[:, None, None], kept + half, counts[..., label]), changed | own
        excess = (found.sum(axis=3) - sizes[:, None, :]) / self._classes
        there = changed[:, None, None] & (sizes[:, None, :] > 0)
        return np.where(there[..., None], found - excess[..., None], counts), changed


def _tail(mechanism: AdditiveCounts) -> Tail:
    """Of how far a released count is from the true one."""
    far = 1.0
    while mechanism.escape(far) > _NEVER:
        far *= 2
    points = np.linspace(0.0, far, _POINTS)
    known = np.minimum([2 * mechanism.escape(point) for point in points], 1.0)  # above as well as below
    places = _POINTS - 1
    return lambda r: np.where(r > far, 0.0, known[np.minimum(r / far * places, places).astype(np.int64)])


_count_range = lru_cache(CountRange)  # variants that ask the same have the same


@dataclass(frozen=True)
class CountsNoise(Noise):
    """Noise of label counts, its parameters as those of `federation.mechanisms.counts.calibration.calibrate`."""

    kind: CountNoise | Literal["published_dirichlet", "off"]
    floor: int | None = None
    pseudo_count: int | None = None


@dataclass(frozen=True)
class CountsQuestion(BagQuestion, PrivateQuestion):
    """Release the label counts of your bags under label privacy.

    `counts` of an answer are `draws` estimates of the counts of every bag, each summing to the bag's size.

    Examples:
        >>> from federation.contract.query import ReleaseId
        >>> from federation.contract.randomness import NoiseBits
        >>> import numpy as np
        >>> question = CountsQuestion(CountsNoise("pure", epsilon=1.0), Bags(2, 3), release=ReleaseId("a release"))
        >>> question.fields()["counts"].shape
        (1, 2, 3)
        >>> question.promise().epsilon, str(question.promise().unit)
        (1.0, 'label')
        >>> question.mechanism().release(np.array([5, 3, 0]), NoiseBits(0, "demo"), 2)
        array([[5., 2., 1.],
               [5., 3., 0.]])
    """

    kind: ClassVar[str] = "counts"
    kept: ClassVar[bool] = True
    noise: CountsNoise
    bags: Bags
    noisy = ("counts",)

    def honest(self, public: PartySize) -> HonestBags:
        """Counts as far from honest ones as noise may take them, and integer noise in all bags of a party."""
        if self.noise.kind in (OFF, PUBLISHED):
            return HonestBags(public.largest_bag)
        mechanism = self.mechanism()
        variance = mechanism.covariance(public.largest_bag)[0, 0]
        reach = REACH * max(math.sqrt(variance), 1.0)  # whole records are many deviations of little noise
        integers = mechanism if isinstance(mechanism, AdditiveCounts) else None
        return HonestBags(public.largest_bag, reach, 0.0, integers, public.bags)

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        counts = within(LARGEST_COUNT, self.draws, self.bags.count, self.bags.classes)
        return {**self.bags.fields(), "counts": counts}

    def work(self) -> int:
        """The covariance of a bag's counts, and cells of all bags."""
        return self.bags.classes**2 + self.bags.count * self.bags.classes

    def simulated_only(self) -> str | None:
        """A floor protects only where it is true."""
        if self.noise.floor is None:
            return None
        return (
            "a floor protects only where it is true, which whoever asks cannot know; outside a simulation use "
            "dirichlet_shifted"
        )

    def mechanism(self) -> CountMechanism:
        """The mechanism of one bag; a person in r bags leaves each of them (epsilon / r, delta / r).

        Raises `InputError` for numbers that the mechanism cannot work with.
        """
        noise, known = self.noise, {"floor": self.noise.floor, "pseudo_count": self.noise.pseudo_count}
        share = {name: number / self.bags.shares for name, number in noise.target.items()}
        return _counts(noise.kind, classes=self.bags.classes, **share, **known)

    def curve(self) -> Curve | None:
        """That of the mechanism; of Gaussian noise in each of a person's bags that of all together.

        Laplace noise has a loss that no run exceeds, so that its epsilon says it all.
        """
        mechanism = self.mechanism()
        if mechanism.name.endswith("laplace"):
            return None
        if self.bags.shares == 1:
            return mechanism.delta_at
        normal = GaussianCurve.of([mechanism.guarantee()] * self.bags.shares)
        return None if normal is None else normal.delta

    def _promised(self) -> Guarantee | NoGuarantee:
        if self.noise.kind == PUBLISHED:
            return published_guarantee(self.noise.epsilon, self.noise.delta)
        unit = Unit.PERSON if self.bags.rows_per_person else Unit.LABEL
        return _of_all_bags(self.mechanism().guarantee(unit, Adjacency.REPLACE, counted_once(self.bags)), self.bags)


@dataclass(frozen=True)
class EmbeddingsQuestion(BagQuestion, PublicQuestion):
    """Send the mean of each of your bags behind a public feature map whose rows have norm at most 1.

    No noise: for parties whose features are public, as label privacy takes them to be.

    Examples:
        >>> EmbeddingsQuestion(Bags(4, 2), FeatureMap(3, ())).fields()["means"].shape
        (4, 3)
    """

    kind: ClassVar[str] = "embeddings"
    bags: Bags
    feature_map: FeatureMap

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        return {**self.bags.fields(), "means": within(1.0, self.bags.count, self.feature_map.dimension)}


@dataclass(frozen=True)
class JointNoise(Noise):
    """Gaussian noise on counts and embeddings together, or none."""

    kind: Literal["gaussian", "off"]


@dataclass(frozen=True)
class NoisyEmbeddingsQuestion(BagQuestion, PrivateQuestion):
    """Release the label counts and the mean embedding of each of your bags together, under row privacy.

    The Gaussian mechanism of `noise` takes a bag's counts times `label_weight` beside the sum of its rows behind
    the feature map, whose rows have norm at most 1. An answer is that in units of counts and of means.

    Examples:
        >>> from federation.contract.query import ReleaseId
        >>> noise, release = JointNoise("gaussian", 1.0, 1e-6), ReleaseId("a release")
        >>> question = NoisyEmbeddingsQuestion(noise, Bags(4, 2), FeatureMap(3, ()), 1.0, release=release)
        >>> {name: field.shape for name, field in question.fields().items()}
        {'sizes': (4,), 'counts': (1, 4, 2), 'means': (1, 4, 3)}
        >>> str(question.promise().unit)
        'row'
    """

    kind: ClassVar[str] = "noisy_embeddings"
    kept: ClassVar[bool] = True
    noise: JointNoise
    bags: Bags
    feature_map: FeatureMap
    label_weight: float
    noisy = ("counts", "means")

    def honest(self, public: PartySize) -> HonestBags:
        """Counts and sums of rows as far from honest ones as noise may take them."""
        reach = REACH * float(self.mechanism().parameters["scale"]) if self.noise.aims else 0.0
        return HonestBags(public.largest_bag, reach / self.label_weight, reach)

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        shape = (self.draws, self.bags.count)
        counts = within(LARGEST_COUNT, *shape, self.bags.classes)
        means = within(LARGEST_COUNT, *shape, self.feature_map.dimension)
        return {**self.bags.fields(), "counts": counts, "means": means}

    def work(self) -> int:
        """The noise of one bag in all draws."""
        return self.draws * (self.bags.classes + self.feature_map.dimension)

    def mechanism(self) -> AdditiveMechanism:
        """Gaussian noise on a bag's weighted counts beside the sum of its rows.

        A replaced row moves the sum of rows of norm at most 1 by 2, whatever the bag's size, and the counts by sqrt 2.
        Raises `InputError` for persons in several bags, whose rows this does not protect together.
        """
        if self.bags.rows_per_person:
            raise InputError("protect: row knows no persons; use protect: label, which then protects a person's labels")
        if not 0 < self.label_weight < math.inf:
            raise InputError(f"label_weight must be a positive finite number, got {self.label_weight}")
        sensitivity = (1 + _ROUNDING) * math.hypot(math.sqrt(2) * self.label_weight, 2)
        known = {"dimension": self.bags.classes + self.feature_map.dimension}
        noise = self.noise
        return calibrate("gaussian", sensitivity=sensitivity, epsilon=noise.epsilon, delta=noise.delta, **known)

    def noised(self, arrays: Arrays) -> np.ndarray:
        """Weighted counts beside sums of rows."""
        sums = arrays["means"] * arrays["sizes"][:, None]
        return super().noised({"counts": self.label_weight * arrays["counts"], "means": sums})

    def _promised(self) -> Guarantee:
        premises = (*counted_once(self.bags), _SIZES_PUBLIC, SHORT_ROWS, UNTIMED)
        return _of_all_bags(self.mechanism().guarantee(Unit.ROW, Adjacency.REPLACE, premises), self.bags)


@dataclass(frozen=True)
class RowsQuestion(BagQuestion, PublicQuestion):
    """Send the rows of your bags behind a public feature map, without their labels.

    No noise: for parties whose features are public, as label privacy takes them to be. Bags of fewer than `largest`
    rows are filled up with zeros.

    Examples:
        >>> RowsQuestion(Bags(4, 2), FeatureMap(3, ()), largest=10).fields()["rows"].shape
        (4, 10, 3)
    """

    kind: ClassVar[str] = "rows"
    bags: Bags
    feature_map: FeatureMap
    largest: int

    def __post_init__(self) -> None:
        whole("largest, the rows of a bag,", self.largest, 0, MOST_ROWS)

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        rows = within(LARGEST_FEATURE, self.bags.count, self.largest, self.feature_map.dimension)
        return {**self.bags.fields(), "rows": rows}


def largest_bag(tile: int) -> int:
    """How many rows of norm 1 may be summed, `tile` at a time, so that the rounding of the sum is charged for.

    In a sum over n rows each passes through less than tile + n / tile + 2 additions, so that the sum errs by n times as
    many 2^-53 (Higham 2002, Section 3.1); for each of two neighbours that is to be 1e-6 of a row.

    Examples:
        >>> largest_bag(1024)
        2541935
    """
    most, half = _ROUNDING * 2.0**53 / 1.01, tile / 2 + 1
    return int(tile * (math.sqrt(half**2 + most / tile) - half))


def counted_once(bags: Bags) -> tuple[Assumption, ...]:
    """Where a row counts, and how often a person does: what every guarantee of bags rests on."""
    if not bags.rows_per_person:
        return (_DISJOINT, _ONE_HOLDER, DIFFERENT_PEOPLE)
    text = f"of a person's rows one counts in each of at most {bags.rows_per_person} bags, whatever the labels"
    return (_DISJOINT, _ONE_HOLDER, Assumption(text, Check.ENFORCED))


def _of_all_bags(guarantee: Guarantee, bags: Bags) -> Guarantee:
    """The guarantee of a bag as that of all bags, in all of which one unit can be."""
    if bags.shares == 1:
        return guarantee
    epsilon, delta = guarantee.epsilon * bags.shares, guarantee.delta * bags.shares
    parameters = {**guarantee.parameters, "bags_per_person": bags.shares}
    return replace(guarantee, epsilon=epsilon, delta=delta, parameters=parameters, gaussian_mu=None)


class HonestTotals(Honest):
    """Totals of each bag over parties that have at most `largest` rows of it."""

    def __init__(self, query: "BagTotalsQuestion", largest: int) -> None:
        self._most = self.most = largest * query.longest
        self.variance = query.mechanism().variance() if query.noise.aims else 0.0

    def reachable(self, name: str, opened: Arrays, parties: int, wholes: float) -> tuple[float, float]:
        """As far as all rows reach, and the noise of all shares; counts are not below 0 but for the noise."""
        noise = REACH * math.sqrt(wholes * self.variance)
        largest = parties * self._most * (1 + ROUNDING) + noise
        return -largest if name == "sums" else -noise, largest


SUM_STEP = 2.0**-26  # of sums of rows without noise: their total over the parties is exact, in any order

_calibrated_counts = lru_cache(bag_totals.calibrate_bag_totals)  # all parties of a release have the same
_rows = lru_cache(bag_totals.calibrate_rows)

_ALL_BAGS = Assumption(
    "a party answers about every bag, with a share of the noise, whether it has rows of it or not", Check.ENFORCED
)
_PUBLIC_BAGS = Assumption(
    "which bags there are, how many rows all parties together have in each, and in which one a row lies, are public: "
    "only labels are protected",
    Check.DECLARED,
    Keeper.HOLDER,
)
_PUBLIC_NUMBER = Assumption(
    "which bags there are, how many rows a party has, and how many of a bag at most, are public; in which bag a row "
    "lies is not, and no number of rows is sent but in counts with noise",
    Check.DECLARED,
    Keeper.HOLDER,
)


@dataclass(frozen=True)
class TotalsNoise(Noise):
    """Noise of numbers of all bags: `pure` (discrete Laplace), `gaussian` (discrete), the less of both, or `off`."""

    kind: Literal["auto", "pure", "gaussian", "off"]


@dataclass(frozen=True)
class BagTotalsQuestion(BagQuestion, PrivateQuestion):
    """Base: send what you have of each bag, with shares of a noise of which `contributors` are the whole."""

    noise: TotalsNoise
    bags: Bags
    contributors: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("contributors", self.contributors, 1, shares.MOST)

    @property
    def protects_rows(self) -> bool:
        """Whether a whole row is protected, with the bag that it lies in."""
        return False

    @property
    def longest(self) -> float:
        """How much one row adds to a number at most."""
        return 1.0

    def honest(self, public: PartySize) -> HonestTotals:
        """Numbers of bags of which a party has so many rows at most."""
        return HonestTotals(self, public.largest_bag)

    def fields(self) -> dict[str, Field]:
        """The arrays of an answer: noisy counts of each draw, and where labels alone are protected rows of each bag."""
        counts = {"counts": within(LARGEST_COUNT, self.draws, self.bags.count, self.bags.classes)}
        return counts if self.protects_rows else {**self.bags.fields(), **counts}

    @property
    def noisy(self) -> tuple[str, ...]:
        """The counts and, where rows are protected, the sums."""
        return tuple(self.fields()) if self.protects_rows else ("counts",)

    def work(self) -> int:
        """The numbers of all bags."""
        return self.bags.count * self.bags.classes

    def assumes(self) -> Declared:
        """Classes, bags and persons, and how many parties share the noise."""
        return replace(self.bags.assumes(), honest=self.contributors)

    @property
    def steps(self) -> Mapping[str, float]:
        """All fields are summed unseen: those without noise, too, which say in which bags a party has rows."""
        if not self.noise.aims:
            return {}
        step = self.mechanism().step
        exact = {} if self.protects_rows else {"sizes": 1.0, "sums": SUM_STEP}
        return {name: exact.get(name, step) for name in self.fields()}

    @abstractmethod
    def mechanism(self) -> SharedBagNoise:
        """A party's share of the noise on the sum over parties. Raises `InputError`."""

    def _promised(self) -> Guarantee:
        """What the sum over all promises."""
        if self.protects_rows:
            premises = (*counted_once(self.bags), _ALL_BAGS, _PUBLIC_NUMBER, SHORT_ROWS, UNTIMED)
            return self.mechanism().guarantee(Unit.ROW, Adjacency.REPLACE, premises)
        unit = Unit.PERSON if self.bags.rows_per_person else Unit.LABEL
        premises = (*counted_once(self.bags), _ALL_BAGS, _PUBLIC_BAGS)
        return self.mechanism().guarantee(unit, Adjacency.REPLACE, premises)


@dataclass(frozen=True)
class CountTotalsQuestion(BagTotalsQuestion):
    """The label counts of every bag, and how many rows it has.

    Examples:
        >>> from federation.contract.query import ReleaseId
        >>> noise, release = TotalsNoise("pure", 1.0), ReleaseId("a release")
        >>> question = CountTotalsQuestion(noise, Bags(4, 2), contributors=80, release=release)
        >>> question.steps, question.hidden_numbers, str(question.promise().unit)
        ({'sizes': 1.0, 'counts': 3.0517578125e-05}, 12, 'label')
    """

    kind: ClassVar[str] = "count_totals"

    def mechanism(self) -> SharedBagNoise:
        """On each count of each bag."""
        noise, persons = self.noise, self.bags.shares
        return _calibrated_counts(noise.kind, **noise.target, contributors=self.contributors, rows_per_person=persons)


@dataclass(frozen=True)
class EmbeddingTotalsQuestion(BagTotalsQuestion):
    """The label counts of every bag beside the sum of its rows behind a public feature map, of norm at most 1.

    Where a whole "row" is protected, Gaussian noise is on both, and on the counts times `label_weight`; how many rows a
    bag has is not sent. Where one "label" is, the weight is 0, and there is noise on the counts only.

    Raises `InputError` for rows of persons, under other noise or without a positive weight, and for labels with one.

    Examples:
        >>> from federation.contract.query import ReleaseId
        >>> known = {"feature_map": FeatureMap(3, ()), "contributors": 80, "release": ReleaseId("a release")}
        >>> noise = TotalsNoise("gaussian", 1.0, 1e-6)
        >>> rows = EmbeddingTotalsQuestion(noise, Bags(4, 2), protect="row", label_weight=1.0, **known)
        >>> {name: field.shape for name, field in rows.fields().items()}, str(rows.promise().unit)
        ({'counts': (1, 4, 2), 'sums': (1, 4, 3)}, 'row')
        >>> labels = EmbeddingTotalsQuestion(noise, Bags(4, 2), protect="label", label_weight=0.0, **known)
        >>> {name: field.shape for name, field in labels.fields().items()}, str(labels.promise().unit)
        ({'sizes': (4,), 'counts': (1, 4, 2), 'sums': (4, 3)}, 'label')
    """

    kind: ClassVar[str] = "embedding_totals"
    feature_map: FeatureMap
    protect: Literal["label", "row"]
    label_weight: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.protects_rows:
            if self.label_weight:
                raise InputError(f"label_weight is for protect: row, got {self.label_weight}; use 0 for labels")
            return
        if self.bags.rows_per_person:
            raise InputError("protect: row knows no persons; use protect: label, which then protects a person's labels")
        if self.noise.kind not in ("gaussian", OFF):
            raise InputError(f"protect: row takes gaussian noise, got {self.noise.kind}; it covers labels and features")
        if not 0 < self.label_weight < math.inf:
            raise InputError(f"label_weight must be a positive finite number, got {self.label_weight}")

    @property
    def protects_rows(self) -> bool:
        """As declared."""
        return protected(self.protect) is Unit.ROW

    @property
    def takes_features_as_public(self) -> bool:
        """Unless whole rows are protected."""
        return not self.protects_rows

    @property
    def longest(self) -> float:
        """To a weighted count or an entry of a sum."""
        return max(1.0, self.label_weight)

    def fields(self) -> dict[str, Field]:
        """Those of counts, and the sums of rows, of each draw where there is noise on them."""
        draws = (self.draws,) if self.protects_rows else ()
        return {**super().fields(), "sums": within(LARGEST_COUNT, *draws, self.bags.count, self.feature_map.dimension)}

    def work(self) -> int:
        """The numbers of all bags."""
        return self.bags.count * (self.bags.classes + self.feature_map.dimension)

    def mechanism(self) -> SharedBagNoise:
        """On each count of each bag or, of rows, on each weighted count and each entry of a sum."""
        noise, known = self.noise, {"contributors": self.contributors, **self.noise.target}
        if not self.protects_rows:
            return _calibrated_counts(noise.kind, rows_per_person=self.bags.shares, **known)
        return _rows(label_weight=self.label_weight, numbers=self.bags.classes + self.feature_map.dimension, **known)
