"""Protocols of one vector that gets the noise: one question and its collector, or a sum that nobody sees a part of."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from aggregator.contract.expected import Expected
from aggregator.contract.outlook import Outlook
from aggregator.contract.perturbable import Perturbable
from aggregator.contract.promise import Promise, Sent
from aggregator.contract.protocol import Place, Protocol, Refused, Requires, Trust
from aggregator.contract.session import Asked, OneRound, Session
from aggregator.ensembles.aim import Aim
from aggregator.ensembles.refinement import Refinement
from aggregator.ensembles.summed import Summand, SummedSession, louder
from aggregator.world.dimensions import Spectrum, affordable, errors
from aggregator.world.public_numbers import PublicNumbers
from aggregator.world.public_rows import PublicRows
from aggregator.world.views import View
from aggregator.world.world import World
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.query import OFF, Question
from federation.queries.votes import Training, VectorNoise

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
    def summand(self, public: PublicRows, question: Any) -> Summand:
        """What parties add up unseen in place of the answer to the question; asked for only where they can."""

    def refinement(self, world: World, public: PublicRows) -> Refinement:
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
        sends = (replace(self.sends(public), private=shared),)
        if self.noise == OFF:
            return Promise(NoGuarantee("noise is off"), sends)
        delta = public.delta if self.noise == "gaussian" else 0.0
        return Promise(Guarantee(epsilon, delta, self.unit, Adjacency.REPLACE, type(self).__name__), sends)

    def expected_of_mean(self, public: PublicNumbers, epsilon: float) -> Expected | None:
        """Of a mean of unit shares, a number of which for each feature and contrast of classes get the noise.

        As many directions are taken as a release takes where the i-th has 1/i of the variance of the first, and what
        the others would have told counts as noise does (`aggregator.world.dimensions`). A guess: nobody knows by
        numbers how far parties agree. Ranking by it lost .002 of accuracy on average, .03 at worst, in 96 settings of
        13 sets.
        """
        if public.classes is None or public.features is None or public.parties is None or self.noise == OFF:
            return None
        from aggregator.contract.expected_accuracy import expected_accuracy

        spectrum = Spectrum(public.public_rows or _PLENTY, 1 / np.arange(1.0, public.features + 1))
        known: dict[str, Any] = {"classes": public.classes, "parties": public.parties}
        known |= {"epsilon": epsilon, "delta": public.delta}
        taken = affordable(self.noise, spectrum, **known) - 1
        noise, omitted = (float(error[taken]) for error in errors(self.noise, spectrum, **known))
        if self.place is Place.SHARES:
            noise *= louder(public.parties, public.quorum, public.colluding) ** 2
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
        delta = world.plan.delta if self.noise == "gaussian" else 0.0
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
        return Asked(question, training, self._options.collector(public, question, self._world.plan.parties))

    def outlook(self) -> Outlook | None:
        """How loud the noise will be beside all that so many parties can say; None where that is much."""
        options, plan = self._options, self._world.plan
        width = options.width(self._view.public)
        if width is None or options.noise == OFF:
            return None
        aim = Aim(options.noise, self._epsilon, plan.delta)
        return aim.outlook(len(plan.classes), width, plan.parties, self._world.views.spectrum)

    @property
    def checks(self) -> tuple[str, ...]:
        """Of what is perturbed."""
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
        weights: np.ndarray = exact.decode(exact.value[None, :], None)[0]
        return weights
