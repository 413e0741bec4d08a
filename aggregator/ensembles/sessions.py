"""Sessions of protocols that release one noisy vector: a mean of the parties' vectors, or a sum by secure aggregation.

`CollectedProtocol` is the base of the protocols of votes and of parameters. It begins one of two sessions:

- `CollectedSession`: the aggregator collects the responses and adds the noise itself.
- `SummedSession`: each party adds a share of one noise to its vector, and secure aggregation adds up the vectors.

A `Refinement` post-processes decoded models before they are released.

An `Aim` is one release with its noise. It warns, from public numbers and before any query is sent, when the noise will
dominate the release.
"""

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from aggregator.collectors.one_query import QuerySession
from aggregator.contract.expectations import Expected, diagnose, expected_accuracy
from aggregator.contract.ledger import ATTENDANCE, COUNTED_ONCE, large_delta
from aggregator.contract.protocol import Place, Promise, Protocol, Refused, Requires, Sent, Trust
from aggregator.contract.session import USEFUL, Asked, Decode, Decoder, OneRound, Outlook, Perturbable, Session
from aggregator.trial.plan import PublicNumbers
from aggregator.trial.public_rows import PublicRows
from aggregator.trial.trial import SIZES, Spectrum, View, World, affordable, errors
from federation.contract.guarantee import Assumption, Check, Keeper, NoGuarantee, Unit
from federation.contract.query import OFF, Question
from federation.contract.trust import TrustTerms
from federation.engines.codec import question_digest
from federation.features.feature_map import Ball, FeatureMap
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.mechanisms.sums import shares
from federation.queries.votes import ClassifierQuestion, Training, VectorNoise, VectorSumQuestion

_PLENTY = 10_000  # public rows, where nobody says how many there are


class CollectedProtocol(Protocol):
    """Base of the protocols of votes and parameters: parties trust the aggregator to see answers and to add noise.

    Where an answer is a vector that may be added up, they need not: each brings it into a ball and adds a share of the
    noise. noise: its law, or none.
    """

    requires: ClassVar[Requires] = Requires(classifier=True, public_rows=True)
    suggested: ClassVar[tuple[Mapping[str, Any], ...] | Refused] = ({}, {"noise": "gaussian"})
    task: ClassVar[str] = "classification"
    model: ClassVar[str] = "linear"

    noise: Literal["pure", "gaussian", "off"] = "pure"

    @property
    def on_minimiser(self) -> bool:
        """Whether it is a minimiser that gets the noise, which costs more behind many features."""
        return False

    def width(self, public: PublicRows) -> int | None:
        """How many numbers per class contrast are released of a mean over the parties; None of anything else."""
        return None

    @property
    def unit(self) -> Unit:
        """What one release protects: one party with all that it holds, unless options say more."""
        return Unit.PARTY

    @abstractmethod
    def question(self, public: PublicRows, training: Training) -> Question:
        """What every party is asked. Raises `InputError` for public rows that the options cannot work with."""

    @abstractmethod
    def collector(self, public: PublicRows, question: Any, parties: int) -> Any:
        """Where the answers go; what `prepare` is called with."""

    @abstractmethod
    def prepare(self, answers: Any) -> Perturbable:
        """The vector to perturb, with its sensitivity and decoder."""

    @property
    @abstractmethod
    def unsummed(self) -> str:
        """Why its answers cannot be added up unseen and what to choose, in a sentence; empty where they can."""

    @abstractmethod
    def summand(self, public: PublicRows, question: Any) -> "Summand":
        """What parties add up unseen in place of the answer to the question; asked for only where they can."""

    def refinement(self, world: World, public: PublicRows) -> "Refinement":
        """What becomes of its models before they are released."""
        return Refinement(public)

    @abstractmethod
    def sends(self, public: PublicNumbers) -> Sent:
        """What leaves a party."""

    def noise_at(self, trust: Trust) -> Place | Refused:
        """At the aggregator, whom parties must trust, or in shares where a secure summation is trusted."""
        if trust is Trust.NONE:
            told = self.unsummed or "choose trust: secure, where all share one noise"
            return Refused(f"noise of its own would drown what one party says of all that it holds; {told}")
        if trust is Trust.SECURE and self.unsummed:
            return Refused(self.unsummed)
        if self.noise == OFF:
            return Place.NOWHERE
        return Place.SHARES if trust is Trust.SECURE else Place.AGGREGATOR

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """The epsilon that it aims at; delta is for Gaussian noise only."""
        if shared := self.noise_at(trust) is Place.SHARES:
            public = replace(public, features=None)  # which depend on the noise
        delta = public.delta if self.noise == "gaussian" else 0.0
        return Promise.of(self, epsilon, delta, self.unit, replace(self.sends(public), private=shared))

    def expected_of_mean(self, public: PublicNumbers, epsilon: float) -> Expected | None:
        """Of a mean of unit shares, a number of which for each feature and contrast of classes get the noise.

        As many directions are taken as a release takes where the i-th has 1/i of the variance of the first, and what
        the others would have told counts as noise does (`aggregator.trial.trial.errors`). A guess: nobody knows by
        numbers how far parties agree. Ranking by it lost .002 of accuracy on average, .03 at worst, in 96 settings of
        13 sets.
        """
        if public.classes is None or public.features is None or public.terms is None or self.noise == OFF:
            return None
        spectrum = Spectrum(public.public_rows or _PLENTY, 1 / np.arange(1.0, public.features + 1))
        known: dict[str, Any] = {"classes": public.classes, "parties": public.terms.parties}
        known |= {"epsilon": epsilon, "delta": public.delta}
        taken = affordable(self.noise, spectrum, **known) - 1
        noise, omitted = (float(error[taken]) for error in errors(self.noise, spectrum, **known))
        if self.place is Place.SHARES:
            noise *= louder(public.terms) ** 2
        least = noise + omitted
        # Votes move a statistic by sqrt(2)/M, unit shares by 2/M; per class it was divided by their number.
        return expected_accuracy(math.sqrt(2 * public.classes * least), public, "guess", "parties agree")

    def begin(self, world: World, epsilon: float, draws: int) -> Session:
        """A session that asks once; sessions behind one feature map share question and answers, or vectors."""
        view = world.views.at(self.noise, epsilon, minimiser=self.on_minimiser)
        if self.place is not Place.SHARES:
            return CollectedSession(world, self, epsilon, view)
        summand = world.once(
            (self, "summand", id(view)),
            lambda: self.summand(view.public, self.question(view.public, view.training)),
        )
        delta = world.plan.public.delta if self.noise == "gaussian" else 0.0
        noise = VectorNoise(self.noise, epsilon, delta)
        return SummedSession(world, summand, self.refinement(world, view.public), noise, draws)


class CollectedSession(OneRound):
    """Asks one question behind the feature map that a release at this epsilon can afford."""

    def __init__(self, world: World, options: CollectedProtocol, epsilon: float, view: View) -> None:
        self._world, self._options, self._epsilon, self._view = world, options, epsilon, view
        self._refinement = options.refinement(world, view.public)
        asked = world.once((options, id(view)), self._ask)
        # Answers promise nothing: noise is for the aggregator to add, or there is none.
        super().__init__(self._refinement.feature_map, [asked], NoGuarantee("noise is off"))

    def _ask(self) -> Asked:
        public, training = self._view.public, self._view.training
        question = self._options.question(public, training)
        return Asked(question, training, self._options.collector(public, question, self._world.plan.terms.parties))

    def outlook(self) -> Outlook | None:
        """The signal-to-noise warning of this release; None where the parties' signal is large enough."""
        options, plan = self._options, self._world.plan
        width = options.width(self._view.public)
        if width is None or options.noise == OFF:
            return None
        aim = Aim(options.noise, self._epsilon, plan.public.delta)
        return aim.outlook(len(plan.task.classes), width, plan.terms.parties, self._world.views.spectrum)

    @property
    def checks(self) -> tuple[str, ...]:
        """Statements for the ledger: the checks that the perturbed vector has passed."""
        return self.perturbable().checks

    def perturbable(self) -> Perturbable:
        """The vector, the same for all epsilons with these answers."""
        options, [answers] = self._options, self.answers
        found = self._world.once(("prepared", options, id(answers)), lambda: options.prepare(answers))
        refinement = self._refinement
        found = replace(found, decode=refinement.refined(found.decode), checks=(*found.checks, *refinement.checks))
        return found if options.noise == "off" else replace(found, noise=options.noise)

    def learn(self, draw: int) -> np.ndarray:
        """The weights (C, d) without noise."""
        exact = self.perturbable()
        return np.asarray(exact.decode(exact.value[None, :], None)[0])


@dataclass(frozen=True, eq=False)
class Summand:
    """What parties add up: the vector that answers `asked`, brought into the `ball`, by a `question` of this class.

    `decoder` is for the mean of so many noisy vectors, and `width` how many numbers it has per class contrast.
    """

    question: type[VectorSumQuestion]
    asked: ClassifierQuestion
    ball: Ball
    decoder: Decoder
    width: int


def louder(terms: TrustTerms) -> float:
    """How many times as loud as the whole noise is that of all parties' shares, if all answer.

    Raises `InputError` where no honest party can be counted on.

    Examples:
        >>> round(louder(TrustTerms(1000, quorum=0.9)), 3)
        1.118
    """
    return math.sqrt(terms.parties / terms.honest)


class SummedSession(QuerySession):
    """Asks once for each epsilon, as every one has noise of its own; the vectors are the same."""

    def __init__(
        self, world: World, summand: Summand, refinement: "Refinement", noise: VectorNoise, draws: int
    ) -> None:
        plan = self._plan = world.plan
        self._summand, self._refinement, self._noise = summand, refinement, noise
        self._spectrum = world.views.spectrum
        contributors = plan.terms.honest
        question = summand.question(
            noise,
            summand.asked,
            summand.ball,
            contributors,
            release=world.release(noise, (question_digest(summand.asked), summand.ball, contributors)),
            **world.drawn(draws),
        )
        self._question = question
        further = (PUBLIC_ROWS, *large_delta(plan, noise.kind))
        released = refinement.feature_map
        super().__init__(world, question, *further, training=summand.asked.training, feature_map=released)

    def outlook(self) -> Outlook | None:
        """The signal-to-noise warning of this release; None where its noise is small.

        The noise is that of all shares, of which more come than are needed.
        """
        plan, noise = self._plan, self._noise
        return Aim(noise.kind, noise.epsilon, noise.delta).outlook(
            len(plan.task.classes),
            self._summand.width,
            plan.terms.parties,
            self._spectrum,
            louder=louder(plan.terms),
        )

    @property
    def checks(self) -> tuple[str, ...]:
        """How the sum was made, and what became of the models."""
        return (*super().checks, *self._refinement.checks)

    def learn(self, draw: int) -> np.ndarray:
        """The weights (C, d) of one noise draw."""
        return np.asarray(self._weights[draw])

    def diagnostics(self) -> dict[str, float]:
        """How much of the first draw is signal."""
        return diagnose(self._summand.decoder, self._mechanism, self._means[0])

    @property
    def _mechanism(self) -> AdditiveMechanism:
        """The noise that is in the mean: more shares come than are needed, as a rule."""
        question = self._question
        return shares.in_mean(question.mechanism().additive, question.contributors, self.collected.answered)

    @cached_property
    def _means(self) -> np.ndarray:
        """The mean over the parties that answered, in each noise draw, (draws, D)."""
        return np.asarray(self.collected.total("vectors") / self.collected.answered)

    @cached_property
    def _weights(self) -> np.ndarray:
        decode = self._refinement.refined(self._summand.decoder.decode)
        return decode(self._means, self._mechanism)


VOTE_ASSUMPTIONS = (
    Assumption("every party casts one vote on every auxiliary row, for one of the declared classes or a distribution "
               "over them; an answer that does not is replaced by the uniform vote", Check.ENFORCED),
    COUNTED_ONCE,
    Assumption("sensitivities use the declared number of parties; a missing party is a uniform vote, "
               "and a party that fails costs no other party its vote", Check.ENFORCED),
    ATTENDANCE,
)  # fmt: skip
PUBLIC_ROWS = Assumption(
    "auxiliary rows are public whoever they come from, and with the feature map and all options "
    "were chosen without private data",
    Check.DECLARED,
    Keeper.COORDINATOR,
)
VOTE_CHECKS = ("votes were checked on arrival; refused and missing ones count as uniform",)


def two_rows(weights: np.ndarray) -> np.ndarray:
    """Binary weights (..., d) as one row per class (..., 2, d), with the same decisions.

    Examples:
        >>> two_rows(np.array([2.0, -4.0]))
        array([[-1.,  2.],
               [ 1., -2.]])
    """
    return np.stack([-weights / 2, weights / 2], axis=-2)


@dataclass(frozen=True, eq=False)
class Refinement:
    """Releases decoded models as they are; a protocol that refines its models derives from this class.

    `asked` are the public rows behind the map that parties were asked about. A refinement sees noisy values and public
    data only.
    """

    asked: PublicRows

    @property
    def feature_map(self) -> FeatureMap:
        """What raw rows pass before a released model."""
        return self.asked.feature_map

    @property
    def checks(self) -> tuple[str, ...]:
        """What was done, in public words, for the ledger."""
        return ()

    def refined(self, decode: Decode) -> Decode:
        """Decodes noisy values to what is released."""
        return decode


_MOST_PARTIES = 10**9
_BEYOND = 1e18  # parties: where noise is so loud that more are needed, there is no point in counting them


@dataclass(frozen=True)
class Aim:
    """A release at `epsilon` with noise "pure" or "gaussian"; `delta` is for Gaussian noise only.

    The signal-to-noise ratio rho was measured on 20 data sets with 5 to 1,000 parties. Of the releases with rho below
    1, four in ten were more than 0.01 below the constant answer. Between 1 and 4, one in four was; above 8, one in
    sixty. The budget decides rho, for every protocol that releases a mean of the parties.
    """

    noise: str
    epsilon: float
    delta: float

    def signal_to_noise(self, dimension: int, parties: int) -> float:
        """Return rho of a release of D = `dimension` numbers about M = `parties` parties.

        rho is the largest mean of the parties' shares over the expected norm of the noise on this mean. It is
        M eps / (2 D) for pure noise, and M mu / (2 sqrt(D)) for Gaussian noise.

        Examples:
            >>> Aim("pure", epsilon=1.0, delta=0.0).signal_to_noise(dimension=25, parties=100)
            2.0
        """
        if self.noise == "pure":
            return parties * self.epsilon / (2 * dimension)
        return parties * gaussian.mu(self.epsilon, self.delta) / (2 * math.sqrt(dimension))

    def parties_needed(self, classes: int, width: int, parties: int, spectrum: Spectrum | None) -> int:
        """The smallest number of parties from which on rho stays at `USEFUL` or above.

        `width` numbers per class contrast are released about `parties`. With a spectrum the dimensions among them grow
        with the parties (`aggregator.trial.trial.affordable`), and rho falls where they do.

        Examples:
            >>> Aim("pure", epsilon=1.0, delta=0.0).parties_needed(classes=2, width=25, parties=100, spectrum=None)
            200
        """

        def enough(numbers: int) -> int:
            rho = self.signal_to_noise((classes - 1) * numbers, 1)
            return math.ceil(USEFUL / max(rho, USEFUL / _BEYOND) * (1 - 1e-12))

        if spectrum is None:
            return enough(width)

        def dimensions(parties: int) -> int:
            return affordable(spectrum=spectrum, classes=classes, parties=parties, **vars(self))

        beside = max(0, width - dimensions(parties))
        fewest, most = dimensions(1), dimensions(_MOST_PARTIES)
        for size in sorted({size for size in (*SIZES, most) if fewest <= size <= most}, reverse=True):
            first = bisect_left(range(_MOST_PARTIES), size, lo=1, key=dimensions)
            if size == fewest or enough(size + beside) > first:
                break
        return max(first, enough(size + beside))

    def outlook(
        self, classes: int, width: int, parties: int, spectrum: Spectrum | None, louder: float = 1.0
    ) -> Outlook | None:
        """The warning for a release whose noise has `louder` times the least deviation; None where none is due."""
        rho = self.signal_to_noise((classes - 1) * width, parties) / louder
        if rho >= USEFUL:
            return None
        return Outlook(rho, math.ceil(louder * self.parties_needed(classes, width, parties, spectrum)))
