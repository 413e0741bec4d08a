"""Collectors of one vector per party that keep only the mean, and bounds on how far one party can move such a mean.

`ClippedMean` adds vectors that are clipped to a public norm, and counts missing ones as zero. `VectorAnswers` collects
the vectors of all parties in a `ClippedMean`.

`parameter_average` and `clipped_mean` are L2 sensitivities: the movement of the mean when all data of one party are
replaced.
"""

import math
from typing import Generic, TypeVar

import numpy as np

from aggregator.collectors.collectors import Answers
from federation.contract.guarantee import Assumption, Check
from federation.contract.query import Question, Submission
from federation.features.feature_map import UNIT_ROUNDOFF, Ball
from federation.mechanisms.accounting.sensitivity import radius
from federation.mechanisms.noise.mechanism import require_known, require_positive, require_whole
from federation.numerics.rows import require_finite

VECTOR_CHECKS = ("answers were checked and clipped on arrival; refused and missing ones count as zero",)
_FINEST = 52  # fractional bits; more would say nothing about a double
_LARGEST_SUM = 62  # bits of a sum's magnitude, within int64

Q = TypeVar("Q", bound=Question)


class ClippedMean:
    """(1/M) times the sum of one vector of R^D per party, each of norm at most `norm`, over M declared parties.

    A vector that is longer is shortened to that norm, and with `normalised` every vector but zero takes it. A vector
    becomes integer multiples of a public step, truncated towards zero, which never lengthens it; integers make the
    sum the same whoever answers first. Memory: D integers, whatever M.

    Examples:
        >>> mean = ClippedMean(dimension=2, norm=1.0, parties=4)
        >>> mean.add(np.array([[3.0, 4.0], [0.5, 0.0]]))  # the first is shortened; two parties are missing
        >>> mean.value().round(3), round(mean.sensitivity, 3)
        (array([0.275, 0.2  ]), 0.5)
    """

    def __init__(self, dimension: int, norm: float, parties: int, *, normalised: bool = False) -> None:
        self.dimension, self.norm, self.parties = dimension, norm, parties
        self._ball = Ball(norm, normalised)
        self._bits = min(_FINEST, _LARGEST_SUM - parties.bit_length())
        self._sum = np.zeros(dimension, dtype=np.int64)

    def add(self, vectors: np.ndarray) -> None:
        """Add the vectors (P, D); each is scaled alone, whoever comes with it.

        Raises `InputError` for one that is not finite, whose multiples of the step would be anything.
        """
        require_finite(vectors, "vectors of parties")
        self._sum += np.trunc(self._ball.units(vectors) * 2.0**self._bits).astype(np.int64).sum(axis=0)

    def value(self) -> np.ndarray:
        """The mean (D,), in the vectors' own units."""
        return np.ldexp(self._sum.astype(np.float64), -self._bits) * (self.norm / self.parties)

    @property
    def rounding(self) -> float:
        """What double precision adds to the distance 2 norm/M of two means that differ in one vector.

        A vector scaled in double precision exceeds its norm by at most (D + 8) u of it. Turning the integer sum into
        the mean errs by at most 4 u of the mean's norm, twice.
        """
        longer = (self.dimension + 8) * UNIT_ROUNDOFF * 2 / self.parties
        return self.norm * (longer + 8 * UNIT_ROUNDOFF)

    @property
    def sensitivity(self) -> float:
        """How far the mean moves when one party sends another vector, any at all, or none; L2, with its rounding."""
        return math.nextafter(clipped_mean(self.norm, self.parties) + self.rounding, math.inf)


class VectorAnswers(Answers, Generic[Q]):
    """Answers to a question with one real field, whose mean over the declared, public number of parties is `mean`.

    Vectors are brought into the `ball`. An answer that is not finite or beyond the declared range is refused;
    a refused or missing party counts as the zero vector. Memory does not grow with the parties but for one byte each.
    """

    question: Q

    def __init__(self, question: Q, parties: int, ball: Ball) -> None:
        super().__init__(question, parties)
        self.recipe = (ball,)
        ((self._name, self._field),) = question.fields().items()
        self.mean = ClippedMean(self._field.numbers, ball.norm, parties, normalised=ball.scaled)

    def _faults(self, submission: Submission) -> dict[str, np.ndarray]:
        low, high = self._field.minimum, self._field.maximum
        invalid = self._field.invalid(submission.arrays[self._name])
        return {f"sent a value that is not a number from {low:.4g} to {high:.4g}": invalid}

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        self.mean.add(arrays[self._name].reshape(len(parties), self.mean.dimension))

    def value(self) -> np.ndarray:
        """The mean vector in the shape of the field."""
        return self.mean.value().reshape(self._field.shape)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Why nothing that a party sends moves the mean further than its sensitivity."""
        [ball] = self.recipe
        how = "scales every answer to" if ball.scaled else "shortens every answer to at most"
        return (
            Assumption(
                f"the aggregator {how} norm {self.mean.norm:.9g} and sums whole multiples of a public step; nothing "
                "that a party sends, true to its data or not, counts for more", Check.ENFORCED),
            Assumption(
                "sensitivities use the declared number of parties; an answer that is missing, not finite or out of "
                "range is the zero vector, and a party that fails costs no other party its answer", Check.ENFORCED),
        )  # fmt: skip


FORMS = ("published", "tight", "diameter")


def parameter_average(form: str, *, regularisation: float, parties: int, classes: int) -> float:
    """Sensitivity of the mean of exact minimisers on rows of norm at most 1.

    Setting (Pathak, Rane and Raj 2010; the `avg` of Hamm et al. 2016): each of M parties sends the minimiser of its
    own logistic (2 classes) or softmax risk, which is lam-strongly convex. Their mean is released. All rows of a party
    may change, so its minimiser may move anywhere in the set that holds every minimiser. The sensitivity is therefore
    the diameter of that set over M. Forms of the bound, each at most the one before:

    - `published`: gradients of the loss differ by at most 2 (binary) or 2 sqrt(2), over lam (Hamm et al. 2016,
      App. B).
    - `tight`: at any minimiser a gradient is at most 1/2 (binary) or sqrt(1-1/C) long. The minimiser is hence at most
      that over lam long.
    - `diameter`: twice `federation.mechanisms.accounting.sensitivity.radius`. It is attained, for more than two classes
      by turning every row, x -> -x, and for two by turning every label.

    Raises `InputError` for lam <= 0, parties < 1, classes < 2 or an unknown form.

    Examples:
        >>> [parameter_average(form, regularisation=0.1, parties=10, classes=2) for form in FORMS]
        [2.0, 1.0, 0.3337]
    """
    require_known("sensitivity form", form, FORMS)
    diameter = 2 * radius(regularisation, classes)
    if form == "published":
        diameter = (2 if classes == 2 else 2 * math.sqrt(2)) / regularisation
    elif form == "tight":
        diameter = (1 if classes == 2 else 2 * math.sqrt(1 - 1 / classes)) / regularisation
    return clipped_mean(diameter / 2, parties)


def clipped_mean(norm: float, parties: int) -> float:
    """Sensitivity of the mean of M vectors of norm at most B, whoever sends them: 2 B/M, attained by v -> -v.

    Raises `InputError` for parties < 1 or a norm that is not positive and finite.

    Examples:
        >>> clipped_mean(norm=3.0, parties=10)
        0.6
    """
    require_whole("parties", parties, 1)
    require_positive("norm", norm)
    return 2 * norm / parties


def radius_of_any_rows(regularisation: float, classes: int) -> float:
    """Largest norm of a minimiser whatever the norms of the rows: sqrt(W0((C-1)/e) / lam), W0 Lambert's function.

    Stationarity gives lam |W|^2 = mean_i (z_iy - sum_k p_ik z_ik) for the scores z_i = W x_i, and no summand exceeds
    W0((C-1)/e), whatever the scores. Raises `InputError` for lam <= 0 or classes < 2.

    Examples:
        >>> radius_of_any_rows(regularisation=10.0, classes=2), radius(10.0, classes=2)
        (0.1669, 0.04878)
    """
    from scipy.special import lambertw

    require_positive("regularisation", regularisation)
    require_whole("classes", classes, 2)
    return math.sqrt(float(lambertw((classes - 1) / math.e).real) / regularisation)
