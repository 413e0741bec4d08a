"""What crosses between an aggregator and its parties: questions, submissions; and what leaves: releases.

Free of any transport: `federation.grids.codec` turns these into Flower records and back. A submission holds the
answers of a cohort of parties as arrays with a leading party axis, so a million parties are not a million objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from federation.errors import InputError
from federation.features import FeatureMap
from federation.guarantee import Guarantee, NoGuarantee


@dataclass(frozen=True)
class Field:
    """One declared array of a submission: its shape behind the party axis, and the values allowed in it.

    `levels` (integers 0..levels-1) marks a categorical field, which travels bit-packed; otherwise values are
    float64 in [minimum, maximum].
    """

    shape: tuple[int, ...]
    levels: int | None = None
    minimum: float = -np.inf
    maximum: float = np.inf

    @property
    def dtype(self) -> np.dtype[Any]:
        """Storage type: the smallest unsigned integer for categories, float64 otherwise."""
        return np.dtype(np.float64) if self.levels is None else np.min_scalar_type(self.levels - 1)

    def invalid(self, values: np.ndarray) -> np.ndarray:
        """Boolean (P,): which parties' entries break the declared range."""
        flat = values.reshape(len(values), int(np.prod(self.shape)))
        if self.levels is not None:
            return np.asarray(flat.max(axis=1, initial=0) >= self.levels)
        inside = (flat >= self.minimum) & (flat <= self.maximum)  # NaN compares false
        return np.asarray(~inside.all(axis=1))


@dataclass(frozen=True)
class Training:
    """How a party trains its local classifier: the public feature map, the classes, the classifier, the trial.

    `classifier` is `{"name": str, "parameters": dict}`; `trial` keys a party's own randomness.
    """

    feature_map: FeatureMap
    classes: int
    classifier: Mapping[str, Any]
    trial: int


class Question(Protocol):
    """What an aggregator may ask: a frozen dataclass of arrays, JSON values, feature maps and such dataclasses."""

    kind: ClassVar[str]

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        ...


@dataclass(frozen=True)
class VotesQuestion:
    """Label each public auxiliary row with your local classifier: one class in 0..C-1 per row.

    `rows` are the auxiliary rows behind the public feature map, shape (N, d). The answer goes to a trusted
    aggregator only.
    """

    kind: ClassVar[str] = "votes"
    training: Training
    rows: np.ndarray

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        return {"votes": Field((len(self.rows),), levels=self.training.classes)}


BALLOT_PARTS = 255  # a probability on the wire is a whole number of these parts of one


@dataclass(frozen=True)
class ProbabilitiesQuestion:
    """Say how probable each class is on each public auxiliary row, in whole parts of 1/255.

    `rows` (N, d) as for votes. An answer holds, row after row, the parts of the classes 0..C-2; what they leave of
    `BALLOT_PARTS` belongs to the last class, so that every ballot sums to one exactly. For a trusted aggregator only.
    """

    kind: ClassVar[str] = "probabilities"
    training: Training
    rows: np.ndarray

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        return {"parts": Field((len(self.rows) * (self.training.classes - 1),), levels=BALLOT_PARTS + 1)}


@dataclass(frozen=True)
class StatisticQuestion:
    """Vote on the public auxiliary rows and send only what the ensemble's statistic takes from your votes.

    That is z = B'V'Y/N, shape (C-1, r), at most `largest` long: B class contrasts, V (N, C) your votes on `rows`
    (N, d), Y (N, r) public `coordinates` of the same rows. `ballot` says whether a row of V is one class (`labels`)
    or your `probabilities` of all. The answer goes to a trusted aggregator only.
    """

    kind: ClassVar[str] = "statistic"
    training: Training
    rows: np.ndarray
    coordinates: np.ndarray
    largest: float
    ballot: str

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        shape = (self.training.classes - 1, self.coordinates.shape[1])
        return {"statistic": Field(shape, minimum=-self.largest, maximum=self.largest)}


@dataclass(frozen=True)
class ParametersQuestion:
    """Minimise your own regularised logistic risk over all declared classes, seen or not, and send the minimiser.

    Two classes: the weights w of binary logistic regression, shape (1, d). More: softmax weights W (C, d), whose
    rows sum to zero, as contrasts B'W (C-1, d). `gradient_tolerance` bounds the norm of your risk's gradient,
    `largest` the norm of any such minimiser. The answer goes to a trusted aggregator only.
    """

    kind: ClassVar[str] = "parameters"
    training: Training
    gradient_tolerance: float
    largest: float

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        shape = (self.training.classes - 1, self.training.feature_map.dimension)
        return {"parameters": Field(shape, minimum=-self.largest, maximum=self.largest)}


@dataclass(frozen=True)
class IndividualQuestion:
    """Score your local classifier on evaluation rows that you hold yourself (simulation only, NON-PRIVATE).

    Only parties with an id below `first` answer.
    """

    kind: ClassVar[str] = "individual"
    training: Training
    first: int

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        return {name: Field((), minimum=0.0, maximum=1.0) for name in ("accuracy", "balanced_accuracy")}


@dataclass(frozen=True)
class Submission:
    """The answers of some parties to one question.

    `parties` (P,) are the ids that answered, `arrays` the declared fields with a leading axis of length P, and
    `failures` names the parties that could not answer and why. `guarantee` is None for a trusted-only submission:
    it may be used by the trusted aggregator and written nowhere.
    """

    kind: str
    parties: np.ndarray
    arrays: Mapping[str, np.ndarray]
    guarantee: Guarantee | None = None
    failures: Mapping[int, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        shapes = {name: array.shape for name, array in self.arrays.items()}
        return f"Submission({self.kind}, {len(self.parties)} parties, {shapes}, {len(self.failures)} failures)"


def check_submission(question: Question, submission: Submission) -> None:
    """Refuse a submission whose form is not the declared one; values are checked per party by `Field.invalid`.

    Raises `InputError` when the kind differs, a field is missing or undeclared, a type or shape differs, an id is
    negative or occurs twice.
    """
    fields = question.fields()
    if submission.kind != question.kind:
        raise InputError(f"expected an answer to '{question.kind}', got one to '{submission.kind}'")
    if set(submission.arrays) != set(fields):
        raise InputError(f"an answer to '{question.kind}' carries {sorted(fields)}, got {sorted(submission.arrays)}")
    parties = submission.parties
    if parties.ndim != 1 or parties.dtype.kind not in "iu" or (parties < 0).any():
        raise InputError(f"party ids must be a list of integers >= 0, got {parties.dtype} of shape {parties.shape}")
    if len(np.unique(parties)) != len(parties):
        raise InputError("a submission names a party twice")
    for name, declared in fields.items():
        array, shape = submission.arrays[name], (len(parties), *declared.shape)
        if array.dtype != declared.dtype or array.shape != shape:
            raise InputError(
                f"field '{name}' must be {declared.dtype} of shape {shape}, got {array.dtype} of shape {array.shape}"
            )


@dataclass(frozen=True)
class Release:
    """Models that leave the aggregator, one per noise draw, all under one guarantee.

    `weights` (draws, C, d): a row x behind the feature map belongs to class argmax_c <weights[c], x>. `diagnostics`
    say how much of them is signal, from public numbers and from the first draw. Cannot be built without saying what
    it guarantees.
    """

    variant: str
    weights: np.ndarray
    guarantee: Guarantee | NoGuarantee
    diagnostics: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.guarantee, Guarantee | NoGuarantee):
            raise InputError(f"release of '{self.variant}' needs a guarantee, got {self.guarantee!r}")
