"""Output perturbation for protocols of votes: noise on the minimiser of the weighted risk.

The method is that of Hamm et al. 2016, Algorithms 1 and 2. `perturb_output` prepares the minimiser for the noise.

`VoteTally` counts the votes. `Ensemble` has the class shares of the public rows that follow from the counts, and the
minimisers that several variants share.
"""

from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, ClassVar, Literal

import numpy as np

from aggregator.collectors.collectors import Answers
from aggregator.contract.protocol import refuse_public_reach
from aggregator.contract.session import Decode, LinearScores, Perturbable
from aggregator.ensembles.sessions import PUBLIC_ROWS, VOTE_ASSUMPTIONS, VOTE_CHECKS, two_rows
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check, Keeper, Unit
from federation.contract.query import Submission
from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.numerics.erm import gradient_floor, risk_minimiser
from federation.numerics.rows import contrast_rounding, contrasts, keep_freed_memory
from federation.queries.votes import BALLOT_PARTS, ProbabilitiesQuestion, VotesQuestion

Protect = Literal["party", "party_and_auxiliary_row"]
PUBLISHED_REGULARISATION = 1e-4  # of Hamm et al.'s experiments

_MINIMISER_ASSUMPTIONS = (
    Assumption("auxiliary rows have norm at most 1", Check.CHECKED),
    Assumption("the minimiser meets a public gradient tolerance, whose reach is charged", Check.CHECKED),
)
_AUXILIARY_ASSUMPTIONS = (
    Assumption("one party with everything it holds and one auxiliary row with all votes on it may change at once; "
               "the number of auxiliary rows is public", Check.ENFORCED),
    Assumption("no stage of the feature map is fitted on the auxiliary rows", Check.CHECKED),
    Assumption("a vote depends on its own auxiliary row and on its party's rows, on no other auxiliary row; parties "
               "see the auxiliary rows, which are protected from whoever sees the release", Check.DECLARED,
               Keeper.SITE),
    Assumption("the feature map and all options were chosen without private data or auxiliary rows", Check.DECLARED,
               Keeper.COORDINATOR),
)  # fmt: skip


_PUBLIC_REACH = (
    Assumption(
        "the sensitivity is computed from the auxiliary rows as they are, which are public",
        Check.DECLARED,
        Keeper.COORDINATOR,
    ),
)
_CHECKS = (*VOTE_CHECKS, "norms of the auxiliary rows are at most 1", "the minimiser is certified")
_AUXILIARY_CHECK = "no stage of the feature map was fitted on the auxiliary rows"


def perturb_output(
    ensemble: "Ensemble", labels: "Labels", form: str, regularisation: float, protect: Protect = "party"
) -> Perturbable:
    """Noise on the minimiser, with the solver's public tolerance charged (2 g / lam).

    `form` is one of `federation.mechanisms.accounting.sensitivity.FORMS`. For 3 classes or more, minimisers sum to zero
    over the classes, so all forms but the published one release B'W, shape (C-1, d) flattened, B class contrasts: the
    projection moves no two minimisers apart, removes what the solver left outside the subspace, and the released
    weights are B times the noisy coordinates. `protect` may add one auxiliary row to the unit (Sec. 4.5).

    Raises `InputError` for public rows longer than 1, and for a protected auxiliary row when the feature map is
    fitted on the rows or the form depends on them.
    """
    public, classes = ensemble.public, ensemble.classes
    guarded = protect == "party_and_auxiliary_row"
    if guarded:
        public.require_unfitted()
        refuse_public_reach(form, protect)
    stretch = public.require_unit_norms()
    weights = ensemble.minimiser(labels, regularisation)
    bound = sensitivity.soft_vote if labels == "soft" else sensitivity.majority_vote
    reach = bound(
        form,
        regularisation=regularisation,
        parties=ensemble.parties,
        classes=classes,
        reach=public.reach if form == "public_features" else None,
        auxiliary_rows=len(public.rows) if guarded else None,
    )
    slack = sensitivity.solver_slack(ensemble.gradient_tolerance(regularisation), regularisation)
    largest = stretch * sensitivity.radius(regularisation, classes) + slack / 2
    basis = contrasts(classes) if classes > 2 and form != "published" else None
    mixing = np.array([[-0.5], [0.5]]) if classes == 2 else np.eye(classes) if basis is None else basis
    value = weights if basis is None else basis.T @ weights
    rounding = 0.0 if basis is None else 2 * contrast_rounding(classes) * largest
    return Perturbable(
        value.ravel(),
        stretch * reach + slack + rounding,
        weights_decoder(value.shape, basis),
        (
            *VOTE_ASSUMPTIONS,
            *(_AUXILIARY_ASSUMPTIONS if guarded else (PUBLIC_ROWS,)),
            *(_PUBLIC_REACH if form == "public_features" else ()),
            *_MINIMISER_ASSUMPTIONS,
        ),
        (*_CHECKS, _AUXILIARY_CHECK) if guarded else _CHECKS,
        Unit.PARTY_AND_AUXILIARY_ROW if guarded else Unit.PARTY,
        largest,
        # The minimiser is expected to have the same variance in all directions.
        None if guarded else LinearScores.of_features(public.rows, mixing, np.ones(public.rows.shape[1])),
    )


def weights_decoder(shape: tuple[int, ...], basis: np.ndarray | None) -> Decode:
    """Noisy values as weights: of two classes from one vector (d,), of more from (C, d) or contrasts (C-1, d).

    Examples:
        >>> weights_decoder((2,), None)(np.array([[2.0, -4.0]]), None)  # one draw of two classes
        array([[[-1.,  2.],
                [ 1., -2.]]])
    """

    def decode(noisy: np.ndarray, _: AdditiveMechanism | None) -> np.ndarray:
        shaped = noisy.reshape(len(noisy), *shape)
        if len(shape) == 1:
            return two_rows(shaped)
        return shaped if basis is None else basis @ shaped

    return decode


Labels = Literal["soft", "majority"]


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Votes of K declared parties on public rows; `places` (N,) says which row that was voted on each of them is."""

    public: PublicRows
    tally: "VoteTally"
    places: np.ndarray | EllipsisType = ...
    recipe: ClassVar[tuple[Any, ...]] = ()  # votes are counted in one way
    _minimisers: dict[tuple[Labels, float], np.ndarray] = field(default_factory=dict)

    def add(self, submission: Submission) -> dict[int, str]:
        """Count votes; returns refused parties and why (`VoteTally.add`)."""
        return self.tally.add(submission)

    @property
    def answered(self) -> int:
        """Number of parties counted so far."""
        return self.tally.answered

    @property
    def parties(self) -> int:
        """The declared, public number of parties K."""
        return self.tally.parties

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.tally.counts.shape[1]

    def shares(self) -> np.ndarray:
        """Soft labels (N, C) of all public rows (`VoteTally.shares`)."""
        return self.tally.shares()[self.places]

    def gradient_tolerance(self, regularisation: float) -> float:
        """The public tolerance of a minimiser: a millionth of what one party can move the gradient.

        Not below what double precision can certify for rows of norm at most 1.
        """
        return max(1e-6 / self.parties, 4 * gradient_floor(regularisation))

    def minimiser(self, labels: Labels, regularisation: float) -> np.ndarray:
        """The certified minimiser of the regularised risk (Hamm, Eqs. 8 and 19; App. B), computed once.

        Shape (d,) for two classes (binary logistic loss), (C, d) for more (softmax).
        """
        key = (labels, regularisation)
        if key not in self._minimisers:
            shares = self.shares() if labels == "soft" else self.tally.majority()[self.places]
            tolerance = self.gradient_tolerance(regularisation)
            self._minimisers[key] = risk_minimiser(self.public.rows, shares, regularisation, tolerance)
        return self._minimisers[key]


_PARTIES_PER_BYTE = 255  # so many votes are counted in a byte without overflow
_ROWS = 1 << 16  # rows counted at a time, and
_TILE = 1 << 19  # votes compared at a time, so that what is read again stays in cache


class VoteTally(Answers):
    """Counts of one-hot votes of at most `parties` declared parties on the N rows of one question, C classes.

    The tally counts votes when they arrive, and never keeps the votes. It needs memory for N x C counts and one byte
    per party.

    Attributes:
        counts: (N, C), how many parties have voted for each class on each row.

    Examples:
        >>> from aggregator.trial.feature_fitting import fit
        >>> from federation.queries.votes import Training
        >>> rows = np.eye(2)
        >>> asked = VotesQuestion(Training(fit([], rows), 3, {"name": "logistic"}, trial=0), rows)
        >>> tally = VoteTally(asked, parties=4)
        >>> votes = np.array([[0, 2], [1, 2]], dtype=np.uint8)
        >>> tally.add(Submission("votes", np.array([0, 3]), {"votes": votes}))  # nobody is refused
        {}
        >>> tally.shares().round(2)  # two parties are missing, and count as uniform
        array([[0.42, 0.42, 0.17],
               [0.17, 0.17, 0.67]])
    """

    question: VotesQuestion | ProbabilitiesQuestion
    whole = 1  # what the counts of one party add up to on each row

    def __init__(self, question: VotesQuestion | ProbabilitiesQuestion, parties: int) -> None:
        keep_freed_memory()
        super().__init__(question, parties)
        most = np.iinfo(np.int32).max // self.whole
        shape = len(question.rows), question.training.classes
        # By column, because votes for one class are counted on many rows at a time.
        self.counts = np.zeros(shape, dtype=np.int32 if parties <= most else np.int64, order="F")

    def _faults(self, submission: Submission) -> dict[str, np.ndarray]:
        invalid = self.question.fields()["votes"].invalid(submission.arrays["votes"])
        return {f"voted for a class outside 0..{self.counts.shape[1] - 1}": invalid}

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        rows, classes = self.counts.shape
        for first in range(0, len(parties), _PARTIES_PER_BYTE):
            some = arrays["votes"][first : first + _PARTIES_PER_BYTE]
            for start in range(0, rows, _ROWS):
                counts = self.counts[start : start + _ROWS]
                sums = _votes_by_class(some[:, start : start + _ROWS], classes)
                counts[:, 1:] += sums.T
                counts[:, 0] += len(some) - sums.sum(axis=0, dtype=counts.dtype)

    def shares(self) -> np.ndarray:
        """Soft labels (N, C): the fraction of the declared parties that voted for each class (Hamm, Eq. 12).

        A missing party counts as the uniform vote, so that the sensitivity rests on the declared number alone.
        """
        missing = self.parties - self.answered
        return (self.counts + missing * self.whole / self.counts.shape[1]) / (self.parties * self.whole)

    def majority(self) -> np.ndarray:
        """Majority labels as shares (N, C), one-hot; the smallest index on ties (Hamm, Eq. 6)."""
        if self.answered == 0:
            raise InputError("no party has voted, so there is no majority")
        return np.asarray(np.eye(self.counts.shape[1])[np.argmax(self.counts, axis=1)])


def _votes_by_class(votes: np.ndarray, classes: int) -> np.ndarray:
    """How often each class but the first occurs in the columns of votes (p, n): (C-1, n) bytes, p at most 255."""
    if classes == 2:
        return np.asarray(np.add.reduce(votes, axis=0, dtype=np.uint8)[None])
    sums = np.zeros((classes - 1, votes.shape[1]), dtype=np.uint8)
    step = max(1, _TILE // votes.shape[1])
    for first in range(0, len(votes), step):
        tile = votes[first : first + step]
        for label in range(1, classes):
            # A view as bytes: booleans would be cast before they are added.
            sums[label - 1] += np.add.reduce((tile == label).view(np.uint8), axis=0, dtype=np.uint8)
    return sums


class ProbabilityTally(VoteTally):
    """Sums of votes that are distributions over the classes, in whole parts (`ProbabilitiesQuestion`)."""

    whole = BALLOT_PARTS

    def _faults(self, submission: Submission) -> dict[str, np.ndarray]:
        rows, classes = self.counts.shape
        ballots = submission.arrays["parts"]
        given = ballots.reshape(len(ballots), rows, classes - 1).sum(axis=2, dtype=np.int32)
        return {f"gave classes more than {self.whole} parts of a row": (given > self.whole).any(axis=1)}

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        rows, classes = self.counts.shape
        given = arrays["parts"].sum(axis=0, dtype=self.counts.dtype).reshape(rows, classes - 1)
        self.counts[:, :-1] += given
        self.counts[:, -1] += len(parties) * self.whole - given.sum(axis=1, dtype=self.counts.dtype)
