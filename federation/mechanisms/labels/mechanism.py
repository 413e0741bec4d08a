"""The declared public range of labels, and the interface of every mechanism for single labels."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check, Keeper
from federation.contract.randomness import NoiseBits
from federation.contract.validation import apart, is_number, shown
from federation.mechanisms.noise.mechanism import NOISE_KEY, Mechanism, Replacement
from federation.numerics.rows import Floats, Integers

Outside = Literal["refuse", "clip"]

_LARGEST = 1e100  # of an end; squares of labels, and their sums, stay far from the largest double
_NARROWEST = 1e-100  # squares of differences, and small parts of the range, stay far from the smallest


@dataclass(frozen=True)
class LabelRange:
    """[low, high], known before any label is seen; `outside` says what happens to labels that are not in it.

    Raises `InputError` unless both lie within 1e100 of zero, low by 1e-100 or more below high, and `outside` is
    "refuse" or "clip": beyond, losses and variances leave the doubles, and what is best by them is not.

    Examples:
        >>> ages = LabelRange(0.0, 120.0, "clip")
        >>> ages.width, ages.middle
        (120.0, 60.0)
        >>> ages.checked(np.array([30.0, 130.0]))
        array([ 30., 120.])
        >>> ages.positions(np.array([30.0, 130.0]), steps=12)
        array([ 3, 12])
    """

    low: float
    high: float
    outside: Outside = "refuse"

    def __post_init__(self) -> None:
        ends = (self.low, self.high)
        if not (all(map(is_number, ends)) and max(map(abs, ends)) <= _LARGEST and ends[1] - ends[0] >= _NARROWEST):
            raise InputError(
                f"label_range must be two numbers up to {_LARGEST:g}, the smaller one first and {_NARROWEST:g} or more "
                f"apart, got {shown(self.low)} and {shown(self.high)}; declare what labels can be, not what the "
                "smallest and largest of yours are"
            )
        if self.outside not in get_args(Outside):
            raise InputError(f"outside must be 'refuse' or 'clip', got {self.outside!r}")

    @classmethod
    def of(cls, ends: tuple[float, float], outside: Outside = "refuse") -> "LabelRange":
        """From its two ends as a pair. Raises `InputError` for anything else."""
        if not (isinstance(ends, Sequence | np.ndarray) and len(ends) == 2 and all(map(is_number, ends))):
            raise InputError(f"label_range must be two finite numbers, the smaller one first, got {shown(ends)}")
        return cls(float(ends[0]), float(ends[1]), outside)

    @property
    def width(self) -> float:
        """By how much one label can change another's place: high - low."""
        return self.high - self.low

    @property
    def middle(self) -> float:
        """Halfway between low and high."""
        return self.low + self.width / 2

    @property
    def _shown(self) -> str:
        return f"[{', '.join(apart(self.low, self.high))}]"

    @property
    def assumption(self) -> Assumption:
        """Why a label changes by at most `width`."""
        text = f"every label lies in {self._shown}, which was declared without looking at any; "
        if self.outside == "clip":
            return Assumption(text + "others are moved to the nearer end", Check.ENFORCED)
        return Assumption(text + "others are refused", Check.CHECKED)

    def checked(self, labels: Floats) -> Floats:
        """The labels (n,) as float64 in the range, clipped if so declared.

        Raises `InputError` for another shape, no label, NaN, or labels outside a range that refuses them. The message
        tells no label.
        """
        given = np.asarray(labels)
        if given.ndim != 1 or not len(given) or given.dtype.kind not in "biuf":
            raise InputError(f"labels must be numbers of shape (n,), n >= 1, got {given.dtype} of shape {given.shape}")
        given = given.astype(np.float64)
        if np.isnan(given).any():
            raise InputError("labels must be numbers, got NaN; leave rows without a label out")
        if self.outside == "clip":
            return np.clip(given, self.low, self.high)
        if given.min() < self.low or given.max() > self.high:
            raise InputError(
                f"labels must lie in label_range, {self._shown}, and some do not; declare what labels "
                "can be, or clip those outside"
            )
        return given

    def positions(self, labels: Floats, steps: int) -> Integers:
        """The nearest of the `steps` + 1 evenly spaced points from low (0) to high (`steps`), (n,) int64.

        Raises `InputError` as `checked`.
        """
        shares = (self.checked(labels) - self.low) / self.width
        return np.clip(np.rint(shares * steps), 0, steps).astype(np.int64)

    def points(self, positions: Floats | Integers, steps: int) -> Floats:
        """Inverse of `positions`, also beyond the ends."""
        return self.low + self.width / steps * np.asarray(positions, dtype=np.float64)


PUBLIC_ROWS = Assumption(
    "the rows' features, and how many rows there are, are public: only labels are protected",
    Check.DECLARED,
    Keeper.HOLDER,
)


class LabelMechanism(Mechanism, Protocol):
    """Releases of labels (n,), each of them (epsilon, delta)-private for itself: one label is in one release only."""

    @property
    def labels(self) -> LabelRange:
        """The public range in which labels lie."""

    def release(self, labels: Floats, bits: NoiseBits) -> Floats:
        """Private labels (n,) float64. Raises `InputError` as `LabelRange.checked`."""

    def variance(self, labels: Floats | None = None) -> Floats | float:
        """Of the released value of each given label (n,); without labels the largest that any label has."""

    def bias(self, labels: Floats | None = None) -> Floats | float:
        """E released - label, for each given label (n,); without labels the largest size that it has."""

    def log_ratio(self, released: Floats, here: Floats, there: Floats) -> Floats:
        """A number that rises with how much likelier releases (n, k) are from labels `there` than from `here`."""


class LabelReplacement(Replacement, ABC):
    """What every guarantee of private labels rests on, with what is particular to a mechanism in between."""

    labels: LabelRange

    def log_ratio(self, released: Floats, here: Floats, there: Floats) -> Floats:
        """By how far released labels lie on the side of `there`: of Gaussian noise, and of one of two answers."""
        return np.asarray((released - here) @ np.ravel(there - here))

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on, and how each premise is kept."""
        return PUBLIC_ROWS, self.labels.assumption, *self._own_assumptions, NOISE_KEY

    @property
    @abstractmethod
    def _own_assumptions(self) -> tuple[Assumption, ...]:
        """Premises about how the released values are drawn."""
